"""A module of each kind of work: anchors, pointers, losses, filters, rotations, graphs, policies, tags, experts."""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import Tensor, nn, rand, randint, randn

from tests.export_cases.case import case


class Anchors(nn.Module):
    """Boxes of a grid of anchors, moved by predicted offsets and cut to the picture."""

    def __init__(self, stride: int = 4) -> None:
        super().__init__()
        self.stride = stride
        self.body = nn.Conv2d(3, 8, 3, stride=stride, padding=1)
        self.offsets, self.scores = nn.Conv2d(8, 12, 1), nn.Conv2d(8, 3, 1)
        self.register_buffer("sizes", torch.tensor([[8.0, 8.0], [16.0, 8.0], [8.0, 16.0]]))

    def forward(self, image: Tensor) -> tuple[Tensor, Tensor]:
        h, w = image.shape[-2:]
        f = self.body(image).relu()
        rows, columns = f.shape[-2:]
        ys, xs = torch.meshgrid(torch.arange(rows), torch.arange(columns), indexing="ij")
        centres = (torch.stack([xs, ys], -1).reshape(-1, 1, 2) + 0.5) * self.stride
        anchors = torch.cat([centres - self.sizes / 2, centres + self.sizes / 2], -1).reshape(-1, 4)
        deltas = self.offsets(f).unflatten(1, (3, 4)).permute(0, 3, 4, 1, 2).reshape(image.size(0), -1, 4)
        scores = self.scores(f).permute(0, 2, 3, 1).reshape(image.size(0), -1).sigmoid()
        boxes = anchors + deltas * self.stride
        boxes[..., 0::2] = boxes[..., 0::2].clamp(0, w)
        boxes[..., 1::2] = boxes[..., 1::2].clamp(0, h)
        return boxes, scores


@case("image.0", "image.2", "image.3")
def boxes_of_anchors():
    return Anchors(), (randn(2, 3, 16, 24),), (randn(1, 3, 20, 12),), (randn(3, 3, 33, 17),)


class BestBoxes(nn.Module):
    """The k best of each picture, fewer where there are fewer, with the class of each."""

    def __init__(self, k: int = 10) -> None:
        super().__init__()
        self.k = k

    def forward(self, boxes: Tensor, logits: Tensor) -> dict[str, Tensor]:
        scores = logits.softmax(-1)[..., :-1]
        flat = scores.flatten(1)
        best, index = flat.topk(min(self.k, flat.size(1)), dim=1)
        which = torch.div(index, scores.size(-1), rounding_mode="floor")
        labels = index % scores.size(-1)
        picked = torch.gather(boxes, 1, which.unsqueeze(-1).repeat(1, 1, 4))
        x, y, w, h = picked.unbind(-1)
        return {
            "scores": best,
            "labels": labels,
            "boxes": torch.stack([x - w / 2, y - h / 2, x + w / 2, y + h / 2], -1),
        }


@case("boxes.0", "boxes.1")
def the_best_boxes():
    return (
        BestBoxes(),
        (rand(2, 7, 4), randn(2, 7, 4)),
        (rand(1, 3, 4), randn(1, 3, 4)),
        (rand(3, 12, 4), randn(3, 12, 4)),
    )


class Pointer(nn.Module):
    """Decodes step by step for a fixed number of steps, never visiting a place twice."""

    def __init__(self, width: int = 8, steps: int = 4) -> None:
        super().__init__()
        self.steps = steps
        self.encoder = nn.Linear(2, width)
        self.cell = nn.LSTMCell(width, width)
        self.query, self.key = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, places: Tensor) -> tuple[Tensor, Tensor]:
        x = self.encoder(places)
        h = c = x.mean(1)
        at = x[:, 0]
        mask = torch.zeros(x.shape[:2], dtype=torch.bool)
        tour, total = [], torch.zeros(x.size(0))
        for _ in range(self.steps):
            h, c = self.cell(at, (h, c))
            scores = torch.einsum("bd,bnd->bn", self.query(h), self.key(x)) / math.sqrt(x.size(-1))
            logp = (10 * scores.tanh()).masked_fill(mask, float("-inf")).log_softmax(-1)
            value, index = logp.max(-1)
            total = total + value
            mask = mask.scatter(1, index[:, None], True)
            at = x[torch.arange(x.size(0)), index]
            tour.append(index)
        return torch.stack(tour, 1), total


@case("places.0", "places.1")
def pointer_decoder():
    return Pointer(), (rand(2, 6, 2),), (rand(1, 9, 2),), (rand(4, 5, 2),)


class Batch(NamedTuple):
    """Tokens, and how many of each row count."""

    tokens: Tensor
    lengths: Tensor


class Pooled(NamedTuple):
    """Three ways of seeing a row as one vector."""

    mean: Tensor
    last: Tensor
    top: Tensor


class Pooling(nn.Module):
    """Mean, last and maximum over what is not padding."""

    def __init__(self) -> None:
        super().__init__()
        self.emb = nn.Embedding(40, 6)

    def forward(self, batch: Batch) -> Pooled:
        x = self.emb(batch.tokens)
        mask = torch.arange(x.size(1))[None, :] < batch.lengths[:, None]
        x = x * mask.unsqueeze(-1)
        mean = x.sum(1) / batch.lengths.clamp_min(1).unsqueeze(1).to(x.dtype)
        last = x.gather(1, (batch.lengths - 1).clamp_min(0).view(-1, 1, 1).expand(-1, 1, x.size(2))).squeeze(1)
        top = x.masked_fill(~mask.unsqueeze(-1), torch.finfo(x.dtype).min).amax(1)
        return Pooled(mean, last, top)


@case("batch.tokens.0", "batch.tokens.1")
def poolings_of_rows():
    return (
        Pooling(),
        (Batch(randint(0, 40, (2, 7)), torch.tensor([7, 3])),),
        (Batch(randint(0, 40, (3, 4)), torch.tensor([4, 1, 2])),),
        (Batch(randint(0, 40, (1, 11)), torch.tensor([9])),),
    )


class Contrastive(nn.Module):
    """The symmetric loss of pairs, with a temperature that is learnt, and the accuracy in percent."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(6, 4), nn.Linear(5, 4)
        self.scale = nn.Parameter(torch.tensor(2.6593))

    def forward(self, pictures: Tensor, texts: Tensor) -> tuple[Tensor, Tensor]:
        a, b = F.normalize(self.a(pictures), dim=-1), F.normalize(self.b(texts), dim=-1)
        logits = self.scale.exp().clamp(max=100) * a @ b.t()
        target = torch.arange(logits.size(0))
        loss = (F.cross_entropy(logits, target) + F.cross_entropy(logits.t(), target)) / 2
        accuracy = (logits.argmax(1) == target).float().mean() * 100
        return loss, accuracy


@case("pictures.0")
def contrastive_loss():
    return Contrastive(), (randn(4, 6), randn(4, 5)), (randn(7, 6), randn(7, 5)), (randn(2, 6), randn(2, 5))


class Focal(nn.Module):
    """Focal and dice losses of a segmentation, where some pixels are ignored."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Conv2d(3, 4, 3, padding=1)

    def forward(self, x: Tensor, target: Tensor) -> dict[str, Tensor]:
        logits = self.head(x)
        valid = target != 255
        safe = torch.where(valid, target, 0)
        ce = F.cross_entropy(logits, target, ignore_index=255, reduction="none", label_smoothing=0.1)
        focal = ((1 - torch.exp(-ce)) ** 2 * ce).sum() / valid.sum()
        one_hot = F.one_hot(safe, 4).permute(0, 3, 1, 2) * valid[:, None]
        p = logits.softmax(1) * valid[:, None]
        dice = 1 - (2 * (p * one_hot).sum((0, 2, 3)) + 1) / (p.sum((0, 2, 3)) + one_hot.sum((0, 2, 3)) + 1)
        return {"focal": focal, "dice": dice.mean(), "each": dice}


def _labels(*shape: int) -> Tensor:
    target = randint(0, 4, shape)
    target[..., 0] = 255
    return target


@case("x.0", "x.2", "x.3")
def segmentation_losses():
    return (
        Focal(),
        (randn(2, 3, 6, 8), _labels(2, 6, 8)),
        (randn(1, 3, 5, 4), _labels(1, 5, 4)),
        (randn(3, 3, 9, 7), _labels(3, 9, 7)),
    )


class Spectrogram(nn.Module):
    """A mel spectrogram in decibels, normalised, below the top by no more than eighty."""

    def __init__(self, n: int = 32, hop: int = 8, mels: int = 6) -> None:
        super().__init__()
        self.n, self.hop = n, hop
        self.register_buffer("window", torch.hann_window(n))
        self.register_buffer("mel", rand(mels, n // 2 + 1))

    def forward(self, wave: Tensor) -> Tensor:
        wave = torch.cat([wave[:, :1], wave[:, 1:] - 0.97 * wave[:, :-1]], 1)
        s = torch.stft(wave, self.n, self.hop, window=self.window, center=True, pad_mode="reflect", return_complex=True)
        power = s.real**2 + s.imag**2
        db = 10 * torch.log10((self.mel @ power).clamp_min(1e-10))
        db = torch.maximum(db, db.amax((-2, -1), keepdim=True) - 80)
        mean, std = db.mean(-1, keepdim=True), db.std(-1, keepdim=True)
        return (db - mean) / (std + 1e-5)


@case("wave.0", "wave.1")
def mel_spectrogram():
    return Spectrogram(), (randn(2, 96),), (randn(1, 130),), (randn(3, 75),)


class Filter(nn.Module):
    """A biquad filter, sample by sample, then its envelope."""

    def __init__(self) -> None:
        super().__init__()
        self.b = nn.Parameter(torch.tensor([0.2, 0.3, 0.1]))
        self.a = nn.Parameter(torch.tensor([-0.4, 0.1]))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        x1 = x2 = y1 = y2 = torch.zeros_like(x[:, 0])
        out = torch.empty_like(x)
        for n in range(x.size(1)):
            y = self.b[0] * x[:, n] + self.b[1] * x1 + self.b[2] * x2 - self.a[0] * y1 - self.a[1] * y2
            x2, x1 = x1, x[:, n]
            y2, y1 = y1, y
            out[:, n] = y
        envelope = F.max_pool1d(out.abs().unsqueeze(1), 5, stride=1, padding=2).squeeze(1)
        return out, envelope


@case("x.0", "x.1")
def filter_by_sample():
    return Filter(), (randn(2, 12),), (randn(1, 20),), (randn(3, 7),)


class Peaks(nn.Module):
    """Where a signal peaks above its surroundings, and how many peaks lie before each sample."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        around = F.max_pool1d(x[:, None], 5, 1, 2)[:, 0]
        level = F.avg_pool1d(x[:, None], 9, 1, 4, count_include_pad=False)[:, 0]
        peak = (x == around) & (x > level + 0.5)
        before = peak.int().cumsum(1)
        where = torch.arange(x.size(1)).expand_as(x)
        last = torch.where(peak, where, -1).cummax(1).values
        return peak, before, where - last


@case("x.0", "x.1")
def peaks_of_a_signal():
    return Peaks(), (randn(2, 30),), (randn(1, 17),), (randn(4, 51),)


class Rotations(nn.Module):
    """Rotation vectors as matrices, with the series near zero, applied to points, and back as quaternions."""

    def forward(self, v: Tensor, points: Tensor) -> tuple[Tensor, Tensor]:
        angle = v.norm(dim=-1, keepdim=True)
        small = angle < 1e-4
        safe = torch.where(small, torch.ones_like(angle), angle)
        s = torch.where(small, 1 - angle**2 / 6, safe.sin() / safe)[..., None]
        c = torch.where(small, 0.5 - angle**2 / 24, (1 - safe.cos()) / safe**2)[..., None]
        zero = torch.zeros_like(v[..., 0])
        x, y, z = v.unbind(-1)
        k = torch.stack([zero, -z, y, z, zero, -x, -y, x, zero], -1).view(*v.shape[:-1], 3, 3)
        r = torch.eye(3) + s * k + c * (k @ k)
        moved = torch.einsum("bij,bnj->bni", r, points)
        half = angle / 2
        q = torch.cat([half.cos(), torch.where(small, 0.5 * v, half.sin() * v / safe)], -1)
        return moved, q


@case("v.0", "points.1")
def rotations_of_points():
    v = randn(3, 3)
    v[0] = 0
    return Rotations(), (v, randn(3, 5, 3)), (randn(1, 3), randn(1, 8, 3)), (randn(5, 3), randn(5, 2, 3))


class Farthest(nn.Module):
    """Farthest points are sampled, and the nearest neighbours of each are gathered and pooled."""

    def __init__(self, samples: int = 4, k: int = 3) -> None:
        super().__init__()
        self.samples, self.k = samples, k
        self.mlp = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 5))

    def forward(self, points: Tensor) -> tuple[Tensor, Tensor]:
        b, n, _ = points.shape
        chosen = torch.zeros(b, self.samples, dtype=torch.long)
        distance = torch.full((b, n), 1e10)
        farthest = torch.zeros(b, dtype=torch.long)
        rows = torch.arange(b)
        for i in range(self.samples):
            chosen[:, i] = farthest
            centre = points[rows, farthest, :].view(b, 1, 3)
            d = ((points - centre) ** 2).sum(-1)
            distance = torch.min(distance, d)
            farthest = distance.max(-1).indices
        centres = points[rows[:, None], chosen]
        near = torch.cdist(centres, points).topk(self.k, largest=False).indices
        groups = points[rows[:, None, None], near] - centres[:, :, None]
        return self.mlp(groups).max(2).values, chosen


@case("points.0", "points.1")
def farthest_point_sampling():
    return Farthest(), (randn(2, 10, 3),), (randn(1, 7, 3),), (randn(3, 15, 3),)


class GraphAttention(nn.Module):
    """Attention over the edges of a graph: a softmax by segments, self-loops added, nodes pooled by graph."""

    def __init__(self, width: int = 6, heads: int = 2) -> None:
        super().__init__()
        self.heads = heads
        self.lin = nn.Linear(width, heads * 4, bias=False)
        self.left, self.right = nn.Parameter(randn(heads, 4)), nn.Parameter(randn(heads, 4))

    def forward(self, x: Tensor, edges: Tensor, graph: Tensor) -> Tensor:
        n = x.size(0)
        edges = torch.cat([edges, torch.arange(n).expand(2, n)], 1)
        source, target = edges
        h = self.lin(x).view(n, self.heads, 4)
        a = F.leaky_relu((h * self.left).sum(-1)[source] + (h * self.right).sum(-1)[target], 0.2)
        index = target[:, None].expand_as(a)
        top = torch.full((n, self.heads), float("-inf")).scatter_reduce(0, index, a, "amax")
        e = (a - top[target]).exp()
        total = torch.zeros(n, self.heads).index_add_(0, target, e)
        alpha = e / total[target]
        out = torch.zeros_like(h).index_add_(0, target, h[source] * alpha[..., None]).flatten(1)
        count = int(graph.max()) + 1
        pooled = torch.zeros(count, out.size(1)).scatter_reduce(
            0, graph[:, None].expand_as(out), out, "mean", include_self=False
        )
        return pooled


def _graph(nodes: int, edges: int, graphs: int) -> tuple[Tensor, Tensor, Tensor]:
    graph = torch.arange(nodes) * graphs // nodes
    return randn(nodes, 6), randint(0, nodes, (2, edges)), graph


@case("x.0", "edges.1")
def attention_over_edges():
    return GraphAttention(), _graph(7, 12, 2), _graph(5, 4, 1), _graph(11, 20, 3)


class Policy(nn.Module):
    """An actor and critic with a mask of actions: a squashed normal, a categorical, and the entropy."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(5, 8), nn.Tanh())
        self.pi, self.mean, self.value = nn.Linear(8, 4), nn.Linear(8, 2), nn.Linear(8, 1)
        self.log_std = nn.Parameter(torch.zeros(2))

    def forward(self, obs: Tensor, legal: Tensor) -> dict[str, Tensor]:
        h = self.body(obs.float() / 255.0)
        logits = torch.where(legal.bool(), self.pi(h), torch.tensor(-1e9))
        discrete = torch.distributions.Categorical(logits=logits)
        normal = torch.distributions.Normal(self.mean(h), self.log_std.exp())
        action = torch.tanh(normal.mean)
        raw = torch.atanh(action.clamp(-0.999, 0.999))
        logp = (normal.log_prob(raw) - torch.log(1 - action**2 + 1e-6)).sum(-1)
        return {
            "greedy": discrete.probs.argmax(-1),
            "entropy": discrete.entropy(),
            "action": action,
            "logp": logp,
            "value": self.value(h).squeeze(-1),
        }


@case("obs.0")
def policy_with_illegal_actions():
    def inputs(n):
        legal = randint(0, 2, (n, 4), dtype=torch.uint8)
        legal[:, 0] = 1
        return randint(0, 256, (n, 5), dtype=torch.uint8), legal

    return Policy(), inputs(3), inputs(1), inputs(6)


class Returns(nn.Module):
    """Advantages by backward recursion over rewards, normalised over what was not finished."""

    def __init__(self, gamma: float = 0.99, lam: float = 0.95) -> None:
        super().__init__()
        self.gamma, self.lam = gamma, lam

    def forward(self, rewards: Tensor, values: Tensor, done: Tensor) -> tuple[Tensor, Tensor]:
        advantages = torch.zeros_like(rewards)
        running = torch.zeros(rewards.shape[1])
        for t in reversed(range(rewards.shape[0])):
            alive = 1.0 - done[t].float()
            delta = rewards[t] + self.gamma * values[t + 1] * alive - values[t]
            running = delta + self.gamma * self.lam * alive * running
            advantages[t] = running
        returns = advantages + values[:-1]
        return (advantages - advantages.mean()) / (advantages.std() + 1e-8), returns


@case("rewards.0", "rewards.1")
def advantages_backward():
    return (
        Returns(),
        (randn(5, 2), randn(6, 2), rand(5, 2) > 0.7),
        (randn(9, 3), randn(10, 3), rand(9, 3) > 0.7),
        (randn(3, 1), randn(4, 1), torch.zeros(3, 1, dtype=torch.bool)),
    )


class Tagger(nn.Module):
    """The best path of a conditional random field, and the sum over all of them."""

    def __init__(self, tags: int = 4) -> None:
        super().__init__()
        self.trans, self.start, self.end = (nn.Parameter(randn(*s)) for s in ((tags, tags), (tags,), (tags,)))
        self.emit = nn.Linear(5, tags)

    def forward(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        e = self.emit(x).transpose(0, 1)
        m = mask.transpose(0, 1)
        alpha, best, back = self.start + e[0], self.start + e[0], []
        for i in range(1, e.size(0)):
            step = alpha.unsqueeze(2) + self.trans + e[i].unsqueeze(1)
            alpha = torch.where(m[i].unsqueeze(1), step.logsumexp(1), alpha)
            score, pointer = (best.unsqueeze(2) + self.trans).max(1)
            best = torch.where(m[i].unsqueeze(1), score + e[i], best)
            back.append(torch.where(m[i].unsqueeze(1), pointer, torch.arange(4).expand_as(pointer)))
        total = (alpha + self.end).logsumexp(1)
        tag = (best + self.end).argmax(1)
        path = [tag]
        for pointer in reversed(back):
            tag = pointer.gather(1, tag.unsqueeze(1)).squeeze(1)
            path.append(tag)
        return torch.stack(path[::-1], 1), total


def _masked(batch: int, length: int, *kept: int) -> tuple[Tensor, Tensor]:
    return randn(batch, length, 5), torch.arange(length)[None] < torch.tensor(kept)[:, None]


@case("x.0", "x.1")
def tagger_with_best_path():
    return Tagger(), _masked(2, 6, 6, 4), _masked(3, 9, 9, 2, 5), _masked(1, 4, 4)


class Bytes(nn.Module):
    """Bytes hashed as n-grams into an embedding, averaged by word."""

    def __init__(self, n: int = 3, buckets: int = 50) -> None:
        super().__init__()
        self.n, self.buckets = n, buckets
        self.emb = nn.Embedding(buckets, 6)
        self.out = nn.Linear(6, 2)

    def forward(self, text: Tensor) -> Tensor:
        codes = text.long()
        grams = codes.unfold(1, self.n, 1)
        powers = 257 ** torch.arange(self.n)
        ids = (grams * powers).sum(-1) % self.buckets
        blank = (grams == 32).any(-1)
        x = self.emb(ids) * ~blank[..., None]
        return self.out(x.sum(1) / (~blank).sum(1, keepdim=True).clamp(min=1))


@case("text.0", "text.1")
def hashed_ngrams():
    def text(b, t):
        return (randint(30, 100, (b, t), dtype=torch.uint8),)

    return Bytes(), text(2, 12), text(1, 7), text(3, 20)


class Windows(nn.Module):
    """Attention within overlapping windows of a row that is padded to whole strides."""

    def __init__(self, width: int = 8, window: int = 6, stride: int = 3) -> None:
        super().__init__()
        self.window, self.stride = window, stride
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        b, t, d = x.shape
        extra = (self.stride - (t - self.window) % self.stride) % self.stride if t > self.window else self.window - t
        q, k, v = self.qkv(F.pad(x, (0, 0, 0, extra))).chunk(3, -1)
        q, k, v = (y.unfold(1, self.window, self.stride).transpose(2, 3) for y in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v)
        n = t + extra
        places = torch.arange(n).unfold(0, self.window, self.stride).reshape(-1)
        summed = torch.zeros(b, n, d).index_add(1, places, y.flatten(1, 2))
        counts = torch.zeros(n).index_add(0, places, torch.ones(places.shape))
        return self.out((summed / counts[None, :, None])[:, :t])


@case("x.0", "x.1")
def overlapping_windows():
    return Windows(), (randn(2, 14, 8),), (randn(1, 9, 8),), (randn(3, 21, 8),)


class Quantiser(nn.Module):
    """Residual vector quantisation: codes of several books, what they decode to, and the commitment."""

    def __init__(self, books: int = 3, codes: int = 8, width: int = 4) -> None:
        super().__init__()
        self.books = nn.ParameterList([nn.Parameter(randn(codes, width)) for _ in range(books)])

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        rest, codes, decoded, loss = x.transpose(1, 2), [], 0.0, 0.0
        for book in self.books:
            flat = rest.reshape(-1, book.size(1))
            d = flat.pow(2).sum(1, keepdim=True) - 2 * flat @ book.t() + book.pow(2).sum(1)
            index = d.argmin(1).view(rest.shape[:-1])
            q = F.embedding(index, book)
            loss = loss + F.mse_loss(q.detach(), rest)
            q = rest + (q - rest).detach()
            rest, decoded = rest - q, decoded + q
            codes.append(index)
        return torch.stack(codes), decoded.transpose(1, 2), loss


@case("x.0", "x.2")
def residual_quantiser():
    return Quantiser(), (randn(2, 4, 9),), (randn(1, 4, 5),), (randn(3, 4, 16),)


class Kalman(nn.Module):
    """A linear filter over a row of measurements, some of which are missing."""

    def __init__(self) -> None:
        super().__init__()
        self.f = nn.Parameter(torch.tensor([[1.0, 0.1], [0.0, 0.95]]))
        self.h = nn.Parameter(torch.tensor([[1.0, 0.0]]))
        self.q, self.r = nn.Parameter(0.01 * torch.eye(2)), nn.Parameter(torch.tensor([[0.1]]))

    def forward(self, z: Tensor) -> Tensor:
        x = torch.zeros(z.size(0), 2, 1)
        p = torch.eye(2).repeat(z.size(0), 1, 1)
        states = []
        for m in z.unbind(1):
            x, p = self.f @ x, self.f @ p @ self.f.T + self.q
            s = self.h @ p @ self.h.T + self.r
            k = torch.linalg.solve(s, self.h @ p).mT
            seen = ~torch.isnan(m)
            y = torch.where(seen, m, 0.0).view(-1, 1, 1) - self.h @ x * seen.view(-1, 1, 1)
            k = k * seen.view(-1, 1, 1)
            x = x + k @ y
            p = (torch.eye(2) - k @ self.h) @ p
            states.append(x.squeeze(-1))
        return torch.stack(states, 1)


@case("z.0", "z.1")
def kalman_filter():
    z = randn(2, 7)
    z[0, 3] = float("nan")
    return Kalman(), (z,), (randn(1, 4),), (randn(3, 11),)


class Crops(nn.Module):
    """A crop of a fixed size around the brightest point of each picture."""

    def __init__(self, size: int = 5) -> None:
        super().__init__()
        self.size = size
        self.conv = nn.Conv2d(1, 2, 3)

    def forward(self, image: Tensor) -> tuple[Tensor, Tensor]:
        b, w = image.size(0), image.size(3)
        heat = F.avg_pool2d(image.mean(1, keepdim=True), 3, 1, 1)
        index = heat.flatten(1).argmax(1)
        y, x = index // w, index % w
        r = self.size // 2
        padded = F.pad(image, [r, r, r, r], mode="replicate")
        rows = y[:, None] + torch.arange(self.size)
        columns = x[:, None] + torch.arange(self.size)
        crop = padded[torch.arange(b)[:, None, None], :, rows[:, :, None], columns[:, None, :]]
        return self.conv(crop.permute(0, 3, 1, 2)), torch.stack([y, x], 1)


@case("image.0", "image.2", "image.3")
def crops_around_the_brightest():
    return Crops(), (randn(2, 1, 9, 12),), (randn(1, 1, 7, 8),), (randn(3, 1, 16, 11),)


class Splatting(nn.Module):
    """Features of points are written into a grid seen from above, by their coordinates; those outside are dropped."""

    def __init__(self, cells: int = 6) -> None:
        super().__init__()
        self.cells = cells
        self.lift = nn.Linear(4, 5)
        self.net = nn.Conv2d(5, 3, 3, padding=1)

    def forward(self, points: Tensor) -> Tensor:
        b = points.size(0)
        features = self.lift(points).relu()
        cell = ((points[..., :2] + 1) / 2 * self.cells).floor().to(torch.int32)
        inside = ((cell >= 0) & (cell < self.cells)).all(-1)
        index = (torch.arange(b)[:, None] * self.cells + cell[..., 1]) * self.cells + cell[..., 0]
        grid = features.new_zeros(b * self.cells * self.cells, 5)
        grid.index_put_((index[inside].long(),), features[inside], accumulate=True)
        return self.net(grid.view(b, self.cells, self.cells, 5).permute(0, 3, 1, 2).contiguous())


@case("points.0", "points.1")
def splatting_points():
    return Splatting(), (randn(2, 9, 4),), (randn(1, 14, 4),), (randn(3, 5, 4),)


class Experts(nn.Module):
    """The two best experts of every token, each run on its tokens alone, with a loss of balance."""

    def __init__(self, width: int = 6, experts: int = 4) -> None:
        super().__init__()
        self.gate = nn.Linear(width, experts)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 8), nn.GELU(), nn.Linear(8, width)) for _ in range(experts)
        )

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        flat = x.reshape(-1, x.size(-1))
        p = self.gate(flat).softmax(-1)
        weights, chosen = p.topk(2, -1)
        weights = weights / weights.sum(-1, keepdim=True)
        out = torch.zeros_like(flat)
        for i, expert in enumerate(self.experts):
            token, slot = torch.where(chosen == i)
            if token.numel() == 0:
                continue
            out[token] += weights[token, slot, None] * expert(flat[token])
        share = F.one_hot(chosen, len(self.experts)).float().mean((0, 1))
        return out.view_as(x), (share * p.mean(0)).sum() * len(self.experts)


@case("x.0", "x.1")
def two_best_experts():
    return Experts(), (randn(2, 5, 6),), (randn(1, 8, 6),), (randn(3, 3, 6),)


class Calendar(nn.Module):
    """Seconds since an epoch become sines, one embedding for each part of the date, and a forecast."""

    def __init__(self) -> None:
        super().__init__()
        self.hour, self.day = nn.Embedding(24, 3), nn.Embedding(7, 3)
        self.out = nn.Linear(11, 1)

    def forward(self, seconds: Tensor, values: Tensor) -> Tensor:
        hours = torch.div(seconds, 3600, rounding_mode="floor")
        day = torch.div(hours, 24, rounding_mode="trunc") % 7
        phase = (seconds % 86400).double() / 86400 * 2 * math.pi
        gap = torch.diff(seconds, dim=1, prepend=seconds[:, :1]).clamp(max=7200).float() / 3600
        smooth = values.float().cumsum(1) / torch.arange(1, values.size(1) + 1)
        x = torch.cat(
            [
                self.hour(hours % 24),
                self.day(day),
                torch.stack([phase.sin(), phase.cos()], -1).float(),
                gap[..., None],
                smooth[..., None],
                values.float()[..., None],
            ],
            -1,
        )
        return self.out(x).squeeze(-1)


@case("seconds.0", "seconds.1")
def features_of_a_calendar():
    def inputs(b, t):
        return randint(0, 10**9, (b, t)).sort(1).values, randn(b, t, dtype=torch.float16)

    return Calendar(), inputs(2, 6), inputs(1, 9), inputs(4, 3)


class Retrieval(nn.Module):
    """Queries against a bank: chunks of the bank one after another, the best merged on the way."""

    def __init__(self, size: int = 23, chunk: int = 8, k: int = 3) -> None:
        super().__init__()
        self.chunk, self.k = chunk, k
        self.register_buffer("bank", F.normalize(randn(size, 6), dim=1))

    def forward(self, query: Tensor, allowed: Tensor | None = None) -> tuple[Tensor, Tensor]:
        query = F.normalize(query, dim=-1)
        best = query.new_full((query.size(0), self.k), -math.inf)
        ids = torch.full((query.size(0), self.k), -1)
        for start in range(0, self.bank.size(0), self.chunk):
            s = query @ self.bank[start : start + self.chunk].T
            if allowed is not None:
                s = s.masked_fill(~allowed[:, start : start + self.chunk], -math.inf)
            both = torch.cat([best, s], 1)
            names = torch.cat([ids, torch.arange(start, start + s.size(1)).expand(s.shape)], 1)
            best, index = both.topk(self.k, 1)
            ids = names.gather(1, index)
        return best, ids


@case("query.0")
def best_of_a_bank():
    return (
        Retrieval(),
        (randn(3, 6), rand(3, 23) > 0.3),
        (randn(1, 6), rand(1, 23) > 0.3),
        (randn(5, 6), rand(5, 23) > 0.3),
    )


class Diffusion(nn.Module):
    """A few steps of a sampler without noise, with guidance, from a schedule in double precision."""

    def __init__(self, steps: int = 4) -> None:
        super().__init__()
        betas = torch.linspace(1e-4, 0.02, 100, dtype=torch.float64)
        self.register_buffer("alphas", torch.cumprod(1 - betas, 0))
        self.steps = steps
        self.net = nn.Sequential(nn.Conv1d(5, 8, 3, padding=1), nn.SiLU(), nn.Conv1d(8, 2, 3, padding=1))
        self.label = nn.Embedding(4, 2)

    def _noise(self, x: Tensor, t: Tensor, label: Tensor) -> Tensor:
        clock = (t.float() / 100).view(-1, 1, 1).expand(-1, 1, x.size(2))
        return self.net(torch.cat([x, clock, self.label(label)[..., None].expand(-1, -1, x.size(2))], 1))

    def forward(self, x: Tensor, label: Tensor, guidance: Tensor) -> Tensor:
        times = torch.linspace(99, 0, self.steps + 1).long()
        for now, then in itertools.pairwise(times):
            t = now.expand(x.size(0))
            with_label, without = self._noise(x, t, label), self._noise(x, t, torch.full_like(label, 3))
            e = without + guidance.view(-1, 1, 1) * (with_label - without)
            a, b = self.alphas[now].float(), self.alphas[then].float()
            x0 = ((x - (1 - a).sqrt() * e) / a.sqrt()).clamp(-3, 3)
            x = b.sqrt() * x0 + (1 - b).sqrt() * e
        return x


@case("x.0", "x.2")
def guided_sampler():
    def inputs(b, t):
        return randn(b, 2, t), randint(0, 3, (b,)), rand(b) * 3

    return Diffusion(), inputs(2, 8), inputs(1, 13), inputs(3, 5)
