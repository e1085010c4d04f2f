"""Older forms of operators that the standard has by now."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from entrepot.ir.contributed.table import spelled
from entrepot.ir.opset.builder import OpBuilder

Value = ir.Value | None


@spelled("Trilu")
def trilu(op: OpBuilder, X: Value, k: Value = None, *, upper: int = 1) -> Any:
    """As the standard's."""
    return op.Trilu(X, k, upper=upper)


@spelled("Range")
def range_(op: OpBuilder, start: Value, limit: Value, delta: Value = None) -> Any:
    """As the standard's, where the step may be left out."""
    return op.Range(start, limit, op.const(1, like=start) if delta is None else delta)


@spelled("GatherND")
def gather_nd(op: OpBuilder, data: Value, indices: Value) -> Any:
    """As the standard's."""
    return op.GatherND(data, op.Cast(indices, to=int(ir.DataType.INT64)))


@spelled("ExpandDims")
def expand_dims(op: OpBuilder, X: Value, axis: Value) -> Any:
    """A new axis of size 1."""
    return op.Unsqueeze(X, op.Reshape(op.Cast(axis, to=int(ir.DataType.INT64)), op.ints(1)))


@spelled("Pad")
def pad(op: OpBuilder, data: Value, pads: Value, value: Value = None, *, mode: str = "constant") -> Any:
    """As the standard's, where the paddings may be one row of a matrix."""
    number = None if value is None else op.Squeeze(value)
    return op.Pad(data, op.Reshape(pads, op.ints(-1)), number, mode=mode)


@spelled("GridSample")
def grid_sample(
    op: OpBuilder,
    X: Value,
    Grid: Value,
    *,
    align_corners: int = 0,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
) -> Any:
    """As the standard's, which calls two of the modes otherwise."""
    named = {"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode)
    return op.GridSample(X, Grid, align_corners=align_corners, mode=named, padding_mode=padding_mode)


@spelled("CDist")
def cdist(op: OpBuilder, A: Value, B: Value, *, metric: str = "sqeuclidean") -> Any:
    """Distances between the rows of two matrices."""
    if metric not in ("sqeuclidean", "euclidean"):
        op.refuse(f"nobody has said what its metric '{metric}' means")
    apart = op.Sub(op.Unsqueeze(A, op.ints(1)), op.Unsqueeze(B, op.ints(0)))
    squares = op.ReduceSumSquare(apart, op.ints(2), keepdims=0)
    return squares if metric == "sqeuclidean" else op.Sqrt(squares)
