"""What goes on around networks: decoding, filtering, tracking, features, and networks that step through time."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import Tensor, nn, rand, randn

from tests.export_cases.case import case


class Viterbi(nn.Module):
    """The best path through a chain, found backwards from pointers."""

    def __init__(self, tags: int = 4) -> None:
        super().__init__()
        self.emit, self.transitions = nn.Linear(5, tags), nn.Parameter(randn(tags, tags))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        emissions = self.emit(x)
        score, pointers = emissions[:, 0], []
        for t in range(1, emissions.size(1)):
            total = score.unsqueeze(2) + self.transitions + emissions[:, t].unsqueeze(1)
            score, pointer = total.max(dim=1)
            pointers.append(pointer)
        best, last = score.max(dim=1)
        path = [last]
        for pointer in reversed(pointers):
            last = pointer.gather(1, last.unsqueeze(1)).squeeze(1)
            path.append(last)
        path.reverse()
        return best, torch.stack(path, dim=1)


@case("x.0", "x.1")
def best_path_through_a_chain():
    return Viterbi(), (randn(2, 6, 5),), (randn(3, 9, 5),), (randn(1, 2, 5),)


class Greedy(nn.Module):
    """Transcripts without repeats and blanks, moved to the left."""

    def forward(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        best = logits.argmax(-1)
        before = F.pad(best, (1, 0), value=-1)[:, :-1]
        kept = (best != 0) & (best != before)
        order = torch.argsort((~kept).int(), dim=1, stable=True)
        tokens = torch.gather(best.masked_fill(~kept, -1), 1, order)
        return tokens, kept.sum(1)


@case("logits.0", "logits.1")
def transcript_without_repeats():
    return Greedy(), (randn(2, 8, 4),), (randn(3, 13, 4),)


class Beam(nn.Module):
    """One step of a beam search: candidates, the best of them, and their histories."""

    def __init__(self, vocabulary: int = 7, beams: int = 3) -> None:
        super().__init__()
        self.net, self.beams = nn.Linear(4, vocabulary), beams

    def forward(self, state: Tensor, score: Tensor, history: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        b = score.shape[0]
        logp = self.net(state).log_softmax(-1).view(b, self.beams, -1)
        total = (score.unsqueeze(-1) + logp).view(b, -1)
        score, index = total.topk(self.beams, dim=-1)
        beam, token = torch.div(index, logp.size(-1), rounding_mode="floor"), index % logp.size(-1)
        rows = (beam + torch.arange(b)[:, None] * self.beams).view(-1)
        history = torch.cat([history[rows], token.view(-1, 1)], dim=1)
        return state.index_select(0, rows), score, history


@case("score.0", "history.1")
def step_of_a_beam_search():
    def call(b: int, n: int):
        return randn(b * 3, 4), randn(b, 3), torch.randint(0, 7, (b * 3, n))

    return Beam(), call(2, 4), call(3, 1), call(1, 6)


class Pointer(nn.Module):
    """Places are visited one after the other, each once, the most attractive first."""

    def __init__(self, width: int = 6) -> None:
        super().__init__()
        self.encode, self.cell = nn.Linear(2, width), nn.LSTMCell(width, width)
        self.key, self.query = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, points: Tensor) -> tuple[Tensor, Tensor]:
        b, n, _ = points.shape
        y = self.encode(points)
        h = c = y.mean(1)
        seen = torch.zeros(b, n, dtype=torch.bool)
        step, tour, logs = y.mean(1), [], []
        for _ in range(n):
            h, c = self.cell(step, (h, c))
            scores = (self.key(y) @ self.query(h).unsqueeze(-1)).squeeze(-1).masked_fill(seen, -1e9)
            log = scores.log_softmax(-1)
            place = log.argmax(-1)
            seen = seen | F.one_hot(place, n).bool()
            step = y[torch.arange(b), place]
            tour.append(place)
            logs.append(log.gather(1, place[:, None]).squeeze(1))
        return torch.stack(tour, 1), torch.stack(logs, 1).sum(1)


@case("points.0", "points.1")
def tour_by_pointing():
    return Pointer(), (rand(2, 5, 2),), (rand(3, 8, 2),)


class Kalman(nn.Module):
    """A filter over a series of measurements, some of which are missing."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("a", torch.tensor([[1.0, 0.1], [0.0, 0.95]]))
        self.register_buffer("h", torch.tensor([[1.0, 0.0]]))
        self.q, self.r = nn.Parameter(torch.eye(2) * 0.01), nn.Parameter(torch.tensor([[0.1]]))

    def forward(self, z: Tensor, seen: Tensor) -> tuple[Tensor, Tensor]:
        x, p = torch.zeros(z.shape[0], 2, 1), torch.eye(2).repeat(z.shape[0], 1, 1)
        means = []
        for t in range(z.shape[1]):
            x, p = self.a @ x, self.a @ p @ self.a.T + self.q
            s = self.h @ p @ self.h.T + self.r
            gain = torch.linalg.solve(s, self.h @ p).mT
            gain = gain * seen[:, t, None, None]
            x = x + gain @ (z[:, t, None, None] - self.h @ x)
            p = (torch.eye(2) - gain @ self.h) @ p
            means.append(x.squeeze(-1))
        return torch.stack(means, dim=1), torch.linalg.det(p)


@case("z.0", "z.1", "seen.0", "seen.1")
def filter_with_gaps():
    def call(b: int, n: int):
        return randn(b, n), (rand(b, n) > 0.2).float()

    return Kalman(), call(2, 5), call(3, 8)


class Rays(nn.Module):
    """Colours along rays, with more samples where there is something."""

    def __init__(self, coarse: int = 6, fine: int = 5) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3 + 12, 16), nn.ReLU(), nn.Linear(16, 4))
        self.coarse, self.fine = coarse, fine

    def field(self, points: Tensor) -> Tensor:
        waves = [f(2.0**i * math.pi * points) for i in range(2) for f in (torch.sin, torch.cos)]
        return self.net(torch.cat([points, *waves], -1))

    def weights(self, sigma: Tensor, z: Tensor) -> Tensor:
        gaps = torch.cat([z[..., 1:] - z[..., :-1], torch.full_like(z[..., :1], 1e10)], -1)
        alpha = 1 - torch.exp(-F.relu(sigma) * gaps)
        clear = torch.cumprod(torch.cat([torch.ones_like(alpha[..., :1]), 1 - alpha + 1e-10], -1), -1)[..., :-1]
        return alpha * clear

    def forward(self, origins: Tensor, directions: Tensor) -> tuple[Tensor, Tensor]:
        z = torch.linspace(1.0, 4.0, self.coarse).expand(origins.size(0), self.coarse)
        raw = self.field(origins[:, None] + directions[:, None] * z[..., None])
        w = self.weights(raw[..., 3], z)[..., 1:-1] + 1e-5
        cdf = F.pad((w / w.sum(-1, keepdim=True)).cumsum(-1), (1, 0))
        u = torch.linspace(0.05, 0.95, self.fine).expand(origins.size(0), self.fine).contiguous()
        above = torch.searchsorted(cdf.contiguous(), u, right=True).clamp(max=cdf.size(-1) - 1)
        below = (above - 1).clamp(min=0)
        middle = 0.5 * (z[..., 1:] + z[..., :-1])
        low, high = cdf.gather(1, below), cdf.gather(1, above)
        left, right = middle.gather(1, below), middle.gather(1, above)
        share = (u - low) / torch.where(high - low < 1e-5, torch.ones_like(low), high - low)
        z, _ = torch.sort(torch.cat([z, left + share * (right - left)], -1), -1)
        raw = self.field(origins[:, None] + directions[:, None] * z[..., None])
        w = self.weights(raw[..., 3], z)
        return (w[..., None] * raw[..., :3].sigmoid()).sum(1), (w * z).sum(1)


@case("origins.0", "directions.0")
def colours_along_rays():
    return Rays(), (randn(4, 3), randn(4, 3)), (randn(9, 3), randn(9, 3))


class Cepstra(nn.Module):
    """Power in bands, its logarithm, a cosine transform, and differences over time."""

    def __init__(self, size: int = 32, hop: int = 8, bands: int = 10, kept: int = 6) -> None:
        super().__init__()
        self.size, self.hop = size, hop
        self.register_buffer("window", torch.hann_window(size))
        self.register_buffer("bands", rand(size // 2 + 1, bands))
        k, n = torch.arange(kept).float()[:, None], torch.arange(bands).float()[None]
        self.register_buffer("cosines", torch.cos(math.pi / bands * (n + 0.5) * k))

    def forward(self, wave: Tensor) -> Tensor:
        wave = torch.cat([wave[:, :1], wave[:, 1:] - 0.97 * wave[:, :-1]], dim=1)
        power = torch.stft(wave, self.size, self.hop, window=self.window, return_complex=True).abs().pow(2)
        y = torch.log(power.transpose(1, 2) @ self.bands + 1e-6) @ self.cosines.T
        y = (y - y.mean(1, keepdim=True)) / (y.std(1, keepdim=True) + 1e-5)
        padded = F.pad(y.transpose(1, 2), (2, 2), mode="replicate")
        delta = sum(
            i * (padded[..., 2 + i : padded.size(-1) - 2 + i] - padded[..., 2 - i : padded.size(-1) - 2 - i])
            for i in (1, 2)
        )
        return torch.cat([y, delta.transpose(1, 2) / 10], dim=-1)


@case("wave.0", "wave.1")
def cepstra_and_their_changes():
    return Cepstra(), (randn(2, 160),), (randn(1, 203),)


class Bags(nn.Module):
    """Words of many documents in one row, with where each begins; and convolutions over characters."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.EmbeddingBag(20, 6, mode="mean")
        self.letters = nn.Embedding(12, 4, padding_idx=0)
        self.kernels = nn.ModuleList(nn.Conv1d(4, 3, k) for k in (2, 3, 4))

    def forward(self, words: Tensor, starts: Tensor, letters: Tensor) -> Tensor:
        x = self.letters(letters).transpose(1, 2)
        x = F.pad(x, (0, max(0, 4 - x.size(-1))))
        pooled = [
            F.max_pool1d(F.relu(kernel(x)), x.size(-1) - kernel.kernel_size[0] + 1).squeeze(-1)
            for kernel in self.kernels
        ]
        return torch.cat([self.words(words, starts), *pooled], dim=1)


@case("words.0", "starts.0", "letters.0", "letters.1")
def words_and_letters():
    def call(starts: list[int], count: int, n: int):
        letters = torch.randint(1, 12, (len(starts), n))
        return torch.randint(0, 20, (count,)), torch.tensor(starts), letters

    return Bags(), call([0, 3, 5], 9, 7), call([0, 4], 6, 3), call([0, 1, 2, 6], 8, 10)


class Flow(nn.Module):
    """A flow of couplings, forth with its density and back again."""

    def __init__(self, width: int = 4, layers: int = 3) -> None:
        super().__init__()
        self.nets = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 8), nn.Tanh(), nn.Linear(8, 2 * width)) for _ in range(layers)
        )
        self.register_buffer("masks", torch.stack([(torch.arange(width) + i) % 2 for i in range(layers)]).float())

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        total = x.new_zeros(x.shape[0])
        z = x
        for net, mask in zip(self.nets, self.masks, strict=True):
            s, t = net(z * mask).chunk(2, dim=1)
            s = torch.tanh(s) * (1 - mask)
            z = z * torch.exp(s) + t * (1 - mask)
            total += s.sum(dim=1)
        log = torch.distributions.Normal(0.0, 1.0).log_prob(z).sum(1) + total
        back = z
        for net, mask in reversed(list(zip(self.nets, self.masks, strict=True))):
            s, t = net(back * mask).chunk(2, dim=1)
            back = (back - t * (1 - mask)) * torch.exp(-torch.tanh(s) * (1 - mask))
        return log, back


@case("x.0")
def density_by_couplings():
    return Flow(), (randn(3, 4),), (randn(7, 4),)


class Runge(nn.Module):
    """A differential equation solved to given times, of which there may be any number."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))

    def slope(self, t: Tensor, y: Tensor) -> Tensor:
        return self.net(torch.cat([y, t.expand(y.shape[0], 1)], dim=1))

    def forward(self, y: Tensor, times: Tensor) -> Tensor:
        states = [y]
        for t0, t1 in zip(times[:-1], times[1:], strict=True):  # noqa: RUF007 - as many write it
            h = t1 - t0
            k1 = self.slope(t0, y)
            k2 = self.slope(t0 + h / 2, y + h / 2 * k1)
            k3 = self.slope(t0 + h / 2, y + h / 2 * k2)
            k4 = self.slope(t1, y + h * k3)
            y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
            states.append(y)
        return torch.stack(states)


@case("y.0", "times.0")
def equation_solved_to_times():
    return Runge(), (randn(3, 3), torch.linspace(0, 1, 5)), (randn(2, 3), torch.linspace(0, 2, 9))


class Attributed(nn.Module):
    """Attention over the edges of a graph, normalised for each node, then pooled for each graph of a batch."""

    def __init__(self, width: int = 5, heads: int = 2) -> None:
        super().__init__()
        self.project, self.heads = nn.Linear(width, heads * 4), heads
        self.source, self.target = nn.Parameter(randn(heads, 4)), nn.Parameter(randn(heads, 4))

    def forward(self, x: Tensor, edges: Tensor, batch: Tensor) -> Tensor:
        h = self.project(x).view(-1, self.heads, 4)
        i, j = edges
        e = F.leaky_relu((h[j] * self.source).sum(-1) + (h[i] * self.target).sum(-1), 0.2)
        top = torch.full((x.size(0), self.heads), -1e9).scatter_reduce(0, i[:, None].expand_as(e), e, "amax")
        e = torch.exp(e - top[i])
        norm = torch.zeros(x.size(0), self.heads).index_add(0, i, e)
        y = torch.zeros_like(h).index_add(0, i, h[j] * (e / (norm[i] + 1e-9)).unsqueeze(-1)).flatten(1)
        graphs = int(batch.max()) + 1
        count = torch.zeros(graphs).index_add(0, batch, torch.ones_like(batch, dtype=torch.float))
        return torch.zeros(graphs, y.size(1)).index_add(0, batch, y) / count[:, None]


@case("x.0", "edges.1", "batch.0")
def graphs_pooled_by_their_number():
    def call(*sizes: int):
        nodes = sum(sizes)
        batch = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))
        return randn(nodes, 5), torch.randint(0, nodes, (2, 2 * nodes)), batch

    return Attributed(), call(3, 4), call(2, 5, 3), call(6)


class Adaptive(nn.Module):
    """As many steps of thought as it takes, at most a few; halting shares add up to one."""

    def __init__(self, width: int = 5) -> None:
        super().__init__()
        self.cell, self.halt = nn.GRUCell(width, width), nn.Linear(width, 1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        h, total, y = torch.zeros_like(x), torch.zeros(x.shape[0]), torch.zeros_like(x)
        steps = 0
        while bool((total < 0.99).any()) and steps < 8:
            h = self.cell(x, h)
            p = torch.sigmoid(self.halt(h)).squeeze(-1)
            p = torch.where(total + p > 0.99, 1 - total, p)
            y, total = y + p[:, None] * h, total + p
            steps += 1
        return y, total


@case("x.0")
def as_many_steps_as_it_takes():
    return Adaptive(), (randn(3, 5),), (randn(6, 5),)


class Boxes(nn.Module):
    """Boxes of a grid, decoded, the best ones kept in order, with those that overlap better ones marked."""

    def __init__(self, stride: int = 8, kept: int = 10) -> None:
        super().__init__()
        self.stride, self.kept = stride, kept

    def forward(self, head: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        h, w = head.shape[-2:]
        gy, gx = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
        centre = (head[:, :2].sigmoid() + torch.stack([gx, gy])) * self.stride
        size = head[:, 2:4].exp() * self.stride
        boxes = torch.cat([centre - size / 2, centre + size / 2], 1).flatten(2).transpose(1, 2)
        score, label = (head[:, 4:5].sigmoid() * head[:, 5:].softmax(1)).flatten(2).max(dim=1)
        score, order = score.topk(min(self.kept, h * w), dim=1)
        boxes = boxes.gather(1, order.unsqueeze(-1).expand(-1, -1, 4))
        low = torch.maximum(boxes[:, :, None, :2], boxes[:, None, :, :2])
        high = torch.minimum(boxes[:, :, None, 2:], boxes[:, None, :, 2:])
        inter = (high - low).clamp(min=0).prod(-1)
        area = (boxes[..., 2:] - boxes[..., :2]).prod(-1)
        overlap = inter / (area[:, :, None] + area[:, None] - inter)
        worse = torch.triu(overlap, diagonal=1).amax(1) > 0.5
        return boxes.clamp(0, max(h, w) * self.stride), score.masked_fill(worse, 0.0), label.gather(1, order)


@case("head.0", "head.2", "head.3")
def boxes_of_a_grid():
    return Boxes(), (randn(2, 8, 5, 6),), (randn(1, 8, 7, 4),), (randn(1, 8, 2, 3),)


class Delayed(nn.Module):
    """Codes of several books, each delayed by one more step, and put back in line."""

    def __init__(self, books: int = 3) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(9, 6) for _ in range(books))
        self.heads = nn.ModuleList(nn.Linear(6, 8) for _ in range(books))
        self.rnn = nn.GRU(6, 6, batch_first=True)

    def forward(self, codes: Tensor) -> Tensor:
        b, k, n = codes.shape
        delayed = torch.full((b, k, n + k - 1), 8, dtype=torch.long)
        for i in range(k):
            delayed[:, i, i : i + n] = codes[:, i]
        x = sum(table(delayed[:, i]) for i, table in enumerate(self.tables))
        y, _ = self.rnn(x)
        logits = torch.stack([head(y) for head in self.heads], dim=1)
        return torch.stack([logits[:, i, i : i + n] for i in range(k)], dim=1)


@case("codes.0", "codes.2")
def books_of_codes_with_delays():
    def call(b: int, n: int):
        return (torch.randint(0, 8, (b, 3, n)),)

    return Delayed(), call(2, 5), call(1, 9)
