"""Modules with branches and loops of Python, a sample for each, and other inputs."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import nn


class Module(nn.Module):
    """A few weights for the modules below."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)
        self.cell, self.parts = nn.GRUCell(4, 4), nn.ModuleList(nn.Linear(4, 4) for _ in range(3))


def x(*shape: int, scale: float = 1.0) -> torch.Tensor:
    return scale * torch.from_numpy(np.random.default_rng(sum(shape)).standard_normal(shape, np.float32))


# --- branches on values


class IfElse(Module):
    def forward(self, x):
        if x.sum() > 0:
            y = self.a(x)
        else:
            y = self.b(x) - 1
        return y


class IfOnly(Module):
    def forward(self, x):
        if (x > 1).any() and not x.mean() > 100:
            x = x.clamp(max=1)
        return x + 1


class Deleted(Module):
    def forward(self, x):
        large = x.sum() > 0
        extra = self.b(x)
        if large:
            half = self.a(x)
            y = half + extra
            del half, extra
        else:
            y = x - 1
        return y * 2


class EarlyReturn(Module):
    def forward(self, x):
        if x.mean() > 0:
            return x * 2
        y = self.a(x)
        return y.relu() + 3


class Chain(Module):
    def forward(self, x):
        size = x.abs().max()
        if size > 10:
            return x / size
        elif size > 1:  # noqa: RET505 - as users write it
            scale = 0.5
        else:
            scale = 2.0
        return x * scale


class Ternary(Module):
    def forward(self, x):
        return x * (2.0 if x.sum() > 0 else 0.5)


class Nested(Module):
    def forward(self, x):
        return self.a(self.gate(x)) + self.gate(-x)

    def gate(self, x):
        if x.mean() > 0:
            if x.max() > 2:
                x = x / 2
            x = x * 3
        return x


class EarlyExit(Module):
    def forward(self, x):
        for part in self.parts:
            x = torch.tanh(part(x))
            if x.abs().max() > 0.7:
                return x
        return x


class WrittenTo(Module):
    def forward(self, x):
        out = torch.zeros_like(x)
        for part in self.parts:
            mine = part(x)[:, 0] > 0
            if mine.any():
                out[mine] += part(x[mine])
        return out


class Checked(Module):
    def forward(self, x):
        assert not torch.isnan(x).any(), "not a number"
        if torch.isinf(x).any():
            raise ValueError("infinite")
        return self.a(x)


class Item(Module):
    def forward(self, x):
        count = int((x[:, 0] > 0).sum().item())
        return x[:count].sum(0) + count


# --- loops that end when a value says so


class While(Module):
    def forward(self, x):
        steps = 0
        while x.norm() > 1.0 and steps < 50:
            x, steps = x * 0.5, steps + 1
        return x, torch.tensor(1.0) * steps


class Break(Module):
    def forward(self, x):
        x = x.abs() + 1
        y = x / 2
        for _ in range(30):
            new = 0.5 * (y + x / y)
            if (new - y).abs().max() < 1e-5:
                break
            y = new
        return y


class Forever(Module):
    def forward(self, x):
        y = torch.ones_like(x)
        while True:
            new = 0.5 * (y + (1 + x * x) / y)
            if torch.allclose(new, y, rtol=1e-4):
                return new
            y = new


class Decoded(Module):
    def forward(self, x):
        out = [x.argmax(-1)]
        while len(out) < 7 and not (out[-1] == 3).all():
            x = torch.tanh(self.a(x)) + self.b(x)
            out.append(x.argmax(-1))
        return torch.stack(out, 1)


class Routed(Module):
    """Each part takes the rows that are its own, told by two indices of one length, and is skipped without any."""

    def forward(self, x):
        chosen = (x @ self.a.weight)[:, :3].topk(2, -1).indices
        result = torch.zeros_like(x)
        for at, part in enumerate(self.parts):
            row, place = torch.where(chosen == at)
            if row.numel() == 0:
                continue
            result[row] += x[row, place, None] * part(x[row])
        return result


class Counted(Module):
    def forward(self, x):
        for _ in range(int(x.abs().max()) + 1):
            x = torch.sin(x) + self.a(x) * 0.1
        return x


# --- loops over a length


class OverRange(Module):
    def forward(self, x):
        h, out = x.new_zeros(x.shape[0], 4), []
        for t in range(x.shape[1]):
            h = self.cell(x[:, t], h)
            out.append(self.a(h))
        return torch.stack(out, 1), h


class OverTensor(Module):
    def forward(self, x):
        h = torch.zeros_like(x[:, 0])
        for i, step in enumerate(x.unbind(1)):
            h = torch.tanh(self.a(step) + h) * (i + 1)
        return h


class Backwards(Module):
    def forward(self, x):
        h, out = torch.zeros_like(x[:, 0]), []
        for t in reversed(range(x.shape[1])):
            h = torch.sigmoid(self.a(h) + x[:, t])
            out.insert(0, h)
        return torch.cat([each.unsqueeze(1) for each in out], 1)


class FirstDiffers(Module):
    def forward(self, x):
        h = None
        for t in range(x.shape[1]):
            h = x[:, t] if h is None else torch.tanh(self.a(h) + x[:, t])
        return h


class InPlace(Module):
    def forward(self, x):
        out, mean = torch.zeros_like(x), x[:, 0]
        for t in range(x.size(1)):
            mean = 0.9 * mean + 0.1 * x[:, t]
            out[:, t] = mean
        return out


class Attending(Module):
    def forward(self, x):
        out = []
        for t in range(x.shape[1]):
            keys = x[:, : t + 1]
            weight = (keys @ x[:, t].unsqueeze(-1)).softmax(1)
            out.append((weight * keys).sum(1))
        return torch.stack(out, 1)


class Twice(Module):
    def forward(self, x):
        states = [torch.zeros_like(x[:, 0]) for _ in self.parts]
        out = []
        for t in range(x.shape[1]):
            step = x[:, t]
            for k, part in enumerate(self.parts):
                states[k] = torch.tanh(part(step) + states[k])
                step = states[k]
            out.append(step)
        return torch.stack(out, 1), torch.stack(states, 1)


class Best(Module):
    def forward(self, x):
        score, history = x[:, 0], []
        for t in range(1, x.shape[1]):
            score, index = (score.unsqueeze(2) + self.a.weight + x[:, t].unsqueeze(1)).max(1)
            history.append(index)
        path = [score.argmax(1)]
        for index in reversed(history):
            path.append(index.gather(1, path[-1].unsqueeze(1)).squeeze(1))
        path.reverse()
        return torch.stack(path, 1)


class BesideRows(Module):
    def forward(self, x):
        rows, column = torch.arange(x.shape[0]), x[:, :, 0].argmax(1)
        total = x[rows, x.shape[1] - 1, column % 4]
        for t in range(x.shape[1]):
            total = total * 0.5 + x[rows, t, column % 4]
        return total


class Comprehension(Module):
    def forward(self, x):
        return torch.stack([self.a(row).max(0).values for row in x])


class Tables(Module):
    def forward(self, x):
        n, m = x.shape[1], x.shape[1]
        table = torch.zeros(x.shape[0], n + 1, m + 1)
        for i in range(1, n + 1):
            for j in range(1, m + 1):
                step = x[:, i - 1, 0] * x[:, j - 1, 1]
                table[:, i, j] = torch.minimum(table[:, i - 1, j], table[:, i, j - 1]) + step
        return table[:, -1, -1]


# --- sizes that Python computes


class Shared(Module):
    """Rows sorted by who takes them, and split by how many each takes."""

    def forward(self, x):
        chosen = (x[:, 0] > 0).long() + (x[:, 1] > 0).long()
        order = chosen.argsort(stable=True)
        counts = torch.bincount(chosen, minlength=3).tolist()
        parts = [part(rows) for part, rows in zip(self.parts, x[order].split(counts), strict=True)]
        return torch.zeros_like(x).index_add(0, order, torch.cat(parts))


class Padded(Module):
    def forward(self, x):
        length = x.shape[1]
        if length % 4:
            x = F.pad(x, (0, 0, 0, 4 - length % 4))
        y = self.a(x.reshape(x.shape[0], -1, 4, 4).mean(2))
        return y.repeat_interleave(4, 1)[:, :length]


class InPieces(Module):
    """Pieces of a sequence one after another, the last one shorter."""

    def forward(self, x):
        results, carried = [], None
        for piece in torch.split(x, 3, dim=1):
            carried = self.a(piece).mean(1) if carried is None else self.b(piece).amax(1) + carried
            results.append(piece * carried[:, None])
        return torch.cat(results, 1), carried


class Half(Module):
    def forward(self, x):
        k = max(1, int(x.shape[1] * 0.5))
        return x[:, :k].sum(1) - x[:, k:].sum(1) / math.sqrt(x.shape[1])


class ShortOrLong(Module):
    def forward(self, x):
        return self.a(x) if x.shape[1] > 8 else self.b(x) * 2


class Halving(Module):
    def forward(self, x):
        while x.shape[1] > 1:
            if x.shape[1] % 2:
                x = F.pad(x, (0, 0, 0, 1))
            x = x[:, ::2] + x[:, 1::2]
        return x


class Evened(Module):
    def forward(self, x):
        length = x.shape[1]
        even = int(math.ceil(length / 2) * 2)
        resized = even != length
        if resized:
            x = F.interpolate(x.mT, size=even).mT
        x = self.a(x.reshape(-1, 2, 4).flip(1).reshape(x.shape[0], even, 4))
        return F.interpolate(x.mT, size=length).mT if resized else x


class TokensOfAGrid(Module):
    def forward(self, x):
        side = int((x.shape[1] - 1) ** 0.5)
        grid = x[:, 1:].reshape(x.shape[0], side, side, -1)
        return grid.mean(2) * math.isqrt(x.shape[1]) * pow(x.shape[1], 0.5) * x.shape[1] ** -0.5 + x[:, :1]


class Logarithms(Module):
    def forward(self, x):
        length = x.shape[1]
        few = min(math.ceil(math.log(length)), length)
        levels, digits = int(math.log2(length)), int(math.log10(length) + 1)
        return x[:, :few].mean(1) / levels + x[:, -few:].sum(1) * digits


class OneStart(Module):
    def forward(self, x):
        fast = slow = torch.zeros(x.shape[0], 4)
        for row in x.unbind(1):
            if slow.sum() < 1:
                fast, slow = torch.tanh(self.a(row) + slow), 0.9 * slow + 0.1 * fast
        return fast, slow


def settle(x, turns):
    if turns == 0:
        return x
    return settle(x - 1 if x.mean() > 0 else x * 2 + 1, turns - 1)


class CallsItself(Module):
    def forward(self, x):
        return settle(self.a(x), 3)


class Bits(Module):
    def forward(self, x):
        length = x.shape[1]
        size = 1 << (length - 1).bit_length()
        padded = F.pad(x, (0, 0, 0, size - length))
        return padded.sum(1) / size + length.bit_length() + ((length - 9) >> 2)


VALUES = [
    (IfElse, x(2, 4), x(5, 4).abs(), -x(3, 4).abs()),
    (IfOnly, x(2, 4), x(3, 4, scale=9), x(3, 4, scale=0.01)),
    (Deleted, x(2, 4), x(5, 4).abs(), -x(3, 4).abs()),
    (CallsItself, x(2, 4), x(5, 4, scale=9), x(3, 4, scale=30)),
    (EarlyReturn, x(2, 4).abs(), -x(3, 4).abs()),
    (Chain, x(2, 4), x(3, 4, scale=50), x(2, 4, scale=0.01)),
    (Ternary, x(2, 4), x(3, 4).abs(), -x(3, 4).abs()),
    (Nested, x(2, 4), x(3, 4, scale=5).abs(), -x(3, 4).abs()),
    (EarlyExit, x(2, 4, scale=0.1), x(3, 4, scale=9), x(3, 4)),
    (WrittenTo, x(6, 4), x(9, 4), x(1, 4)),
    (Checked, x(2, 4), x(5, 4)),
    (Item, x(6, 4), -x(5, 4).abs(), x(8, 4).abs()),
    (While, x(2, 4, scale=10), x(3, 4, scale=0.1), x(3, 4, scale=1000)),
    (Break, x(2, 4), x(3, 4, scale=100)),
    (Forever, x(2, 4), x(3, 4, scale=9)),
    (Decoded, x(2, 4), x(5, 4)),
    (Counted, x(2, 4), x(3, 4, scale=5)),
    (Routed, x(5, 4), x(1, 4), x(9, 4)),
]
LENGTHS = [
    (OverRange, x(2, 5, 4), x(3, 9, 4), x(1, 1, 4)),
    (OverTensor, x(2, 5, 4), x(3, 9, 4), x(1, 1, 4)),
    (Backwards, x(2, 5, 4), x(3, 9, 4), x(2, 2, 4)),
    (FirstDiffers, x(2, 5, 4), x(3, 9, 4), x(1, 1, 4)),
    (InPlace, x(2, 6), x(3, 9), x(1, 1)),
    (Attending, x(2, 5, 4), x(3, 9, 4), x(1, 1, 4)),
    (Twice, x(2, 5, 4), x(3, 9, 4)),
    (Best, x(2, 5, 4), x(3, 9, 4), x(1, 2, 4)),
    (BesideRows, x(2, 5, 4), x(3, 9, 4)),
    (Comprehension, x(3, 5, 4), x(6, 2, 4)),
    (Shared, x(6, 4), x(9, 4), x(1, 4)),
    (Tables, x(2, 5, 4), x(3, 7, 4)),
    (Padded, x(2, 8, 4), x(2, 9, 4), x(3, 11, 4), x(1, 3, 4)),
    (InPieces, x(2, 8, 4), x(2, 9, 4), x(3, 13, 4), x(1, 2, 4)),
    (Half, x(2, 8, 4), x(3, 11, 4), x(3, 2, 4)),
    (ShortOrLong, x(2, 6, 4), x(3, 8, 4), x(3, 9, 4), x(1, 30, 4)),
    (Halving, x(2, 6, 4), x(2, 13, 4), x(1, 2, 4)),
    (Evened, x(2, 8, 4), x(3, 9, 4), x(1, 3, 4)),
    (OneStart, x(2, 5, 4), x(3, 9, 4), x(1, 1, 4)),
    (Bits, x(2, 12, 4), x(1, 8, 4), x(3, 9, 4), x(2, 1, 4), x(1, 64, 4), x(1, 65, 4)),
    (TokensOfAGrid, x(2, 17, 4), x(1, 26, 4), x(3, 10, 4), x(2, 2, 4)),
    (Logarithms, x(2, 12, 4), x(2, 8, 4), x(1, 10, 4), x(3, 100, 4), x(3, 64, 4), x(1, 99, 4)),
]
