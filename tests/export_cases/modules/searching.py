"""Choosing step by step: suppression, beams, samples that are given, acceptance, pointers, trees."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import Tensor, nn, randn

from tests.export_cases.case import case


def overlap(box: Tensor, boxes: Tensor) -> Tensor:
    """Intersection over union of one box with many."""
    left, right = torch.max(box[:2], boxes[:, :2]), torch.min(box[2:], boxes[:, 2:])
    inside = (right - left).clamp(min=0).prod(1)
    return inside / ((box[2:] - box[:2]).prod() + (boxes[:, 2:] - boxes[:, :2]).prod(1) - inside)


class Suppression(nn.Module):
    """Detections above a score, suppressed by hand in a loop."""

    def forward(self, boxes: Tensor, scores: Tensor) -> Tensor:
        order = scores.argsort(descending=True)
        boxes, scores = boxes[order], scores[order]
        keep = torch.ones(boxes.shape[0], dtype=torch.bool)
        for i in range(boxes.shape[0]):
            if keep[i]:
                other = overlap(boxes[i], boxes) > 0.5
                other[: i + 1] = False
                keep = keep & ~other
        return order[keep]


def _boxes(n: int) -> tuple[Tensor, Tensor]:
    corner = torch.rand(n, 2) * 3
    return torch.cat([corner, corner + 1 + torch.rand(n, 2)], 1), torch.rand(n)


@case("boxes.0", "scores.0")
def suppression_in_a_loop():
    return Suppression(), _boxes(6), _boxes(9)


class SoftSuppression(nn.Module):
    """Soft NMS: scores decay, a fixed number is kept."""

    def forward(self, boxes: Tensor, scores: Tensor) -> tuple[Tensor, Tensor]:
        chosen, values = [], []
        for _ in range(4):
            best = scores.argmax()
            chosen.append(boxes[best])
            values.append(scores[best])
            scores = scores * torch.exp(-(overlap(boxes[best], boxes) ** 2) / 0.5)
        return torch.stack(chosen), torch.stack(values)


@case("boxes.0", "scores.0")
def soft_suppression():
    return SoftSuppression(), _boxes(6), _boxes(10)


class YoloHead(nn.Module):
    """A YOLO head: grids made for the size, boxes decoded and filtered by confidence."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(4, 2 * 7, 1)
        self.register_buffer("anchors", torch.tensor([[10.0, 13.0], [33.0, 23.0]]))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        b, _, h, w = x.shape
        p = self.conv(x).view(b, 2, 7, h, w).permute(0, 1, 3, 4, 2).sigmoid()
        ys, xs = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
        grid = torch.stack((xs, ys), 2).view(1, 1, h, w, 2).float()
        centre = (p[..., :2] * 2 - 0.5 + grid) * 8
        size = (p[..., 2:4] * 2) ** 2 * self.anchors.view(1, 2, 1, 1, 2)
        flat = torch.cat([centre, size, p[..., 4:]], -1).view(b, -1, 7)
        score = flat[..., 4:5] * flat[..., 5:]
        best, label = score.max(-1)
        mask = best > 0.25
        return flat[..., :4][mask], best[mask], label[mask]


@case("x.0", "x.2", "x.3")
def yolo_head():
    return YoloHead(), (randn(2, 4, 5, 6),), (randn(1, 4, 7, 4),)


class BeamStep(nn.Module):
    """One step of a beam search over a cache that is reordered."""

    def __init__(self, words: int = 9, width: int = 4, beams: int = 3) -> None:
        super().__init__()
        self.beams, self.words = beams, words
        self.embed, self.out = nn.Embedding(words, width), nn.Linear(width, words)

    def forward(self, tokens: Tensor, scores: Tensor, cache: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        b = tokens.shape[0] // self.beams
        h = self.embed(tokens[:, -1]) + cache.mean(1)
        cache = torch.cat([cache, h.unsqueeze(1)], 1)
        logp = self.out(h).log_softmax(-1) + scores.view(-1, 1)
        best, index = logp.view(b, self.beams * self.words).topk(self.beams, dim=1)
        parent = torch.div(index, self.words, rounding_mode="floor")
        parent = (parent + torch.arange(b).unsqueeze(1) * self.beams).view(-1)
        tokens = torch.cat([tokens[parent], (index % self.words).view(-1, 1)], 1)
        return tokens, best.view(-1), cache.index_select(0, parent)


@case("tokens.0", "tokens.1")
def beam_step_with_cache():
    def call(b, t):
        return torch.randint(0, 9, (3 * b, t)), randn(3 * b), randn(3 * b, t, 4)

    return BeamStep(), call(2, 4), call(3, 6)


class Accept(nn.Module):
    """Speculative decoding: the longest prefix of the draft that is accepted, and one more token."""

    def forward(self, draft: Tensor, target: Tensor, tokens: Tensor, uniform: Tensor) -> tuple[Tensor, Tensor]:
        p = target[:-1].gather(1, tokens.unsqueeze(1)).squeeze(1)
        q = draft.gather(1, tokens.unsqueeze(1)).squeeze(1)
        accepted = uniform < torch.clamp(p / q, max=1.0)
        n = int(accepted.long().cumprod(0).sum())
        if n < tokens.shape[0]:
            rest = (target[n] - draft[n]).clamp(min=0)
            following = (rest / rest.sum()).argmax()
        else:
            following = target[n].argmax()
        return torch.cat([tokens[:n], following.view(1)]), torch.tensor(n)


@case("draft.0")
def speculative_acceptance():
    def call(k, least):
        draft, target = randn(k, 7).softmax(-1), randn(k + 1, 7).softmax(-1)
        return draft, target, torch.randint(0, 7, (k,)), torch.rand(k) * least

    return Accept(), call(4, 1.0), call(6, 1.0), call(3, 0.01)


class Prioritised(nn.Module):
    """Prioritised replay: uniform numbers in, indices and importance weights out."""

    def forward(self, priorities: Tensor, uniform: Tensor) -> tuple[Tensor, Tensor]:
        p = priorities.pow(0.6)
        total = p.cumsum(0)
        n = uniform.shape[0]
        segment = total[-1] / n
        index = torch.searchsorted(total, (torch.arange(n) + uniform) * segment)
        index = index.clamp(max=priorities.shape[0] - 1)
        weight = (priorities.shape[0] * p[index] / total[-1]).pow(-0.4)
        return index, weight / weight.max()


@case("priorities.0", "uniform.0")
def prioritised_sampling():
    return Prioritised(), (torch.rand(9), torch.rand(4)), (torch.rand(14), torch.rand(6))


class Pointer(nn.Module):
    """A pointer network: picks every input once."""

    def __init__(self, width: int = 5) -> None:
        super().__init__()
        self.encoder, self.cell = nn.LSTM(2, width, batch_first=True), nn.LSTMCell(2, width)
        self.w1, self.w2, self.v = nn.Linear(width, width), nn.Linear(width, width), nn.Linear(width, 1)

    def forward(self, points: Tensor) -> tuple[Tensor, Tensor]:
        b, n, _ = points.shape
        memory, (h, c) = self.encoder(points)
        h, c = h[0], c[0]
        x = torch.zeros(b, 2)
        visited = torch.zeros(b, n, dtype=torch.bool)
        tour, scores = [], []
        for _ in range(n):
            h, c = self.cell(x, (h, c))
            logits = self.v(torch.tanh(self.w1(memory) + self.w2(h).unsqueeze(1))).squeeze(-1)
            logits = logits.masked_fill(visited, float("-inf"))
            pick = logits.argmax(-1)
            scores.append(logits.log_softmax(-1).gather(1, pick.unsqueeze(1)).squeeze(1))
            visited = visited.scatter(1, pick.unsqueeze(1), True)
            x = points[torch.arange(b), pick]
            tour.append(pick)
        return torch.stack(tour, 1), torch.stack(scores, 1)


@case("points.0", "points.1")
def pointer_network():
    return Pointer(), (randn(2, 5, 2),), (randn(3, 8, 2),)


class TreeLstm(nn.Module):
    """A child-sum tree LSTM over nodes in topological order, children given by a padded table."""

    def __init__(self, width: int = 4) -> None:
        super().__init__()
        self.width = width
        self.iou, self.f, self.wf = nn.Linear(2 * width, 3 * width), nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x: Tensor, children: Tensor) -> Tensor:
        n = x.shape[0]
        h, c = torch.zeros(n + 1, self.width), torch.zeros(n + 1, self.width)
        for i in range(n):
            below = children[i]
            hs, cs = h[below], c[below]
            i_, o, u = self.iou(torch.cat([x[i], hs.sum(0)])).chunk(3)
            forget = torch.sigmoid(self.f(hs) + self.wf(x[i]))
            cell = i_.sigmoid() * u.tanh() + (forget * cs).sum(0)
            c[i] = cell
            h[i] = o.sigmoid() * cell.tanh()
        return h[n - 1]


@case("x.0")
def tree_lstm():
    sample = randn(4, 4), torch.tensor([[4, 4], [4, 4], [0, 1], [2, 4]])
    other = randn(5, 4), torch.tensor([[5, 5], [5, 5], [0, 1], [5, 5], [2, 3]])
    return TreeLstm(), sample, other


class Stack(nn.Module):
    """Shift-reduce parsing: a stack in Python lists, actions in a tensor of fixed length."""

    def __init__(self, width: int = 4) -> None:
        super().__init__()
        self.reduce = nn.Linear(2 * width, width)

    def forward(self, tokens: Tensor) -> Tensor:
        stack = []
        for i in range(tokens.shape[0]):
            stack.append(tokens[i])
            if i % 2 == 1:
                right, left = stack.pop(), stack.pop()
                stack.append(torch.tanh(self.reduce(torch.cat([left, right]))))
        return torch.stack(stack).sum(0)


@case("tokens.0")
def shift_and_reduce():
    return Stack(), (randn(6, 4),), (randn(9, 4),)


class Ponder(nn.Module):
    """Adaptive computation time: steps until the halting probability is used up."""

    def __init__(self, width: int = 4) -> None:
        super().__init__()
        self.cell, self.halt = nn.GRUCell(width, width), nn.Linear(width, 1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        h = torch.zeros_like(x)
        total, out, steps = torch.zeros(x.shape[0]), torch.zeros_like(x), 0
        while bool((total < 0.99).any()) and steps < 8:
            h = self.cell(x, h)
            p = torch.sigmoid(self.halt(h)).squeeze(-1)
            p = torch.where(total + p > 0.99, 1 - total, p)
            out = out + p.unsqueeze(-1) * h
            total = total + p
            steps += 1
        return out, total


@case("x.0")
def adaptive_computation_time():
    return Ponder(), (randn(3, 4),), (randn(5, 4),)


class GreedyTransducer(nn.Module):
    """Greedy RNN-T: frames one by one, a label state that moves when something is emitted."""

    def __init__(self, width: int = 4, words: int = 5) -> None:
        super().__init__()
        self.embed, self.cell = nn.Embedding(words, width), nn.GRUCell(width, width)
        self.joint = nn.Linear(width, words)

    def forward(self, frames: Tensor) -> Tensor:
        b, t, _ = frames.shape
        h = torch.zeros(b, 4)
        label = torch.zeros(b, dtype=torch.long)
        emitted = []
        state = self.cell(self.embed(label), h)
        for i in range(t):
            token = self.joint(torch.tanh(frames[:, i] + state)).argmax(-1)
            speaks = token != 0
            label = torch.where(speaks, token, label)
            new = self.cell(self.embed(label), state)
            state = torch.where(speaks.unsqueeze(1), new, state)
            emitted.append(token)
        return torch.stack(emitted, 1)


@case("frames.0", "frames.1")
def greedy_transducer():
    return GreedyTransducer(), (randn(2, 5, 4),), (randn(3, 9, 4),)


class SampleUntil(nn.Module):
    """A decoder that writes into a buffer until all have ended."""

    def __init__(self, words: int = 6, width: int = 4) -> None:
        super().__init__()
        self.embed, self.cell, self.out = nn.Embedding(words, width), nn.GRUCell(width, width), nn.Linear(width, words)

    def forward(self, state: Tensor) -> Tensor:
        b = state.shape[0]
        tokens = torch.zeros(b, 10, dtype=torch.long)
        token = torch.ones(b, dtype=torch.long)
        done = torch.zeros(b, dtype=torch.bool)
        for step in range(10):
            state = self.cell(self.embed(token), state)
            token = self.out(state).argmax(-1)
            token = torch.where(done, torch.zeros_like(token), token)
            tokens[:, step] = token
            done = done | (token == 2)
            if done.all():
                break
        return tokens


@case("state.0")
def decoding_into_a_buffer():
    return SampleUntil(), (randn(2, 4),), (randn(4, 4),)


class EditDistance(nn.Module):
    """Levenshtein distance by rows."""

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        row = torch.arange(b.shape[0] + 1)
        for i in range(a.shape[0]):
            previous, row = row, torch.cat([row[:1] + 1, row[1:]])
            current = [row[0]]
            for j in range(b.shape[0]):
                cost = (a[i] != b[j]).long()
                current.append(torch.min(torch.min(current[-1] + 1, previous[j + 1] + 1), previous[j] + cost))
            row = torch.stack(current)
        return row[-1]


@case("a.0", "b.0")
def edit_distance():
    return (
        EditDistance(),
        (torch.randint(0, 3, (4,)), torch.randint(0, 3, (5,))),
        (
            torch.randint(0, 3, (6,)),
            torch.randint(0, 3, (3,)),
        ),
    )


class LabelSmoother(nn.Module):
    """Median filter of labels, runs shorter than a minimum removed by a loop with state."""

    def forward(self, x: Tensor) -> Tensor:
        labels = (x > 0).long()
        out = labels.clone()
        current, run = labels[0], torch.tensor(0)
        for i in range(labels.shape[0]):
            if labels[i] == current:
                run = run + 1
            else:
                if run < 2:
                    out[i - 1] = labels[i]
                current = labels[i]
                run = torch.tensor(1)
        return out


@case("x.0")
def short_runs_removed():
    return LabelSmoother(), (randn(8),), (randn(13),)


class Norms(nn.Module):
    """A recurrence whose state is clipped where it grows."""

    def __init__(self, width: int = 4) -> None:
        super().__init__()
        self.cell = nn.RNNCell(3, width)

    def forward(self, x: Tensor) -> Tensor:
        h = torch.zeros(x.shape[0], 4)
        for t in range(x.shape[1]):
            h = self.cell(x[:, t], h)
            if h.norm() < 1:
                h = h * 1.5
        return h


@case("x.0", "x.1")
def state_scaled_by_its_norm():
    return Norms(), (randn(2, 5, 3),), (randn(3, 8, 3),)


class Huber(nn.Module):
    """Iteratively reweighted least squares for a line, five rounds."""

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        weight = torch.ones_like(x)
        for _ in range(5):
            total = weight.sum()
            mx, my = (weight * x).sum() / total, (weight * y).sum() / total
            slope = (weight * (x - mx) * (y - my)).sum() / (weight * (x - mx) ** 2).sum()
            offset = my - slope * mx
            residual = (y - slope * x - offset).abs()
            scale = residual.median().clamp(min=1e-3)
            weight = torch.where(residual <= 1.345 * scale, torch.ones_like(x), 1.345 * scale / residual)
        return torch.stack([slope, offset])


@case("x.0", "y.0")
def robust_line():
    return Huber(), (randn(9), randn(9)), (randn(14), randn(14))


class Mode(nn.Module):
    """The kind of decoder as a string; a mask given or made."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(4, 4)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        if mask is None:
            mask = torch.ones(x.shape[:2], dtype=torch.bool)
        lengths = mask.sum(1)
        longest = int(lengths.max())
        x, mask = x[:, :longest], mask[:, :longest]
        y = self.net(x).masked_fill(~mask.unsqueeze(-1), 0.0)
        return F.normalize(y.sum(1) / lengths.unsqueeze(1), dim=-1)


@case("x.0", "x.1")
def trimmed_to_the_longest():
    def call(b, t, most):
        lengths = torch.randint(1, most + 1, (b, 1))
        lengths[0] = most
        return randn(b, t, 4), torch.arange(t) < lengths

    return Mode(), call(2, 6, 4), call(3, 9, 9)
