"""Products of matrices and tensors."""

from __future__ import annotations

import string
from typing import Any

import numpy as np
import onnx_ir as ir

from entrepot.exporters.building import typed
from entrepot.exporters.keras.dtypes import is_float
from entrepot.exporters.keras.reading.step import Step, rank_of, shape_of
from entrepot.exporters.keras.reading.table import operation


@operation("Matmul")
def matmul(step: Step, x1: Any, x2: Any) -> ir.Value:
    """Of matrices in the last two axes."""
    return _product(step, step.value(x1, step.dtype), step.value(x2, step.dtype))


def _product(step: Step, left: ir.Value, right: ir.Value) -> ir.Value:
    if is_float(step.dtype) or step.dtype in (ir.DataType.INT32, ir.DataType.INT64):
        return step.op("MatMul", left, right)
    wide = (step.build.cast(value, np.int32) for value in (left, right))
    return step.build.cast(step.op("MatMul", *wide), step.dtype)


@operation("Dot", "Inner")
def dot(step: Step, x1: Any, x2: Any) -> ir.Value:
    """The last axis by the last but one, or by the last."""
    left, right = step.value(x1, step.dtype), step.value(x2, step.dtype)
    ranks = rank_of(left), rank_of(right)
    if 0 in ranks:
        return step.op("Mul", left, right)
    axis = ranks[1] - 1 if ranks[1] == 1 or type(step.operation).__name__ == "Inner" else ranks[1] - 2
    return contract(step, left, right, [ranks[0] - 1], [axis])


@operation("Vdot")
def vdot(step: Step, x1: Any, x2: Any) -> ir.Value:
    """Of everything in a row."""
    flat = [step.reshaped(step.value(x, step.dtype), [-1]) for x in (x1, x2)]
    return _product(step, *flat)


@operation("Outer")
def outer(step: Step, x1: Any, x2: Any) -> ir.Value:
    """Every product of two elements."""
    left, right = (step.reshaped(step.value(x, step.dtype), shape) for x, shape in ((x1, [-1, 1]), (x2, [1, -1])))
    return step.op("Mul", left, right)


@operation("Kron")
def kron(step: Step, x1: Any, x2: Any) -> ir.Value:
    """Every element times the whole of the other, axis by axis."""
    left, right = step.value(x1, step.dtype), step.value(x2, step.dtype)
    rank = max(rank_of(left), rank_of(right))
    sizes = [[1] * (rank - rank_of(value)) + step.sizes(value) for value in (left, right)]
    wide = [
        step.reshaped(value, [size for pair in zip(*order, strict=True) for size in pair])
        for value, order in ((left, (sizes[0], [1] * rank)), (right, ([1] * rank, sizes[1])))
    ]
    whole = [
        one * two if isinstance(one, int) and isinstance(two, int) else step.op("Mul", one, two)
        for one, two in zip(*sizes, strict=True)
    ]
    return step.reshaped(step.op("Mul", *wide), whole)


@operation("Cholesky")
def cholesky(step: Step, x: Any) -> ir.Value:
    """The lower root of a matrix, or the upper one."""
    from entrepot.exporters.functions.matrix_loops import lower_root

    value = step.value(x, step.dtype)
    root = typed(step.build.call(lower_root, value), value.dtype, shape_of(value))
    rank = rank_of(value)
    return step.transposed(root, [*range(rank - 2), rank - 1, rank - 2]) if step.operation.upper else root


@operation("Tensordot")
def tensordot(step: Step, x1: Any, x2: Any) -> ir.Value:
    """Sums of products over pairs of axes."""
    left, right, axes = step.value(x1, step.dtype), step.value(x2, step.dtype), step.operation.axes
    ranks = rank_of(left), rank_of(right)
    if isinstance(axes, int):
        axes = list(range(ranks[0] - axes, ranks[0])), list(range(axes))
    sides = [[side] if isinstance(side, int) else list(side) for side in axes]
    return contract(step, left, right, *([at % rank for at in side] for side, rank in zip(sides, ranks, strict=True)))


def contract(step: Step, left: ir.Value, right: ir.Value, first: list[int], second: list[int]) -> ir.Value:
    """Sums of products over pairs of axes."""
    letters = iter(string.ascii_letters)
    names = [next(letters) for _ in range(rank_of(left))]
    others = [next(letters) for _ in range(rank_of(right))]
    for one, two in zip(first, second, strict=True):
        others[two] = names[one]
    kept = [a for at, a in enumerate(names) if at not in first] + [b for at, b in enumerate(others) if at not in second]
    return _einsum(step, f"{''.join(names)},{''.join(others)}->{''.join(kept)}", left, right)


@operation("Einsum")
def einsum(step: Step, *operands: Any, **_: Any) -> ir.Value:
    """By its equation; as a product of matrices where it is one."""
    equation = step.operation.subscripts.replace(" ", "")
    if "->" not in equation:
        names = sorted(name for name in set(equation) - {","} if equation.count(name) == 1)
        equation += f"->{''.join(names)}"
    return _einsum(step, equation, *(step.value(each, step.dtype) for each in operands))


def _einsum(step: Step, equation: str, *values: ir.Value) -> ir.Value:
    inputs, _, result = equation.partition("->")
    sides = inputs.split(",")
    if "." in equation or len(sides) != 2 or any(len(set(side)) < len(side) for side in (*sides, result)):
        return step.op("Einsum", *values, equation=equation)
    if set(result) - set("".join(sides)) or any(n not in result for n in set(sides[0]) ^ set(sides[1])):
        return step.op("Einsum", *values, equation=equation)
    return _as_product(step, sides, result, *values)


def _as_product(step: Step, sides: list[str], result: str, left: ir.Value, right: ir.Value) -> ir.Value:
    """Both with their batch axes first, the summed ones inside; one product; the axes as they are wanted."""
    batch = [n for n in result if n in sides[0] and n in sides[1]]
    summed = [n for n in sides[0] if n in sides[1] and n not in result]
    rows = [n for n in sides[0] if n not in sides[1]]
    columns = [n for n in sides[1] if n not in sides[0]]
    sizes = {
        n: s for side, v in zip(sides, (left, right), strict=True) for n, s in zip(side, step.sizes(v), strict=True)
    }
    first = _grouped(step, left, sides[0], (batch, rows, summed), sizes)
    second = _grouped(step, right, sides[1], (batch, summed, columns), sizes)
    product = _product(step, first, second)
    order = [*batch, *rows, *columns]
    typed(product, step.dtype, [None] * (len(batch) + 2))
    if len(rows) != 1 or len(columns) != 1:
        product = step.reshaped(product, _one_open([sizes[n] for n in order]))
    else:
        typed(product, step.dtype, [s if isinstance(s, int) else None for s in (sizes[n] for n in order)])
    return step.transposed(product, [order.index(n) for n in result])


def _grouped(step: Step, value: ir.Value, names: str, groups: tuple[list[str], ...], sizes: dict[str, Any]) -> ir.Value:
    batch, *two = groups
    order = [names.index(n) for group in groups for n in group]
    value = step.transposed(value, order)
    if all(len(group) == 1 for group in two):
        return value
    shape = [sizes[n] for n in batch]
    for group in two:
        known = [sizes[n] for n in group]
        shape.append(int(np.prod(known)) if all(isinstance(s, int) for s in known) else -1)
    if shape.count(-1) > 1:
        shape[-1] = _count(step, [sizes[n] for n in two[1]])
    return step.reshaped(value, _one_open(shape))


def _count(step: Step, sizes: list[Any]) -> ir.Value:
    result = sizes[0]
    for size in sizes[1:]:
        result = step.op("Mul", step.value(result, np.int64), step.value(size, np.int64))
    return result


def _one_open(shape: list[Any]) -> list[Any]:
    """A shape with one size left to the runtime, where that spares computing it."""
    if -1 in shape:
        return shape
    at = next((at for at, size in enumerate(shape) if not isinstance(size, int)), None)
    return shape if at is None or 0 in shape else [-1 if i == at else size for i, size in enumerate(shape)]


@operation("Cross")
def cross(step: Step, x1: Any, x2: Any) -> ir.Value:
    """Of vectors of three elements in the last axis."""
    given, values = step.operation, (step.value(x1, step.dtype), step.value(x2, step.dtype))
    axes = (given.axisa, given.axisb, given.axisc) if given.axis is None else (given.axis,) * 3
    if any(axis not in (-1, rank_of(value) - 1) for axis, value in zip(axes, values, strict=False)):
        raise step.refuse("vectors along another axis than the last")
    if any(shape_of(value)[-1] != 3 for value in values):
        raise step.refuse("vectors of other than three elements")

    def turned(value: ir.Value, by: int) -> ir.Value:
        return step.op("Gather", value, np.roll(np.arange(3), by), axis=-1)

    a, b = values
    first, second = (step.op("Mul", turned(a, -1), turned(b, 1)), step.op("Mul", turned(a, 1), turned(b, -1)))
    return step.op("Sub", first, second)


@operation("DotProductAttention")
def attention(
    step: Step, query: Any, key: Any, value: Any, bias: Any = None, mask: Any = None, scale: Any = None
) -> ir.Value:
    """Softmax of scaled products, with heads in the third axis; heads of keys may be shared."""
    given = step.operation
    q, k, v = (step.transposed(step.value(each, step.dtype), [0, 2, 1, 3]) for each in (query, key, value))
    k, v = (_for_heads(step, each, shape_of(q)[1]) for each in (k, v))
    size = shape_of(q)[3]
    if size is None and scale is None:
        raise step.refuse("the size of a head is not known")
    factor = float(scale) if scale is not None else 1 / float(np.sqrt(size or 1))
    scores = step.op("MatMul", step.op("Mul", q, factor), step.op("Transpose", k, perm=[0, 1, 3, 2]))
    typed(scores, step.dtype, [None] * 4)
    if given.attn_logits_soft_cap is not None:
        cap = float(given.attn_logits_soft_cap)
        scores = step.op("Mul", step.op("Tanh", step.op("Div", scores, cap)), cap)
    if bias is not None:
        scores = step.op("Add", scores, step.value(bias, step.dtype))
    kept = None if mask is None else step.value(mask, np.bool_)
    if given.is_causal:
        past = causal(step, scores)
        kept = past if kept is None else step.op("And", kept, past)
    if kept is not None:
        least = float(np.finfo(step.dtype.numpy()).min) * 0.7
        scores = step.op("Where", kept, scores, step.value(least, step.dtype))
    weights = step.op("Softmax", scores, axis=-1)
    return step.transposed(typed(step.op("MatMul", weights, v), step.dtype, [None] * 4), [0, 2, 1, 3])


def _for_heads(step: Step, value: ir.Value, heads: int | None) -> ir.Value:
    """Keys or values, each head as often as queries share it."""
    batch, own, length, size = step.sizes(value)
    if heads is None or own == heads:
        return value
    times = heads // own
    wide = step.op("Tile", step.op("Unsqueeze", value, [2]), [1, 1, times, 1, 1])
    return step.reshaped(wide, [-1 if not isinstance(batch, int) else batch, heads, length, size])


def causal(step: Step, scores: ir.Value) -> ir.Value:
    """Which keys are no later than a query: true below the diagonal of the last two axes."""
    rows, columns = (step.op("Range", 0, step.build.size(scores, axis), 1) for axis in (-2, -1))
    return step.op("GreaterOrEqual", step.op("Unsqueeze", rows, [1]), step.op("Unsqueeze", columns, [0]))
