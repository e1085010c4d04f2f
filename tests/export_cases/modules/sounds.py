"""Sound by hand: networks on samples, losses of spectra, other rates, predictors, lengths that powers of two fix."""

from __future__ import annotations

import itertools
import math

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import Tensor, nn, rand, randint, randn
from torch.nn.utils.parametrizations import weight_norm

from tests.export_cases.case import case


class WaveNet(nn.Module):
    """Samples by mu-law, gated convolutions of growing gaps, skips that are added up."""

    def __init__(self, gaps: tuple[int, ...] = (1, 2, 4)) -> None:
        super().__init__()
        self.table, self.gaps = nn.Embedding(16, 6), gaps
        self.gates = nn.ModuleList(nn.Conv1d(6, 12, 2, dilation=gap) for gap in gaps)
        self.local = nn.ModuleList(nn.Conv1d(3, 12, 1, bias=False) for _ in gaps)
        self.residual = nn.ModuleList(nn.Conv1d(6, 6, 1) for _ in gaps)
        self.skips = nn.ModuleList(nn.Conv1d(6, 8, 1) for _ in gaps)
        self.out = nn.Sequential(nn.ReLU(), nn.Conv1d(8, 16, 1))

    def forward(self, wave: Tensor, frames: Tensor) -> Tensor:
        codes = torch.sign(wave) * torch.log1p(15 * wave.abs()) / math.log(16)
        codes = ((codes + 1) / 2 * 15 + 0.5).to(torch.int64)
        around = F.interpolate(frames, size=wave.size(-1), mode="nearest")
        x, total = self.table(codes).transpose(1, 2), None
        for gate, local, residual, skip, gap in zip(
            self.gates, self.local, self.residual, self.skips, self.gaps, strict=True
        ):
            a, b = (gate(F.pad(x, (gap, 0))) + local(around)).chunk(2, dim=1)
            h = torch.tanh(a) * torch.sigmoid(b)
            total = skip(h) if total is None else total + skip(h)
            x = (x + residual(h)) * math.sqrt(0.5)
        return self.out(total)


@case("wave.0", "wave.1")
def samples_by_gated_convolutions():
    def inputs(b, frames, samples):
        return rand(b, samples) * 2 - 1, randn(b, 3, frames)

    return WaveNet(), inputs(2, 5, 20), inputs(1, 9, 36), inputs(3, 3, 12), inputs(1, 14, 32)


class Generator(nn.Module):
    """Frames to samples by transposed convolutions, and fields of several widths averaged."""

    def __init__(self) -> None:
        super().__init__()
        self.first = weight_norm(nn.Conv1d(5, 8, 7, padding=3))
        self.ups = nn.ModuleList(
            weight_norm(
                nn.ConvTranspose1d(8 // 2**i, 4 // 2**i, 2 * r, r, padding=r // 2 + r % 2, output_padding=r % 2)
            )
            for i, r in enumerate((4, 3))
        )
        self.fields = nn.ModuleList(
            nn.ModuleList(weight_norm(nn.Conv1d(c, c, k, padding="same", dilation=d)) for k, d in ((3, 1), (5, 3)))
            for c in (4, 2)
        )
        self.last = weight_norm(nn.Conv1d(2, 1, 7, padding=3))

    def forward(self, mel: Tensor) -> Tensor:
        x = self.first(mel)
        for up, fields in zip(self.ups, self.fields, strict=True):
            x = up(F.leaky_relu(x, 0.1))
            x = sum(x + field(F.leaky_relu(x, 0.1)) for field in fields) / len(fields)
        return torch.tanh(self.last(F.leaky_relu(x)))


@case("mel.0", "mel.2")
def samples_from_frames():
    return Generator(), (randn(2, 5, 6),), (randn(1, 5, 11),), (randn(3, 5, 3),)


class SpectralLoss(nn.Module):
    """How far two sounds are apart, at several resolutions."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes = ((16, 4), (32, 8), (8, 2))
        for n, _ in self.sizes:
            self.register_buffer(f"window_{n}", torch.hann_window(n), persistent=False)

    def _magnitude(self, x: Tensor, n: int, hop: int) -> Tensor:
        spectrum = torch.stft(x, n, hop, n, getattr(self, f"window_{n}"), return_complex=True)
        return torch.sqrt((spectrum.real**2 + spectrum.imag**2).clamp(min=1e-7))

    def forward(self, made: Tensor, real: Tensor) -> tuple[Tensor, Tensor]:
        ratio, logs = 0.0, 0.0
        for n, hop in self.sizes:
            a, b = self._magnitude(made, n, hop), self._magnitude(real, n, hop)
            ratio = ratio + torch.linalg.norm(b - a) / torch.linalg.norm(b)
            logs = logs + F.l1_loss(a.log(), b.log())
        return ratio / len(self.sizes), logs / len(self.sizes)


@case("made.0", "made.1")
def spectra_at_several_resolutions():
    def inputs(b, t):
        return randn(b, t), randn(b, t)

    return SpectralLoss(), inputs(2, 48), inputs(1, 70), inputs(3, 33)


class Resampled(nn.Module):
    """Another rate, by windowed sines, for every phase one filter."""

    def __init__(self, old: int = 6, new: int = 4, width: int = 3) -> None:
        super().__init__()
        common = math.gcd(old, new)
        self.old, self.new = old // common, new // common
        base = min(self.old, self.new) * 0.99
        self.width = math.ceil(width * self.old / base)
        index = torch.arange(-self.width, self.width + self.old, dtype=torch.float64)[None, None] / self.old
        t = (torch.arange(0, -self.new, -1)[:, None, None] / self.new + index) * base
        t = t.clamp(-width, width)
        window = torch.cos(t * math.pi / width / 2) ** 2
        kernel = torch.where(t == 0, 1.0, (t * math.pi).sin() / (t * math.pi)) * window * base / self.old
        self.register_buffer("kernel", kernel.float())

    def forward(self, wave: Tensor) -> Tensor:
        shape = wave.size()
        wave = wave.view(-1, shape[-1])
        padded = F.pad(wave, (self.width, self.width + self.old))
        out = F.conv1d(padded[:, None], self.kernel, stride=self.old)
        out = out.transpose(1, 2).reshape(len(wave), -1)
        length = torch.ceil(torch.as_tensor(self.new * shape[-1] / self.old)).long()
        return out[..., :length].view((*shape[:-1], -1))


@case("wave.0", "wave.2")
def wave_at_another_rate():
    return Resampled(), (randn(2, 1, 30),), (randn(1, 1, 41),), (randn(3, 1, 13),)


class LinearPredictor(nn.Module):
    """Frames' predictors by Levinson's recursion, from autocorrelations."""

    def __init__(self, order: int = 4) -> None:
        super().__init__()
        self.order = order

    def forward(self, frames: Tensor) -> tuple[Tensor, Tensor]:
        n = frames.shape[-1]
        size = 2 ** math.ceil(math.log2(2 * n - 1))
        spectrum = torch.fft.rfft(frames, n=size)
        r = torch.fft.irfft(spectrum.abs() ** 2, n=size)[..., : self.order + 1]
        error = r[..., 0] + 1e-4
        a = torch.ones_like(r[..., :1])
        for i in range(1, self.order + 1):
            k = -(a * r[..., 1 : i + 1].flip(-1)).sum(-1) / error
            a = F.pad(a, (0, 1))
            a = a + k[..., None] * a.flip(-1)
            error = error * (1 - k * k)
        return a, error


@case("frames.0", "frames.1", "frames.2")
def predictors_of_frames():
    return LinearPredictor(), (randn(2, 3, 20),), (randn(1, 5, 36),), (randn(3, 2, 9),)


class Separator(nn.Module):
    """Strided convolutions down and up, padded so that nothing is lost, with skips."""

    def __init__(self, depth: int = 3, kernel: int = 8, stride: int = 4) -> None:
        super().__init__()
        self.depth, self.kernel, self.stride = depth, kernel, stride
        widths = [1, *(4 * 2**i for i in range(depth))]
        self.down = nn.ModuleList(nn.Conv1d(a, b, kernel, stride) for a, b in itertools.pairwise(widths))
        self.up = nn.ModuleList(nn.ConvTranspose1d(b, a, kernel, stride) for a, b in itertools.pairwise(widths))
        self.middle = nn.LSTM(widths[-1], widths[-1] // 2, bidirectional=True)

    def valid_length(self, length: int) -> int:
        for _ in range(self.depth):
            length = max(math.ceil((length - self.kernel) / self.stride) + 1, 1)
        for _ in range(self.depth):
            length = (length - 1) * self.stride + self.kernel
        return int(length)

    def forward(self, mix: Tensor) -> Tensor:
        length = mix.shape[-1]
        std = mix.std(dim=-1, keepdim=True)
        x = F.pad(mix / (1e-3 + std), (0, self.valid_length(length) - length))
        skips = []
        for layer in self.down:
            x = F.relu(layer(x))
            skips.append(x)
        x = self.middle(x.permute(2, 0, 1))[0].permute(1, 2, 0)
        for layer in reversed(self.up):
            skip = skips.pop(-1)
            x = layer(x + skip[..., : x.shape[-1]])
        return x[..., :length] * std


@case("mix.0", "mix.2")
def separation_without_loss_at_the_end():
    return Separator(), (randn(2, 1, 300),), (randn(1, 1, 457),), (randn(3, 1, 170),)


class Reverb(nn.Module):
    """A room's answer applied by transforms of a length that is fast."""

    def __init__(self) -> None:
        super().__init__()
        self.decay, self.length = nn.Parameter(torch.tensor(3.0)), 24
        self.register_buffer("noise", rand(24) * 2 - 1)

    def forward(self, wave: Tensor, wet: Tensor) -> Tensor:
        answer = self.noise * torch.exp(-F.softplus(self.decay) * torch.linspace(0, 1, self.length))
        answer = torch.cat([torch.ones(1), answer[1:]])
        n = wave.shape[-1] + self.length - 1
        size = 1 << (n - 1).bit_length()
        both = torch.fft.rfft(wave, size) * torch.fft.rfft(answer, size)
        full = torch.fft.irfft(both, size)[..., : wave.shape[-1]]
        return wet[:, None] * full + (1 - wet[:, None]) * wave


@case("wave.0", "wave.1")
def answer_of_a_room():
    def inputs(b, t):
        return randn(b, t), rand(b)

    return Reverb(), inputs(2, 50), inputs(1, 77), inputs(3, 30)


class Phases(nn.Module):
    """Phases found for magnitudes in a few rounds."""

    def __init__(self, n: int = 16, hop: int = 4) -> None:
        super().__init__()
        self.n, self.hop = n, hop
        self.register_buffer("window", torch.hann_window(n))

    def forward(self, magnitude: Tensor, start: Tensor) -> Tensor:
        options = {"n_fft": self.n, "hop_length": self.hop, "window": self.window}
        angles = torch.polar(torch.ones_like(start), start)
        before = torch.zeros_like(angles)
        for _ in range(3):
            wave = torch.istft(magnitude * angles, **options)
            rebuilt = torch.stft(wave, **options, return_complex=True)
            angles = rebuilt - before * (0.9 / 1.9)
            angles = angles / (angles.abs() + 1e-8)
            before = rebuilt
        return torch.istft(magnitude * angles, **options)


@case("magnitude.0", "magnitude.2")
def phases_found_for_magnitudes():
    def inputs(b, t):
        return rand(b, 9, t) + 0.1, rand(b, 9, t) * 6.28 - 3.14

    return Phases(), inputs(2, 10), inputs(1, 14), inputs(3, 7)


class Tokens(nn.Module):
    """Codes of several books with delays, masked until they begin."""

    def __init__(self, books: int = 3) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(9, 6) for _ in range(books))
        self.mix, self.heads = nn.GRU(6, 6, batch_first=True), nn.ModuleList(nn.Linear(6, 8) for _ in range(books))

    def forward(self, codes: Tensor) -> Tensor:
        b, books, t = codes.shape
        late = codes.new_full((b, books, t + books), 8)
        for i in range(books):
            late[:, i, i + 1 : i + 1 + t] = codes[:, i]
        x, _ = self.mix(sum(table(late[:, i]) for i, table in enumerate(self.tables)))
        logits = torch.stack([head(x) for head in self.heads], 1)
        return torch.stack([logits[:, i, i : i + t] for i in range(books)], 1)


@case("codes.0", "codes.2")
def delayed_books_masked():
    return Tokens(), (randint(0, 8, (2, 3, 6)),), (randint(0, 8, (1, 3, 9)),), (randint(0, 8, (3, 3, 2)),)
