"""Operators that make one element of many."""

from __future__ import annotations

import onnx_ir as ir

from entrepot.importers.torch.dtypes import COMPUTED, FLOATS
from entrepot.importers.torch.op import Op
from entrepot.importers.torch.table import word
from entrepot.runtime.kernels.axes import counted

_MEANS = {
    "ReduceSum": "{x}.sum({given})",
    "ReduceMean": "{x}.mean({given})",
    "ReduceMax": "{x}.amax({given})",
    "ReduceMin": "{x}.amin({given})",
    "ReduceL1": "{x}.abs().sum({given})",
    "ReduceSumSquare": "{x}.square().sum({given})",
    "ReduceL2": "torch.linalg.vector_norm({x}, dim={given})",  # whose gradient at zero is zero, and not NaN
    "ReduceLogSum": "{x}.sum({given}).log()",
    "ReduceLogSumExp": "{x}.logsumexp({given})",
}


@word(*_MEANS)
def reduced(op: Op) -> str | None:
    """Along axes, all of them where none are given."""
    shape, axes = op.shape(0), _axes(op)
    kind = op.step.op_type
    if axes is None or 0 in (shape or ()) or shape == () or op.made is None:
        return None
    if op.made not in FLOATS and kind not in ("ReduceSum", "ReduceMax", "ReduceMin"):
        return None
    if kind in ("ReduceMax", "ReduceMin") and any(shape is None or shape[axis] is None for axis in axes):
        return None  # torch has no extreme of nothing, and what was selected may be that
    if not axes:
        return None if kind not in ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin") else op[0]
    given = [str(axes[0] if len(axes) == 1 else tuple(axes))]
    given += ["keepdim=True"] if op.attribute("keepdims") else []
    given += [f"dtype={op.dtype_text(op.made)}"] if kind == "ReduceSum" and op.made not in FLOATS else []
    return _MEANS[kind].format(x=op[0], given=", ".join(given))


def _axes(op: Op) -> list[int] | None:
    rank, stays = op.rank(0), op.attribute("noop_with_empty_axes")
    axes = op.ints(1) if op.has(1) else []
    if axes is None or rank is None:
        return axes or None  # of any rank the axes that are named
    if not axes:
        axes = [] if stays else list(range(rank))
    normal = sorted(counted(axis, rank) for axis in axes) if rank else []
    return [op.axis(axis, rank) for axis in normal] if len(normal) == 1 else normal


@word("ArgMax", "ArgMin")
def position(op: Op) -> str | None:
    """The first place of an extreme."""
    if op.attribute("select_last_index") or op.rank(0) == 0:
        return None
    keep = ", keepdim=True" if op.attribute("keepdims") else ""
    return f"torch.{op.step.op_type.lower()}({op[0]}, dim={op.axis(op.attribute('axis'), op.rank(0))}{keep})"


@word("TopK")
def top_k(op: Op) -> str | None:
    """The first of all elements in order; of equal ones, those that come first."""
    if op.rank(0) == 0 or op.dtype() not in COMPUTED:
        return None
    op.attribute("sorted")
    axis, largest = op.axis(op.attribute("axis"), op.rank(0)), bool(op.attribute("largest"))
    text = f"{op.writer.helper('top')}({op[0]}, {op.one(1)}, {axis}, {largest})"
    return text if len(op.step.outputs) > 1 else f"{text}[0]"


@word("Softmax", "LogSoftmax")
def softmax(op: Op) -> str | None:
    """Along an axis."""
    name = "softmax" if op.step.op_type == "Softmax" else "log_softmax"
    return f"torch.{name}({op[0]}, dim={op.axis(op.attribute('axis'), op.rank(0))})" if op.rank(0) != 0 else None


@word("CumSum", "CumProd")
def cumulative(op: Op) -> str | None:
    """Along an axis, up to each element and with it or without, from either end."""
    axes, rank, is_sum = op.ints(1), op.rank(0), op.step.is_a("CumSum")
    exclusive, reverse = op.attribute("exclusive"), op.attribute("reverse")
    if axes is None or not rank or op.made is None:
        return None
    axis = op.axis(axes[0], rank)
    text = f"{op[0]}.flip({axis})" if reverse else op[0]
    if exclusive:  # one place further
        widths = ", ".join([*["0, 0"] * (rank - 1 - counted(axes[0], rank)), "1, 0"])
        text = f"F.pad({text}, ({widths}){'' if is_sum else ', value=1'})"
    kind = "" if op.made in FLOATS or op.made == ir.DataType.INT64 else f", dtype={op.dtype_text(op.made)}"
    text = f"torch.{op.step.op_type.lower()}({text}, dim={axis}{kind})"
    if exclusive:  # and the last left out
        text += f"[{', '.join([':'] * (counted(axes[0], rank)) + [':-1'])}]"
    return f"{text}.flip({axis})" if reverse else text


@word("GlobalAveragePool")
def global_average(op: Op) -> str | None:
    """The mean of every channel."""
    rank = op.rank(0)
    return None if rank is None or rank < 3 else f"{op[0]}.mean({_spatial(rank)}, keepdim=True)"


@word("GlobalMaxPool")
def global_maximum(op: Op) -> str | None:
    """The maximum of every channel."""
    rank = op.rank(0)
    return None if rank is None or rank < 3 else f"{op[0]}.amax({_spatial(rank)}, keepdim=True)"


def _spatial(rank: int) -> str:
    return "-1" if rank == 3 else str(tuple(range(2 - rank, 0)))
