"""Which neighbours a sample between elements has, and how they are weighted by distance."""

from __future__ import annotations

from typing import NamedTuple

import onnx_ir as ir

from entrepot.ir.opset.builder import OpBuilder


class Kernel(NamedTuple):
    """The neighbours of a sample on one axis.

    Attributes:
        offsets: From the element before the sample, or from the nearest.
        polynomial: In the distance from the sample: coefficients, the highest power first, with one entry per
            neighbour; empty where all the weight is on one.
    """

    offsets: tuple[int, ...]
    polynomial: tuple[tuple[float, ...], ...]


def cubic(a: float) -> Kernel:
    """Four neighbours by Keys' cubic convolution; the outer two follow its second piece."""
    return Kernel(
        (-1, 0, 1, 2),
        ((a, a + 2, a + 2, a), (-5 * a, -a - 3, -a - 3, -5 * a), (8 * a, 0, 0, 8 * a), (-4 * a, 1, 1, -4 * a)),
    )


NEAREST = Kernel((0,), ())
LINEAR = Kernel((0, 1), ((-1, -1), (1, 1)))


def polynomial(op: OpBuilder, x: ir.Value, rows: list[ir.Value]) -> ir.Value:
    """Its value at ``x``, from the coefficients of the highest power to that of the lowest."""
    result = rows[0]
    for row in rows[1:]:
        result = op.Add(op.Mul(result, x), row)
    return result
