"""Histograms and reductions of segments: every element is compared with every bin or segment."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

aten = torch.ops.aten


def _bin(values: torch.Tensor, edges: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The bin of each value, and whether it is in any; the last bin has both of its edges."""
    inside = (values >= edges[0]) & (values <= edges[-1])
    if edges.shape[0] == 2:  # onnxruntime (1.31) loses an axis in sums over none
        return torch.zeros_like(values, dtype=torch.int64), inside
    return (values.unsqueeze(-1) >= edges[1:-1]).sum(-1), inside


def _counted(bins: torch.Tensor, inside: torch.Tensor, count: int, weight: torch.Tensor | None, like: Any) -> Any:
    each = inside.to(like.dtype) if weight is None else weight.reshape(-1) * inside
    return ((bins.unsqueeze(-1) == torch.arange(count)).to(like.dtype) * each.unsqueeze(-1)).sum(0)


def bin_edges(
    input: torch.Tensor,
    bins: Sequence[int],
    *,
    range: Sequence[float] | None = None,
    weight: torch.Tensor | None = None,
    density: bool = False,
) -> Any:
    """Edges of bins of one width for each column: over a range, or over what there is; half a unit around one value."""
    rows = input.reshape(-1, len(bins))
    if range is None and not rows.shape[0]:
        range = (0.0, 1.0) * len(bins)  # noqa: A001 - the name is torch's
    if range is None:
        low, high = rows.amin(0), rows.amax(0)
    else:
        low = torch.stack([torch.full((), each, dtype=rows.dtype) for each in range[::2]])
        high = torch.stack([torch.full((), each, dtype=rows.dtype) for each in range[1::2]])
    around = torch.where(low == high, 0.5, 0.0).to(rows.dtype)
    return [_evenly(low[at] - around[at], high[at] + around[at], count) for at, count in enumerate(bins)]


def _evenly(low: torch.Tensor, high: torch.Tensor, count: int) -> torch.Tensor:
    """Counted from the nearer end, as torch does."""
    place, step = torch.arange(count + 1), (high - low) / count
    return torch.where(place < (count + 1) // 2, low + step * place, high - step * (count - place))


def histogram_of(
    input: torch.Tensor, bins: int = 100, *, range: Any = None, weight: Any = None, density: Any = False
) -> Any:
    """The same with so many bins of one width."""
    (edges,) = bin_edges(input.reshape(-1, 1), [bins], range=range)
    return histogram(input, edges, weight=weight, density=density)


def histogram(
    input: torch.Tensor, bins: torch.Tensor, *, weight: torch.Tensor | None = None, density: bool = False
) -> Any:
    """How many values, or how much weight, between each two edges; and the edges."""
    found = _histogram(input.reshape(-1, 1), [bins], weight, density)
    return found, bins.clone()


def histogramdd(
    input: torch.Tensor, bins: Sequence[torch.Tensor], *, weight: torch.Tensor | None = None, density: bool = False
) -> Any:
    """The same for rows of several numbers, each with edges of its own."""
    return _histogram(input.reshape(-1, len(bins)), bins, weight, density)


def histogramdd_of(
    input: torch.Tensor, bins: Sequence[int], *, range: Any = None, weight: Any = None, density: bool = False
) -> Any:
    """The same with so many bins of one width."""
    return histogramdd(input, bin_edges(input, bins, range=range), weight=weight, density=density)


def _histogram(rows: torch.Tensor, edges: Sequence[torch.Tensor], weight: Any, density: bool) -> torch.Tensor:
    counts = [each.shape[0] - 1 for each in edges]
    place, inside = torch.zeros((), dtype=torch.int64), torch.ones((), dtype=torch.bool)
    for axis, (each, count) in enumerate(zip(edges, counts, strict=True)):
        here, within = _bin(rows[:, axis], each)
        place, inside = place * count + here, inside & within
    found = _counted(place, inside, math.prod(counts), weight, rows).reshape(counts)
    if not density:
        return found
    found = found / found.sum()
    for axis, each in enumerate(edges):
        found = found / each.diff().reshape([-1 if at == axis else 1 for at in range(len(edges))])
    return found


_EMPTY = {"sum": 0.0, "mean": 0.0, "prod": 1.0, "max": -math.inf, "min": math.inf}
_REDUCE: dict[str, Callable[..., torch.Tensor]] = {
    "sum": torch.sum,
    "mean": torch.sum,
    "prod": torch.prod,
    "max": torch.amax,
    "min": torch.amin,
}

_JOIN: dict[str, Callable[[torch.Tensor, float], torch.Tensor]] = {
    "sum": lambda found, start: found + start,
    "prod": lambda found, start: found * start,
    "max": lambda found, start: found.clamp(min=start),
    "min": lambda found, start: found.clamp(max=start),
}


def segment_reduce(
    data: torch.Tensor,
    reduce: str,
    *,
    lengths: torch.Tensor | None = None,
    indices: torch.Tensor | None = None,
    offsets: torch.Tensor | None = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: float | None = None,
) -> Any:
    """Sum, mean, product or extreme of consecutive parts along an axis, which follows those of the lengths."""
    if indices is not None or (lengths is None and offsets is None):
        return NotImplemented
    if lengths is not None:
        ends = lengths.cumsum(-1)
        starts = ends - lengths
    else:
        assert offsets is not None
        starts, ends = offsets[..., :-1], offsets[..., 1:]
    place = torch.arange(data.shape[axis])
    inside = (place >= starts.unsqueeze(-1)) & (place < ends.unsqueeze(-1))
    mask = inside.reshape(*inside.shape, *[1] * (data.dim() - axis - 1))
    start = _EMPTY[reduce] if initial is None else float(initial)
    table = torch.where(mask, data.unsqueeze(axis), _EMPTY[reduce])
    found = _REDUCE[reduce](table, axis + 1)
    if reduce != "mean":
        return _JOIN[reduce](found, start)
    count = (ends - starts).reshape(*starts.shape, *[1] * (data.dim() - axis - 1)).to(data.dtype)
    return torch.where(count > 0, (found + start) / count, math.nan if initial is None else start)


DECOMPOSITIONS = {
    aten.histogram.bins_tensor: histogram,
    aten.histogram.bin_ct: histogram_of,
    aten._histogramdd_from_bin_cts.default: histogramdd_of,  # noqa: SLF001 - its name
    aten._histogramdd_bin_edges.default: bin_edges,  # noqa: SLF001 - its name
    aten._histogramdd_from_bin_tensors.default: histogramdd,  # noqa: SLF001 - its name
    aten.segment_reduce.default: segment_reduce,
}
