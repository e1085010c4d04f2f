"""Factorisations of matrices as loops over their rows or columns, for any size: the functions that translations call.

Each takes ``[..., rows, columns]`` and is written in onnxscript, which makes ONNX functions of them; ``Loop`` takes one
step at a time. Masks choose the part of a matrix that a step changes, so that its shape stays. What a loop carries is
always one tensor, with other results in added rows or columns: onnxscript (0.7) may confuse two of them, as it keeps
them in sets.
"""

# mypy: ignore-errors
# onnxscript reads this, and gives it a meaning of its own: numbers are tensors.

from typing import TypeVar, Union

from onnxscript import DOUBLE, FLOAT, FLOAT16, INT64, script
from onnxscript import opset18 as op  # what torch.onnx (2.13) writes functions in

Number = TypeVar("Number", bound=Union[FLOAT16, FLOAT, DOUBLE])  # noqa: UP007 - onnxscript (0.7) reads no others


@script()
def factorised(matrix: Number) -> Number:
    """L and U in one matrix, and in a column more the number of the row that each step exchanged with its own."""
    place = op.Range(0, op.Squeeze(op.Shape(matrix, start=-2, end=-1)), 1)
    columns = op.Squeeze(op.Shape(matrix, start=-1))
    across = op.Range(0, columns + 1, 1)
    zero = op.CastLike(0.0, matrix)
    column = op.Concat(op.Shape(matrix, end=-1), op.Constant(value_ints=[1]), axis=0)
    packed = op.Concat(matrix, op.Expand(zero, column), axis=-1)
    for step in range(op.Min(op.Size(place), columns)):
        size = op.Abs(op.Gather(packed, step, axis=-1))
        best = op.ArgMax(op.Where(place >= step, size, op.CastLike(-1.0, size)), axis=-1, keepdims=1)
        order = op.Unsqueeze(op.Where(place == step, best, op.Where(place == best, step, place)), [-1])
        packed = op.GatherElements(packed, op.Expand(order, op.Shape(packed)), axis=-2)
        row = op.Gather(packed, step, axis=-2)
        pivot = op.Gather(row, op.Unsqueeze(step, [0]), axis=-1)
        safe = op.Where(pivot == zero, op.CastLike(1.0, pivot), pivot)
        factor = op.Unsqueeze(op.Gather(packed, step, axis=-1) / safe, [-1])
        below = op.Unsqueeze(place > step, [-1])
        changed = packed - factor * op.Unsqueeze(row, [-2])
        kept = op.Where(op.And(below, across == step), factor, packed)
        packed = op.Where(op.And(below, op.And(across > step, across < columns)), changed, kept)
        noted = op.And(op.Unsqueeze(place == step, [-1]), across == columns)
        packed = op.Where(noted, op.CastLike(op.Unsqueeze(best, [-1]), packed), packed)
    return packed


@script()
def permutation(pivots: INT64[...], rows: INT64[...]) -> INT64[...]:
    """The order of rows that exchanges one after the other lead to."""
    place = op.Range(0, rows, 1)
    order = place + 0 * op.ReduceSum(pivots, [-1], keepdims=1)
    for step in range(op.Squeeze(op.Shape(pivots, start=-1))):
        best = op.Gather(pivots, op.Unsqueeze(step, [0]), axis=-1)
        exchange = op.Where(place == step, best, op.Where(place == best, step, place))
        order = op.GatherElements(order, exchange, axis=-1)
    return order


@script()
def solved(matrix: Number, right: Number) -> Number:
    """X with matrix @ X = right, by elimination upwards and downwards; both have the same batch axes."""
    count = op.Shape(matrix, start=-1)
    place = op.Range(0, op.Squeeze(count), 1)
    both = op.Concat(matrix, right, axis=-1)
    for step in range(op.Size(place)):
        size = op.Abs(op.Gather(both, step, axis=-1))
        best = op.ArgMax(op.Where(place >= step, size, op.CastLike(-1.0, size)), axis=-1, keepdims=1)
        order = op.Unsqueeze(op.Where(place == step, best, op.Where(place == best, step, place)), [-1])
        both = op.GatherElements(both, op.Expand(order, op.Shape(both)), axis=-2)
        one = op.Unsqueeze(step, [0])
        factor = op.Gather(both, one, axis=-1)
        row = op.Gather(both, one, axis=-2) / op.Gather(factor, one, axis=-2)
        both = op.Where(op.Unsqueeze(place == step, [-1]), row, both - factor * row)
    return op.Slice(both, count, op.Constant(value_ints=[9223372036854775807]), op.Constant(value_ints=[-1]))


@script()
def substituted(matrix: Number, right: Number, upper: int, unit: int) -> Number:
    """X with matrix @ X = right, where only one triangle of ``matrix`` counts: a row of X in each step."""
    place = op.Range(0, op.Squeeze(op.Shape(matrix, start=-1)), 1)
    count = op.Size(place)
    zero = op.CastLike(0.0, matrix)
    behind = (op.Unsqueeze(place, [-1]) - place) * (1 - 2 * op.Cast(upper, to=7))
    others = op.Where(behind > 0, matrix, zero)
    diagonal = op.ReduceSum(op.Where(behind == 0, matrix, zero), [-1], keepdims=1)
    pivots = op.Where(op.Cast(unit, to=9), op.CastLike(1.0, diagonal), diagonal)
    solution = op.Expand(zero, op.Shape(right))
    for index in range(count):
        step = index + op.Cast(upper, to=7) * (count - 1 - index - index)
        one = op.Unsqueeze(step, [0])
        known = op.MatMul(op.Gather(others, one, axis=-2), solution)
        row = (op.Gather(right, one, axis=-2) - known) / op.Gather(pivots, one, axis=-2)
        solution = op.ScatterElements(solution, op.Expand(step, op.Shape(row)), row, axis=-2)
    return solution


@script()
def lower_root(matrix: Number) -> Number:
    """L with L @ L' = matrix, of which only the lower triangle counts."""
    place = op.Range(0, op.Squeeze(op.Shape(matrix, start=-1)), 1)
    root = op.Identity(matrix)
    for step in range(op.Size(place)):
        column = op.Gather(root, step, axis=-1)
        column = column / op.Sqrt(op.Gather(column, op.Unsqueeze(step, [0]), axis=-1))
        column = op.Where(place >= step, column, op.CastLike(0.0, column))
        rest = root - op.Unsqueeze(column, [-1]) * op.Unsqueeze(column, [-2])
        root = op.Where(place == step, op.Unsqueeze(column, [-1]), op.Where(place > step, rest, root))
    return root


@script()
def reflected(matrix: Number) -> Number:
    """Householder's reflections as LAPACK packs them, R above and their vectors below; their factors in a row more."""
    rows = op.Squeeze(op.Shape(matrix, start=-2, end=-1))
    place = op.Range(0, rows + 1, 1)
    across = op.Range(0, op.Squeeze(op.Shape(matrix, start=-1)), 1)
    zero = op.CastLike(0.0, matrix)
    row = op.Concat(op.Shape(matrix, end=-2), op.Constant(value_ints=[1]), op.Shape(across), axis=0)
    packed = op.Concat(matrix, op.Expand(zero, row), axis=-2)
    for step in range(op.Min(rows, op.Size(across))):
        column = op.Gather(packed, step, axis=-1)
        head = op.Gather(column, op.Unsqueeze(step, [0]), axis=-1)
        below = op.Where(op.And(place > step, place < rows), column, zero)
        rest = op.ReduceL2(below, [-1])
        norm = op.Sqrt(head * head + rest * rest)
        whole = op.Where(rest == zero, head, op.Where(head < zero, norm, -norm))
        one = op.CastLike(1.0, head)
        factor = op.Where(rest == zero, zero, (whole - head) / op.Where(rest == zero, one, whole))
        vector = op.Where(place == step, one, below / op.Where(rest == zero, one, head - whole))
        change = op.MatMul(op.Unsqueeze(vector, [-2]), packed) * op.Unsqueeze(factor, [-1])
        own = op.Where(place == step, whole, op.Where(place > step, vector, column))
        own = op.Unsqueeze(op.Where(place == rows, factor, own), [-1])
        after = packed - op.Unsqueeze(vector, [-1]) * change
        packed = op.Where(across > step, after, op.Where(across == step, own, packed))
    return packed


@script()
def reflections_of(packed: Number, factors: Number, other: Number, backwards: int) -> Number:
    """Reflections applied to another matrix, the last one first if ``backwards``: Q @ other; else Q' @ other."""
    place = op.Range(0, op.Squeeze(op.Shape(packed, start=-2, end=-1)), 1)
    count = op.Squeeze(op.Shape(factors, start=-1))
    result = op.Identity(other)
    for index in range(count):
        step = op.Where(op.Cast(backwards, to=9), count - 1 - index, index)
        column = op.Gather(packed, step, axis=-1)
        vector = op.Where(
            place == step, op.CastLike(1.0, column), op.Where(place > step, column, op.CastLike(0.0, column))
        )
        factor = op.Unsqueeze(op.Gather(factors, op.Unsqueeze(step, [0]), axis=-1), [-1])
        result = result - factor * op.Unsqueeze(vector, [-1]) * op.MatMul(op.Unsqueeze(vector, [-2]), result)
    return result


@script()
def orthogonalised(matrix: DOUBLE[...], rounds: int) -> DOUBLE[...]:
    """The columns rotated until they are orthogonal, and below them the rotation; their number is even."""
    rows = op.Shape(matrix, start=-2, end=-1)
    place = op.Range(0, op.Squeeze(op.Shape(matrix, start=-1)), 1)
    count = op.Size(place)
    even = op.Mod(place, 2) == 0
    firsts = op.Range(0, count, 2)
    partner = op.Where(even, place + 1, place - 1)
    onward = op.Where(even, place - 2, place + 2)
    onward = op.Where(place == count - 1, op.Max(count - 2, 1), onward)
    onward = op.Where(place == 2, 1, op.Where(place == 0, 0, onward))
    one = op.CastLike(1.0, matrix)
    zero = op.CastLike(0.0, matrix)
    square = op.Concat(op.Shape(matrix, end=-2), op.Shape(place), op.Shape(place), axis=0)
    rotation = op.Expand(op.Where(op.Unsqueeze(place, [-1]) == place, one, zero), square)
    both = op.Concat(matrix, rotation, axis=-2)
    for _step in range((count - 1) * op.Cast(rounds, to=7)):
        columns = op.Slice(both, op.Constant(value_ints=[0]), rows, op.Constant(value_ints=[-2]))
        own = op.ReduceSumSquare(columns, [-2], keepdims=0)
        other = op.Gather(columns, firsts + 1, axis=-1)
        between = op.ReduceSum(op.Gather(columns, firsts, axis=-1) * other, [-2], keepdims=0)
        gap = op.Gather(own, firsts + 1, axis=-1) - op.Gather(own, firsts, axis=-1)
        length = op.Abs(gap) + op.Sqrt(gap * gap + between * between * op.CastLike(4.0, gap))
        sign = op.Where(gap < zero, op.CastLike(-2.0, gap), op.CastLike(2.0, gap))
        tangent = sign * between / op.Where(length == zero, one, length)
        cosine = one / op.Sqrt(tangent * tangent + one)
        sine = tangent * cosine
        shape = op.Concat(op.Shape(own, end=-1), op.Constant(value_ints=[1]), op.Shape(place), axis=0)
        scale = op.Reshape(
            op.Concat(op.Unsqueeze(cosine, [-1]), op.Unsqueeze(cosine, [-1]), axis=-1), shape, allowzero=1
        )
        share = op.Reshape(op.Concat(op.Unsqueeze(-sine, [-1]), op.Unsqueeze(sine, [-1]), axis=-1), shape, allowzero=1)
        both = op.Gather(both * scale + op.Gather(both, partner, axis=-1) * share, onward, axis=-1)
    return both


@script()
def exponential(matrix: DOUBLE[...]) -> DOUBLE[...]:
    """The exponential of each matrix: a series where the matrix is small, squared as often as it was halved before."""
    place = op.Range(0, op.Squeeze(op.Shape(matrix, start=-1)), 1)
    here = op.Unsqueeze(place, [-1]) == place
    one = op.Where(here, op.CastLike(1.0, matrix), op.CastLike(0.0, matrix))
    size = op.ReduceMax(op.ReduceSum(op.Abs(matrix), [-2], keepdims=1), [-1], keepdims=1)
    halved = op.Clip(
        op.Ceil(op.Log(op.Max(size, op.CastLike(0.25, size))) / 0.6931471805599453) + 1.0,
        op.CastLike(0.0, size),
        op.CastLike(60.0, size),
    )
    small = matrix / op.Pow(op.CastLike(2.0, matrix), halved)
    result = one + small - small
    for index in range(18):
        result = one + op.MatMul(small, result) / op.CastLike(18 - index, small)
    most = op.Cast(
        op.ReduceMax(
            op.Concat(op.Reshape(halved, [-1]), op.CastLike(op.Constant(value_floats=[0.0]), halved), axis=0),
            keepdims=0,
        ),
        to=7,
    )
    for step in range(most):
        result = op.Where(op.CastLike(step, halved) < halved, op.MatMul(result, result), result)
    return result
