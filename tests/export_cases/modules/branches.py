"""Python's control flow on values of tensors: if, while, early return, item, tolist, assert."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import Tensor, nn, randn

from tests.export_cases.case import case


class IfSum(nn.Module):
    """Two heads, chosen by a sum."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(4, 3), nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        if x.sum() > 0:
            y = self.a(x)
        else:
            y = -self.b(x)
        return y * 2


@case("x.0")
def if_on_a_sum():
    return IfSum(), (torch.rand(2, 4),), (-torch.rand(3, 4),), (torch.rand(5, 4),)


class EarlyReturn(nn.Module):
    """Nothing to do when everything is masked."""

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        if not mask.any():
            return torch.zeros_like(x)
        return x * mask / mask.float().mean()


@case("x.0")
def early_return_on_an_empty_mask():
    full, none = torch.ones(2, 4, dtype=torch.bool), torch.zeros(3, 4, dtype=torch.bool)
    return EarlyReturn(), (randn(2, 4), full), (randn(3, 4), none)


class While(nn.Module):
    """Halve until the norm is small."""

    def forward(self, x: Tensor) -> Tensor:
        while x.norm() > 1.0:
            x = x / 2
        return x


@case("x.0")
def while_the_norm_is_large():
    return While(), (randn(2, 4) * 8,), (randn(3, 4) * 0.01,), (randn(5, 4) * 100,)


class FixedPoint(nn.Module):
    """A deep equilibrium: iterate to convergence, at most so many times."""

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Linear(4, 4)
        with torch.no_grad():
            self.w.weight.mul_(0.3)

    def forward(self, x: Tensor) -> Tensor:
        z = torch.zeros_like(x)
        for _ in range(30):
            new = torch.tanh(self.w(z) + x)
            if (new - z).abs().max() < 1e-3:
                break
            z = new
        return z


@case("x.0")
def fixed_point_with_break():
    return FixedPoint(), (randn(2, 4),), (randn(3, 4) * 0.1,)


class ItemSlice(nn.Module):
    """A length read from a tensor."""

    def forward(self, x: Tensor, length: Tensor) -> Tensor:
        n = int(length.item())
        return x[:, :n].mean(1)


@case("x.0", "x.1")
def slice_to_an_item():
    calls = (randn(3, 9, 3), torch.tensor(7)), (randn(1, 5, 3), torch.tensor(0))
    return ItemSlice(), (randn(2, 6, 3), torch.tensor(4)), *calls


class MaxLength(nn.Module):
    """A padding mask made to the longest length."""

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        mask = torch.arange(lengths.max().item())[None, :] < lengths[:, None]
        return x[:, : mask.shape[1]] * mask.unsqueeze(-1)


@case("x.0", "x.1")
def mask_to_the_longest():
    return MaxLength(), (randn(2, 6, 3), torch.tensor([4, 6])), (randn(3, 9, 3), torch.tensor([2, 7, 5]))


class Splits(nn.Module):
    """Variable parts of a packed batch, pooled one by one."""

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        return torch.stack([part.mean(0) for part in x.split(lengths.tolist())])


@case("x.0")
def split_by_a_list_of_lengths():
    calls = (randn(11, 3), torch.tensor([5, 6])), (randn(4, 3), torch.tensor([0, 4]))
    return Splits(), (randn(7, 3), torch.tensor([3, 4])), *calls


class Threshold(nn.Module):
    """Boxes above a threshold."""

    def forward(self, boxes: Tensor, scores: Tensor) -> tuple[Tensor, Tensor]:
        keep = scores > 0.5
        return boxes[keep], scores[keep]


@case("boxes.0", "scores.0")
def boolean_indexing():
    return Threshold(), (randn(6, 4), torch.rand(6)), (randn(9, 4), torch.rand(9))


class Nonzero(nn.Module):
    """Points of a heat map above its mean."""

    def forward(self, heat: Tensor) -> Tensor:
        ys, xs = torch.where(heat > heat.mean())
        return torch.stack([xs, ys], 1).float() / max(heat.shape)


@case("heat.0", "heat.1")
def points_of_a_heat_map():
    return Nonzero(), (randn(5, 6),), (randn(8, 4),)


class Asserted(nn.Module):
    """Values are checked before use."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(10, 4)

    def forward(self, ids: Tensor) -> Tensor:
        assert ids.max() < 10, "unknown token"
        assert ids.min() >= 0
        return self.embed(ids)


@case("ids.0", "ids.1")
def asserted_values():
    return Asserted(), (torch.randint(0, 10, (2, 5)),), (torch.randint(0, 10, (3, 7)),)


class Raises(nn.Module):
    """NaNs are refused."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        if torch.isnan(x).any():
            raise ValueError("NaN in the input")
        return self.net(x)


@case("x.0")
def raise_on_nan():
    return Raises(), (randn(2, 4),), (randn(3, 4),)


class Elifs(nn.Module):
    """A piecewise function of a scalar."""

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        if t < 0.25:
            return x
        elif t < 0.75:
            return x * t
        return torch.tanh(x)


@case("x.0")
def elif_on_a_scalar():
    sample = (randn(2, 3), torch.tensor(0.1))
    return Elifs(), sample, (randn(3, 3), torch.tensor(0.5)), (randn(4, 3), torch.tensor(0.9))


class Exits(nn.Module):
    """A network that ends early when it is sure."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))
        self.heads = nn.ModuleList(nn.Linear(4, 3) for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        for layer, head in zip(self.layers, self.heads, strict=True):
            x = torch.relu(layer(x))
            p = head(x).softmax(-1)
            if p.max(-1).values.min() > 0.4:
                return p
        return p


@case("x.0")
def early_exits():
    return Exits(), (randn(2, 4),), (randn(3, 4) * 9,)


class ExitsAtTheLast(nn.Module):
    """One that says where it ended, which it surely does at its last block."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(6, 6), nn.Tanh()) for _ in range(3))
        self.heads = nn.ModuleList(nn.Linear(6, 4) for _ in range(3))

    def forward(self, x: Tensor) -> tuple[Tensor, int] | None:
        for i, (block, head) in enumerate(zip(self.blocks, self.heads, strict=True)):
            x = x + block(x)
            logits = head(x)
            if logits.softmax(-1).amax(-1).min().item() > 0.3 or i == len(self.blocks) - 1:
                return logits, i
        return None


@case("x.0")
def exits_at_its_last_block():
    return ExitsAtTheLast(), (randn(2, 6),), (randn(3, 6) * 5,), (randn(1, 6) * 0.1,)


class Routed(nn.Module):
    """Experts that see only their tokens, as reference code routes them."""

    def __init__(self, width: int = 4, experts: int = 3) -> None:
        super().__init__()
        self.gate = nn.Linear(width, experts)
        self.experts = nn.ModuleList(nn.Linear(width, width) for _ in range(experts))

    def forward(self, x: Tensor) -> Tensor:
        flat = x.reshape(-1, x.shape[-1])
        weight, chosen = self.gate(flat).softmax(-1).topk(2, -1)
        out = torch.zeros_like(flat)
        for i, expert in enumerate(self.experts):
            token, slot = torch.where(chosen == i)
            out.index_add_(0, token, weight[token, slot, None] * expert(flat[token]))
        return out.view_as(x)


@case("x.0", "x.1")
def experts_with_index_add():
    return Routed(), (randn(2, 5, 4),), (randn(3, 7, 4),)


class Skipping(nn.Module):
    """Experts that nobody chose are left out."""

    def __init__(self) -> None:
        super().__init__()
        self.gate, self.experts = nn.Linear(4, 3), nn.ModuleList(nn.Linear(4, 4) for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        best = self.gate(x).argmax(-1)
        out = torch.zeros_like(x)
        for i in range(3):
            mine = best == i
            if mine.any():
                out[mine] = self.experts[i](x[mine])
        return out


@case("x.0")
def experts_that_are_skipped():
    return Skipping(), (randn(6, 4),), (randn(9, 4),), (randn(1, 4),)


def _narrowed(x: Tensor, depth: int) -> Tensor:
    if depth == 0:
        return x
    half = x[:, ::2] if x[:, 0].sum() > x[:, 1].sum() else x[:, 1::2]
    return _narrowed(F.pad(half, (0, x.shape[1] - half.shape[1])), depth - 1)


class Narrowed(nn.Module):
    """A function that calls itself, on the half that says more."""

    def forward(self, x: Tensor) -> Tensor:
        return _narrowed(x, 2)


@case("x.0")
def halves_by_a_function_that_calls_itself():
    return Narrowed(), (randn(3, 8),), (randn(5, 8),), (randn(1, 8),)


class Until(nn.Module):
    """Newton's method on every element until all have converged."""

    def forward(self, x: Tensor) -> Tensor:
        y = torch.ones_like(x)
        while True:
            new = 0.5 * (y + x / y)
            if torch.allclose(new, y, rtol=1e-4):
                return new
            y = new


@case("x.0")
def newton_until_converged():
    return Until(), (torch.rand(4) + 0.5,), (torch.rand(7) * 30 + 1,)


class Modes(nn.Module):
    """A flag given as a Python value, and an optional tensor."""

    def forward(self, x: Tensor, mask: Tensor | None = None, mode: str = "mean") -> Tensor:
        if mask is not None:
            x = x.masked_fill(mask, 0.0)
        return x.mean(1) if mode == "mean" else x.amax(1)


@case("x.0", "x.1")
def python_flag_and_no_mask():
    return Modes(), {"x": randn(2, 5, 3), "mode": "max"}, {"x": randn(3, 8, 3), "mode": "max"}
