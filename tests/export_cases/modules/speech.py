"""Speech and sequences: conformers, transducers, vocoders, streaming, packed recurrences."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import Tensor, nn, randn

from tests.export_cases.case import case


class RelativeAttention(nn.Module):
    """Transformer-XL's relative attention as conformers use it: positions from n-1 to 1-n, shifted."""

    def __init__(self, width: int = 8, heads: int = 2) -> None:
        super().__init__()
        self.heads, self.size = heads, width // heads
        self.q, self.k, self.v, self.p = (nn.Linear(width, width) for _ in range(4))
        self.u, self.w = nn.Parameter(randn(heads, self.size)), nn.Parameter(randn(heads, self.size))

    def positions(self, n: int, width: int) -> Tensor:
        place = torch.arange(n - 1, -n, -1.0).unsqueeze(1)
        rate = torch.exp(torch.arange(0, width, 2.0) * -(math.log(10000.0) / width))
        table = torch.zeros(2 * n - 1, width)
        table[:, 0::2], table[:, 1::2] = torch.sin(place * rate), torch.cos(place * rate)
        return table

    @staticmethod
    def shifted(x: Tensor) -> Tensor:
        b, h, t, n = x.size()
        x = F.pad(x, (1, 0)).view(b, h, n + 1, t)
        return x[:, :, 1:].view(b, h, t, n)[..., : n // 2 + 1]

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        b, t, c = x.shape
        q, k, v = (f(x).view(b, t, self.heads, self.size) for f in (self.q, self.k, self.v))
        p = self.p(self.positions(t, c)).view(1, -1, self.heads, self.size).transpose(1, 2)
        content = (q + self.u).transpose(1, 2) @ k.permute(0, 2, 3, 1)
        place = self.shifted((q + self.w).transpose(1, 2) @ p.transpose(-1, -2))
        scores = (content + place) / math.sqrt(self.size)
        scores = scores.masked_fill(~mask[:, None, None, :], -1e4)
        return (scores.softmax(-1) @ v.transpose(1, 2)).transpose(1, 2).reshape(b, t, c)


@case("x.0", "x.1")
def conformer_relative_attention():
    def call(b, t):
        lengths = torch.randint(1, t + 1, (b, 1))
        return randn(b, t, 8), torch.arange(t) < lengths

    return RelativeAttention(), call(2, 5), call(3, 9)


class Joint(nn.Module):
    """An RNN-T with its encoder subsampled by convolutions and its predictor."""

    def __init__(self, width: int = 6, words: int = 7) -> None:
        super().__init__()
        self.conv = nn.Conv1d(5, width, 3, stride=2, padding=1)
        self.encoder = nn.LSTM(width, width, batch_first=True)
        self.embed, self.predictor = nn.Embedding(words, width), nn.GRU(width, width, batch_first=True)
        self.out = nn.Linear(width, words)

    def forward(self, features: Tensor, lengths: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        x = torch.relu(self.conv(features.transpose(1, 2))).transpose(1, 2)
        lengths = torch.div(lengths - 1, 2, rounding_mode="floor") + 1
        encoded, _ = self.encoder(x)
        shifted = F.pad(labels, (1, 0))
        predicted, _ = self.predictor(self.embed(shifted))
        joint = torch.tanh(encoded.unsqueeze(2) + predicted.unsqueeze(1))
        return self.out(joint).log_softmax(-1), lengths


@case("features.0", "features.1", "labels.1")
def transducer_with_predictor():
    def call(b, t, u):
        return randn(b, t, 5), torch.randint(1, t + 1, (b,)), torch.randint(1, 7, (b, u))

    return Joint(), call(2, 9, 3), call(3, 14, 5)


class Vocoder(nn.Module):
    """iSTFT-Net: magnitude and phase from a network, the wave by an inverse transform."""

    def __init__(self, fft: int = 16, hop: int = 4) -> None:
        super().__init__()
        self.fft, self.hop = fft, hop
        self.conv = nn.Conv1d(5, fft + 2, 3, padding=1)
        self.register_buffer("window", torch.hann_window(fft))

    def forward(self, mel: Tensor) -> Tensor:
        x = self.conv(mel)
        magnitude, phase = torch.exp(x[:, : self.fft // 2 + 1]), torch.sin(x[:, self.fft // 2 + 1 :])
        spectrum = magnitude * torch.exp(1j * phase)
        return torch.istft(spectrum, self.fft, self.hop, self.fft, self.window).unsqueeze(1)


@case("mel.0", "mel.2")
def vocoder_by_inverse_transform():
    return Vocoder(), (randn(2, 5, 8),), (randn(1, 5, 13),)


class Masking(nn.Module):
    """Speech enhancement: a mask on the spectrogram, the wave back at its length."""

    def __init__(self, fft: int = 16, hop: int = 8) -> None:
        super().__init__()
        self.fft, self.hop = fft, hop
        self.register_buffer("window", torch.hann_window(fft))
        self.net = nn.GRU(fft // 2 + 1, fft // 2 + 1, batch_first=True)

    def forward(self, wave: Tensor) -> Tensor:
        spectrum = torch.stft(wave, self.fft, self.hop, window=self.window, return_complex=True)
        mask, _ = self.net(spectrum.abs().transpose(1, 2))
        return torch.istft(
            spectrum * mask.sigmoid().transpose(1, 2), self.fft, self.hop, window=self.window, length=wave.shape[-1]
        )


@case("wave.0", "wave.1")
def enhancement_at_its_length():
    return Masking(), (randn(2, 64),), (randn(1, 85),)


class Streaming(nn.Module):
    """A causal convolution with its cache as input and output."""

    def __init__(self, width: int = 4, kernel: int = 5) -> None:
        super().__init__()
        self.left, self.conv = kernel - 1, nn.Conv1d(width, width, kernel)

    def forward(self, x: Tensor, cache: Tensor | None = None) -> tuple[Tensor, Tensor]:
        if cache is None:
            cache = x.new_zeros(x.shape[0], x.shape[1], self.left)
        x = torch.cat([cache, x], 2)
        return self.conv(x), x[:, :, -self.left :]


@case("x.0", "x.2")
def streaming_convolution():
    return Streaming(), (randn(2, 4, 6), randn(2, 4, 4)), (randn(3, 4, 2), randn(3, 4, 4))


class ChunkMask(nn.Module):
    """Attention within chunks and to the chunks before, by a mask from Python's loop."""

    def __init__(self, width: int = 4, chunk: int = 3) -> None:
        super().__init__()
        self.chunk, self.attention = chunk, nn.MultiheadAttention(width, 2, batch_first=True)

    def mask(self, size: int) -> Tensor:
        result = torch.zeros(size, size, dtype=torch.bool)
        for i in range(size):
            ending = min((i // self.chunk + 1) * self.chunk, size)
            result[i, 0:ending] = True
        return result

    def forward(self, x: Tensor) -> Tensor:
        return self.attention(x, x, x, attn_mask=~self.mask(x.shape[1]), need_weights=False)[0]


@case("x.0", "x.1")
def mask_of_chunks_by_a_loop():
    return ChunkMask(), (randn(2, 7, 4),), (randn(3, 10, 4),)


class Packed(nn.Module):
    """A tagger with packed sequences and a linear layer behind."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(20, 5)
        self.lstm, self.out = nn.LSTM(5, 4, bidirectional=True, batch_first=True), nn.Linear(8, 3)

    def forward(self, ids: Tensor, lengths: Tensor) -> Tensor:
        packed = nn.utils.rnn.pack_padded_sequence(self.embed(ids), lengths, batch_first=True, enforce_sorted=False)
        out, _ = self.lstm(packed)
        out, _ = nn.utils.rnn.pad_packed_sequence(out, batch_first=True, total_length=ids.shape[1])
        return self.out(out)


@case("ids.0", "ids.1")
def tagger_with_packed_sequences():
    def call(b, t):
        lengths = torch.randint(1, t + 1, (b,))
        return torch.randint(0, 20, (b, t)), lengths

    return Packed(), call(3, 6), call(4, 9)


class Tacotron(nn.Module):
    """Location-sensitive attention, step by step under teacher forcing."""

    def __init__(self, width: int = 5) -> None:
        super().__init__()
        self.cell = nn.LSTMCell(3 + width, width)
        self.query, self.memory = nn.Linear(width, 4), nn.Linear(width, 4)
        self.location, self.place = nn.Conv1d(2, 3, 3, padding=1), nn.Linear(3, 4)
        self.v, self.out = nn.Linear(4, 1), nn.Linear(2 * width, 3)

    def forward(self, memory: Tensor, frames: Tensor) -> tuple[Tensor, Tensor]:
        b, n, c = memory.shape
        h, cell = memory.new_zeros(b, c), memory.new_zeros(b, c)
        weights, total, context = memory.new_zeros(b, n), memory.new_zeros(b, n), memory.new_zeros(b, c)
        keys = self.memory(memory)
        outputs, alignments = [], []
        for frame in frames.transpose(0, 1):
            h, cell = self.cell(torch.cat([frame, context], -1), (h, cell))
            location = self.location(torch.stack([weights, total], 1)).transpose(1, 2)
            energy = self.v(torch.tanh(self.query(h).unsqueeze(1) + keys + self.place(location))).squeeze(-1)
            weights = energy.softmax(1)
            total = total + weights
            context = torch.bmm(weights.unsqueeze(1), memory).squeeze(1)
            outputs.append(self.out(torch.cat([h, context], -1)))
            alignments.append(weights)
        return torch.stack(outputs, 1), torch.stack(alignments, 1)


@case("memory.0", "memory.1", "frames.1")
def location_sensitive_attention():
    return Tacotron(), (randn(2, 6, 5), randn(2, 4, 3)), (randn(3, 8, 5), randn(3, 7, 3))


class Monotonic(nn.Module):
    """Durations: phonemes repeated by rounded lengths, padded to the longest."""

    def __init__(self) -> None:
        super().__init__()
        self.duration = nn.Linear(4, 1)

    def forward(self, x: Tensor) -> Tensor:
        lengths = (torch.relu(self.duration(x)).squeeze(-1) * 2 + 1).round().long()
        ends = lengths.cumsum(1)
        most = int(ends[:, -1].max())
        frames = torch.arange(most)
        index = torch.searchsorted(ends, frames.expand(x.shape[0], -1).contiguous(), right=True)
        inside = frames[None] < ends[:, -1:]
        index = index.clamp(max=x.shape[1] - 1)
        return x.gather(1, index.unsqueeze(-1).expand(-1, -1, 4)) * inside.unsqueeze(-1)


@case("x.0", "x.1")
def phonemes_repeated():
    return Monotonic(), (randn(2, 5, 4),), (randn(3, 7, 4),)


class QuantisedCodes(nn.Module):
    """A residual vector quantiser: codes of each stage, and what they decode to."""

    def __init__(self, stages: int = 3, codes: int = 8, width: int = 4) -> None:
        super().__init__()
        self.books = nn.ModuleList(nn.Embedding(codes, width) for _ in range(stages))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        residual, total, found = x, torch.zeros_like(x), []
        for book in self.books:
            flat = residual.reshape(-1, x.shape[-1])
            distance = flat.pow(2).sum(1, keepdim=True) - 2 * flat @ book.weight.t() + book.weight.pow(2).sum(1)
            code = distance.argmin(1).view(x.shape[:-1])
            part = book(code)
            residual, total = residual - part, total + part
            found.append(code)
        return torch.stack(found, -1), x + (total - x).detach()


@case("x.0", "x.1")
def residual_codes():
    return QuantisedCodes(), (randn(2, 6, 4),), (randn(3, 9, 4),)


class Biquad(nn.Module):
    """A recursive filter of second order, sample by sample."""

    def forward(self, x: Tensor) -> Tensor:
        y = torch.zeros_like(x)
        for n in range(2, x.shape[1]):
            y[:, n] = 0.2 * x[:, n] + 0.4 * x[:, n - 1] + 0.2 * x[:, n - 2] + 0.5 * y[:, n - 1] - 0.3 * y[:, n - 2]
        return y


@case("x.0", "x.1")
def recursive_filter():
    return Biquad(), (randn(2, 9),), (randn(3, 14),)


class Scheduled(nn.Module):
    """A recurrent decoder that runs for a number of steps given as an integer tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.cell, self.out = nn.GRUCell(3, 4), nn.Linear(4, 3)

    def forward(self, h: Tensor, steps: Tensor) -> Tensor:
        x, found = torch.zeros(h.shape[0], 3), []
        for _ in range(int(steps)):
            h = self.cell(x, h)
            x = self.out(h)
            found.append(x)
        return torch.stack(found, 1)


@case("h.0")
def decoder_for_given_steps():
    return Scheduled(), (randn(2, 4), torch.tensor(5)), (randn(3, 4), torch.tensor(8))
