"""What is done with sequences [batch, length, 8] by means of Python: closures, generators, dicts, recursion, errors."""

from __future__ import annotations

import functools
import itertools
import math
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere


def prefix_sums_by_doubling(self, x):
    for k in range(math.ceil(math.log2(x.shape[1]))):
        x = x + F.pad(x, (0, 0, 2**k, 0))[:, : x.shape[1]]
    return x / x.shape[1]


def next_power_of_two(self, x):
    length = x.shape[1]
    y = F.pad(x, (0, 0, 0, (1 << (length - 1).bit_length()) - length))
    return y.flip(1)[:, :length]


def folded_to_one(self, x):
    return x + functools.reduce(lambda a, b: torch.tanh(a + b), x.unbind(1)).unsqueeze(1)


def accumulated(self, x):
    return torch.stack(list(itertools.accumulate(x.unbind(1), lambda a, b: 0.5 * a + b)), dim=1)


def one_of_three_by_length(self, x):
    return {0: torch.tanh, 1: torch.sigmoid, 2: torch.relu}[x.shape[1] % 3](x)


def thirds(self, x):
    third = x.shape[1] // 3
    a, b, c = x.split([third, third, x.shape[1] - 2 * third], dim=1)
    return torch.cat([c, a * 2, b], dim=1)


def features_in_a_dict(self, x):
    found = {"mean": x.mean(1), "last": x[:, -1]}
    found["largest"] = x.amax(1)
    return x * torch.sigmoid(sum(found.values())).unsqueeze(1)


class _Seen(NamedTuple):
    total: torch.Tensor
    count: int


def counted_in_a_tuple(self, x):
    seen, out = _Seen(torch.zeros_like(x[:, 0]), 0), []
    for step in x.unbind(1):
        seen = _Seen(seen.total + step, seen.count + 1)
        out.append(seen.total / seen.count)
    return torch.stack(out, 1)


def windows_that_a_generator_yields(self, x):
    def windows(size):
        y = F.pad(x, (0, 0, size - 1, 0))
        for start in range(x.shape[1]):
            yield y[:, start : start + size]

    return torch.stack([window.amax(1) for window in windows(3)], dim=1)


def halves_in_turn(self, x):
    if x.shape[1] <= 2:
        return x * 0.5
    half = x.shape[1] // 2
    return torch.cat([halves_in_turn(self, x[:, :half]), x[:, half:]], dim=1)


def viewed_or_repeated(self, x):
    try:
        return x.view(x.shape[0], -1, 2, 8).flip(2).reshape(x.shape)
    except RuntimeError:
        return x.flip(1)


def seen_lengths(self, x):
    lengths = (x[..., 0] > 0).sum(1).clamp(min=1)
    seen = torch.arange(x.shape[1])[None] < lengths[:, None]
    scores = self.gate(x).squeeze(-1).masked_fill(~seen, -1e9)
    return x * scores.softmax(1).unsqueeze(-1)


def rows_of_their_lengths(self, x):
    out = torch.zeros_like(x)
    for row, length in enumerate((x[..., 0] > 0).sum(1).tolist()):
        out[row, :length] = self.lin(x[row, :length])
    return out


def mask_kept(self, x):
    mask = getattr(self, "kept", None)
    if mask is None or mask.shape[0] < x.shape[1]:
        mask = self.kept = torch.ones(x.shape[1], x.shape[1]).tril()
    part = mask[: x.shape[1], : x.shape[1]]
    return (part / part.sum(1, keepdim=True)) @ x


def places_of_numpy(self, x):
    places = np.linspace(0, 1, x.shape[1], dtype=np.float32)
    return x * torch.from_numpy(np.cos(places))[:, None]


def pairs_of_neighbours(self, x):
    steps = x.unbind(1)
    return torch.stack([steps[0], *(b - a for a, b in itertools.pairwise(steps))], dim=1)


def layers_by_attribute(self, x):
    for name in ("lin", "lin2"):
        x = getattr(F, "gelu" if name == "lin" else "silu")(getattr(self, name)(x))
    return x


def overlapping_pieces_added(self, x):
    size, step = 4, 2
    count = max(math.ceil((x.shape[1] - size) / step), 0) + 1
    y = F.pad(x, (0, 0, 0, (count - 1) * step + size - x.shape[1]))
    pieces = torch.stack([y[:, at * step : at * step + size] for at in range(count)], dim=1)
    out = torch.zeros_like(y)
    for at in range(count):
        out[:, at * step : at * step + size] += pieces[:, at] * 0.5
    return out[:, : x.shape[1]]


def swapped_in_place(self, x):
    y = x.clone()
    for at in range(0, x.shape[1] - 1, 2):
        y[:, at], y[:, at + 1] = x[:, at + 1], x[:, at]
    return y


def until_the_end_is_reached(self, x):
    at, out = 0, []
    while True:
        out.append(x[:, at : at + 3].mean(1, keepdim=True).expand(-1, min(3, x.shape[1] - at), -1))
        at += 3
        if at >= x.shape[1]:
            break
    return torch.cat(out, dim=1)


def first_that_is_large(self, x):
    for step in x.unbind(1):
        if step.abs().mean() > 0.9:
            found = step
            break
    else:
        found = x[:, 0]
    return x - found.unsqueeze(1)


def without_gradients(self, x):
    with torch.no_grad():
        weights = torch.softmax(self.gate(x), dim=1)
    return x * weights


def every_pair_of_sizes(self, x):
    scale = sum(i * j for i, j in itertools.product(range(3), range(x.shape[1]))) / (x.shape[1] ** 2)
    return x * scale


def named_by_size(self, x):
    if any(size > 10 for size in x.shape[:-1]):
        return x * 2
    return x + 1 if all(size < 7 for size in x.shape[1:2]) else x


def kinds_counted(self, x):
    kinds = x.argmax(-1)
    counts = F.one_hot(kinds, 8).sum((0, 1))
    return x * counts[kinds].unsqueeze(-1) / counts.sum()


def sums_of_kinds(self, x):
    kinds = self.router(x).argmax(-1)
    flat, out = x.flatten(0, 1), torch.zeros(3, 8)
    out.index_add_(0, kinds.flatten(), flat)
    return x + out[kinds]


ALL = (
    prefix_sums_by_doubling,
    next_power_of_two,
    folded_to_one,
    accumulated,
    one_of_three_by_length,
    thirds,
    features_in_a_dict,
    counted_in_a_tuple,
    windows_that_a_generator_yields,
    halves_in_turn,
    viewed_or_repeated,
    seen_lengths,
    rows_of_their_lengths,
    mask_kept,
    places_of_numpy,
    pairs_of_neighbours,
    layers_by_attribute,
    overlapping_pieces_added,
    swapped_in_place,
    until_the_end_is_reached,
    first_that_is_large,
    without_gradients,
    every_pair_of_sizes,
    named_by_size,
    kinds_counted,
    sums_of_kinds,
)
