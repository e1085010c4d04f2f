"""Operators that pick elements, or put them somewhere."""

from __future__ import annotations

import onnx_ir as ir

from entrepot.importers.torch.op import Op
from entrepot.importers.torch.table import word
from entrepot.importers.torch.text.sizes import Sizes, is_number
from entrepot.runtime.kernels.axes import counted

_FAR = 2**31 - 1


@word("Slice")
def slice_(op: Op) -> str | None:
    """``x[:, 1:]``."""
    starts, ends, axes, steps = (op.sizes(at) for at in (1, 2, 3, 4))
    if starts is None or starts.items is None or ends is None or ends.items is None:
        return None
    known = list(range(len(starts.items))) if axes is None else axes.known
    strides = [1] * len(starts.items) if steps is None else steps.known
    if known is None or strides is None or min(strides, default=1) < 1 or len(ends.items) != len(starts.items):
        return None
    if (rank := op.rank(0)) is not None:
        known = [counted(axis, rank) for axis in known]
    if min(known, default=0) < 0 <= max(known, default=0) or len(set(known)) != len(known):
        return None
    ranges = map(_range, starts.items, ends.items, strides)
    parts = dict(zip(known, ranges, strict=True))
    text = _indexed({axis: part for axis, part in parts.items() if part != ":"}, op.rank(0))
    return f"{op[0]}{text}"


def _range(start: str, end: str, stride: int) -> str:
    begin = "" if start == "0" else start
    until = "" if is_number(end) and int(end) >= _FAR else end
    return f"{begin}:{until}" + (f":{stride}" if stride != 1 else "")


def _indexed(parts: dict[int, str], rank: int | None) -> str:
    """Brackets around an index for some axes, counted from the front, or all of them from the end."""
    if not parts:
        return ""
    if rank is not None and set(parts) == {rank - 1} and rank > 1:
        return f"[..., {parts[rank - 1]}]"
    if min(parts) < 0:
        return f"[..., {', '.join(parts.get(axis, ':') for axis in range(min(parts), 0))}]"
    return f"[{', '.join(parts.get(axis, ':') for axis in range(max(parts) + 1))}]"


@word("Gather")
def gather(op: Op) -> str | None:
    """``x[:, 0]``, or whole slices by a tensor of indices."""
    rank = op.rank(0)
    axis = op.attribute("axis") if rank is None else counted(op.attribute("axis"), rank)
    index = op.number(1) if op.rank(1) == 0 else None
    if index is None and op.rank(1) == 0 and not op.writer.exists(op.value(1)):
        # torch reads the value of an index without axes, which no captured graph has
        return f"{op[0]}{_indexed({axis: f'{op[1]}.reshape(1)'}, rank)}.squeeze({axis})"
    if index is None:
        listed = op.sizes(1) if op.rank(1) == 1 and not op.writer.exists(op.value(1)) else None
        index = str(listed) if listed is not None and listed.items and _is_listed(op, listed) else op[1]
    return f"{op[0]}{_indexed({axis: index}, rank)}"


def _is_listed(op: Op, index: Sizes) -> bool:
    """Whether numbers are at hand, none of which is a size: torch has no list of symbols for an index."""
    return index.known is not None or all(item in op.writer.turns for item in index.items or ())


@word("GatherElements")
def gather_elements(op: Op) -> str | None:
    """Element by element along an axis."""
    axis = op.axis(op.attribute("axis"), op.rank(0))
    return None if op.rank(0) == 0 else f"torch.gather({op[0]}, {axis}, {_positive(op, 1, axis)})"


def _positive(op: Op, position: int, axis: int) -> str:
    """Indices from the front."""
    if op.is_natural(position):
        return f"{op[position]}{_long(op, position)}"
    return f"{op.writer.helper('from_front')}({op[position]}, {op[0]}.shape[{axis}])"


def _long(op: Op, position: int) -> str:
    return "" if op.dtype(position) == ir.DataType.INT64 else ".long()"


@word("GatherND")
def gather_nd(op: Op) -> str | None:
    """By tuples of indices."""
    if op.attribute("batch_dims"):
        return None
    return f"{op[0]}[{op[1]}.unbind(-1)]"


@word("NonZero")
def non_zero(op: Op) -> str | None:
    """``torch.nonzero``, with a row for each axis."""
    return f"{op[0]}.nonzero().T" if op.rank(0) else None


_REDUCTIONS = {"add": "sum", "mul": "prod", "max": "amax", "min": "amin"}


@word("ScatterElements")
def scatter_elements(op: Op) -> str | None:
    """Element by element along an axis, in a copy."""
    how = op.attribute("reduction")
    if op.rank(0) == 0 or (how != "none" and op.dtype(0) == ir.DataType.BOOL):
        return None
    axis = op.axis(op.attribute("axis"), op.rank(0))
    places = _positive(op, 1, axis)
    if how == "none":
        return f"{op[0]}.scatter({axis}, {places}, {op[2]})"
    return f'{op[0]}.scatter_reduce({axis}, {places}, {op[2]}, "{_REDUCTIONS[how]}")'


@word("ScatterND")
def scatter_nd(op: Op) -> str | None:
    """By tuples of indices, in a copy."""
    how = op.attribute("reduction")
    if how not in ("none", "add"):
        return None
    return f"{op[0]}.index_put({op[1]}.unbind(-1), {op[2]}{', accumulate=True' if how == 'add' else ''})"
