"""Recurrences as loops, in onnxscript."""

# mypy: ignore-errors
# onnxscript reads this, and gives it a meaning of its own: numbers are tensors.

from collections.abc import Sequence

from onnxscript import DOUBLE, script
from onnxscript import opset18 as op  # what torch.onnx (2.13) writes functions in


@script()
def by_recurrence(x: DOUBLE[...], degree: DOUBLE[...], form: Sequence[float], divided: int) -> DOUBLE[...]:
    """The polynomial of each degree without its fraction; ``polynomials.py`` has the forms.

    It is 0 for degrees below 0, and for those that are no whole number of 64 bits: C makes such a number of them.
    """
    degree = op.Where(op.Abs(degree) < op.CastLike(9e18, x), degree, op.CastLike(-1.0, x))
    numbers = op.CastLike(op.Constant(value_floats=form), x)
    one = op.CastLike(1.0, x)
    start = x * op.Gather(numbers, 0) + op.Gather(numbers, 1)
    same = op.CastLike(0.0, x) * degree
    rows = op.Shape(op.Unsqueeze(start + same, [0]))
    first = op.Where(degree < 1.0, one, start)
    result = op.Where(degree <= -1.0, op.CastLike(0.0, x), first)
    state = op.Concat(
        op.Expand(op.Unsqueeze(start, [0]), rows),
        op.Expand(one, rows),
        op.Expand(op.Unsqueeze(result, [0]), rows),
        axis=0,
    )
    steps = op.Cast(
        op.ReduceMax(
            op.Concat(op.Reshape(degree, [-1]), op.CastLike(op.Constant(value_floats=[0.0]), x), axis=0), keepdims=0
        ),
        to=7,
    )
    for index in range(steps - 1):
        k = op.CastLike(index + 1, x)
        p = op.Gather(state, 0, axis=0)
        q = op.Gather(state, 1, axis=0)
        along = (
            (op.Gather(numbers, 2) + op.Gather(numbers, 3) * k) * x + op.Gather(numbers, 4) + op.Gather(numbers, 5) * k
        )
        following = along * p - (op.Gather(numbers, 6) + op.Gather(numbers, 7) * k) * q
        scale = one + k * op.CastLike(op.Cast(divided, to=7), x)
        following = following / scale
        kept = op.Where(op.Floor(degree) == k + 1.0, following, op.Gather(state, 2, axis=0))
        state = op.Concat(op.Unsqueeze(following, [0]), op.Unsqueeze(p, [0]), op.Unsqueeze(kept, [0]), axis=0)
    return op.Gather(state, 2, axis=0)
