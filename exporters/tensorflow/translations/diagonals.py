"""Matrices of diagonals, and diagonals of matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from entrepot.exporters.building import Builder
from entrepot.exporters.tensorflow.node import Node
from entrepot.exporters.tensorflow.numeric import number, where
from entrepot.exporters.tensorflow.sizes import arange, int64, integers, joined, rank_of, reshaped, scalar
from entrepot.exporters.tensorflow.table import translates


@translates("MatrixBandPart", "BatchMatrixBandPart")
def band_part(node: Node, build: Builder, x: Any, lower: Any, upper: Any) -> Any:
    """The diagonals about the main one; a negative number of them is all."""
    gap = _gap(build, build.size(x, -2), build.size(x, -1))
    kept = []
    for bound, distance in ((lower, build.op("Neg", gap)), (upper, gap)):
        limit = int64(build, bound)
        kept.append(build.op("Or", build.op("Less", limit, 0), build.op("LessOrEqual", distance, limit)))
    return where(build, build.op("And", *kept), x, number(build, 0, x))


@translates("MatrixDiag", "BatchMatrixDiag")
def diagonal_matrix(node: Node, build: Builder, x: Any) -> Any:
    """A square matrix of a vector."""
    size = build.size(x, -1)
    here = build.op("Equal", _gap(build, size, size), 0)
    return where(build, here, build.op("Unsqueeze", x, [-1]), number(build, 0, x))


@translates("MatrixDiagPart", "BatchMatrixDiagPart")
def matrix_diagonal(node: Node, build: Builder, x: Any) -> Any:
    """The main diagonal."""
    return _diagonals(build, x, 0, 0, number(build, 0, x), "LEFT_LEFT")


@translates("MatrixSetDiag", "BatchMatrixSetDiag")
def with_diagonal(node: Node, build: Builder, x: Any, diagonal: Any) -> Any:
    """Another main diagonal."""
    return _with(build, x, diagonal, 0, 0, "LEFT_LEFT")


@translates("MatrixDiagPartV2", "MatrixDiagPartV3")
def matrix_diagonals(node: Node, build: Builder, x: Any, k: Any, padding: Any) -> Any:
    """Some diagonals, the upper ones first, padded to one length."""
    low, high = _range(node)
    return _diagonals(build, x, low, high, padding, node.get("align", "LEFT_LEFT"))


@translates("MatrixSetDiagV2", "MatrixSetDiagV3")
def with_diagonals(node: Node, build: Builder, x: Any, diagonal: Any, k: Any) -> Any:
    """Some diagonals replaced."""
    low, high = _range(node, 2)
    return _with(build, x, diagonal, low, high, node.get("align", "LEFT_LEFT"))


@translates("MatrixDiagV2", "MatrixDiagV3")
def diagonals_matrix(node: Node, build: Builder, x: Any, k: Any, rows: Any, columns: Any, padding: Any) -> Any:
    """A matrix of some diagonals, as large as asked for, or as they need."""
    low, high = _range(node)
    length = build.size(x, -1)
    given = [scalar(build, build.op("Reshape", int64(build, each), [-1])) for each in (rows, columns)]
    least = [build.op("Add", length, max(-high, 0)), build.op("Add", length, max(low, 0))]
    if integers(node, 2)[0] == integers(node, 3)[0] == -1:
        least = [build.op("Max", *least)] * 2
    sizes = [
        build.op("Where", build.op("Equal", each, -1), need, each) for each, need in zip(given, least, strict=True)
    ]
    lead = build.shape(x, 0, -1 if low == high else -2)
    empty = build.op("Expand", padding, joined(build, lead, *(build.op("Reshape", each, [1]) for each in sizes)))
    return _with(build, empty, x, low, high, node.get("align", "LEFT_LEFT"))


@translates("Diag")
def diagonal_tensor(node: Node, build: Builder, x: Any) -> Any:
    """A tensor of twice as many axes."""
    flat = build.op("Reshape", x, [-1])
    size = build.size(flat, 0)
    square = where(
        build, build.op("Equal", _gap(build, size, size), 0), build.op("Unsqueeze", flat, [-1]), number(build, 0, x)
    )
    return reshaped(build, square, build.shape(x), build.shape(x))


@translates("DiagPart")
def tensor_diagonal(node: Node, build: Builder, x: Any) -> Any:
    """The diagonal of a tensor of twice as many axes."""
    half = build.shape(x, 0, rank_of(node) // 2)
    count = build.op("ReduceProd", half, keepdims=0)
    flat = build.op("Reshape", x, [-1])
    places = build.op("Mul", arange(build, count), build.op("Add", count, 1))
    return reshaped(build, build.op("Gather", flat, places), half)


def _range(node: Node, at: int = 1) -> tuple[int, int]:
    bounds = integers(node, at)
    return bounds[0], bounds[-1]


def _gap(build: Builder, rows: Any, columns: Any) -> Any:
    """How far to the right of the main diagonal each element is."""
    return build.op("Sub", arange(build, columns), build.op("Unsqueeze", arange(build, rows), [-1]))


def _longest(build: Builder, rows: Any, columns: Any, low: int, high: int) -> Any:
    """The length that all diagonals are padded to."""
    below = build.op("Add", rows, min(high, 0))
    beside = build.op("Sub", columns, max(low, 0))
    return build.op("Min", below, beside)


def _first(build: Builder, rows: Any, columns: Any, diagonals: Any, longest: Any, align: str) -> tuple[Any, Any]:
    """Where each diagonal begins in its row of padded ones, and how long it is."""
    own = build.op(
        "Min",
        build.op("Add", rows, build.op("Min", diagonals, 0)),
        build.op("Sub", columns, build.op("Max", diagonals, 0)),
    )
    right = build.op("Sub", longest, own)
    upper, lower = align.split("_")
    above = build.op("GreaterOrEqual", diagonals, 0)
    zero = build.constant(np.array(0))
    return build.op("Where", above, right if upper == "RIGHT" else zero, right if lower == "RIGHT" else zero), own


def _diagonals(build: Builder, x: Any, low: int, high: int, padding: Any, align: str) -> Any:
    rows, columns = build.size(x, -2), build.size(x, -1)
    longest = _longest(build, rows, columns, low, high)
    numbers = build.constant(np.arange(high, low - 1, -1).reshape(-1, 1))
    first, own = _first(build, rows, columns, numbers, longest, align)
    place = build.op("Sub", build.op("Unsqueeze", arange(build, longest), [0]), first)
    inside = build.op("And", build.op("GreaterOrEqual", place, 0), build.op("Less", place, own))
    row = build.op("Sub", place, build.op("Min", numbers, 0))
    column = build.op("Add", place, build.op("Max", numbers, 0))
    spot = build.op("Where", inside, build.op("Add", build.op("Mul", row, columns), column), 0)
    flat = reshaped(build, x, build.shape(x, 0, -2), [-1])
    picked = where(build, inside, build.op("Gather", flat, spot, axis=-1), padding)
    return build.op("Squeeze", picked, [-2]) if low == high else picked


def _with(build: Builder, x: Any, diagonal: Any, low: int, high: int, align: str) -> Any:
    rows, columns = build.size(x, -2), build.size(x, -1)
    longest = _longest(build, rows, columns, low, high)
    gap = _gap(build, rows, columns)
    first, _ = _first(build, rows, columns, gap, longest, align)
    inside = build.op("And", build.op("GreaterOrEqual", gap, low), build.op("LessOrEqual", gap, high))
    along = build.op("Sub", arange(build, columns), build.op("Max", gap, 0))
    spot = build.op("Add", build.op("Mul", build.op("Sub", high, gap), longest), build.op("Add", first, along))
    spot = build.op("Where", inside, spot, 0)
    lead = build.shape(x, 0, -2)
    values = reshaped(build, diagonal, lead, [-1])
    return where(build, inside, build.op("Gather", values, spot, axis=-1), x)
