"""Circular and hyperbolic functions and their inverses: ONNX's operators for float32, formulas in float64 else.

onnxruntime (1.31) has these operators for single precision only.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import onnx_ir as ir

from entrepot.exporters.building import Builder
from entrepot.exporters.functions.exponentials import log_of_one_more
from entrepot.exporters.functions.terms import Term, choose, in_double, polynomial

_DOUBLE = ir.DataType.DOUBLE

# S. L. Moshier, Cephes: (atan(x) - x) / x³ for |x| <= 0.66, as a quotient of polynomials in x².
_ABOVE = (
    -8.750608600031904122785e-1, -1.615753718733365076637e1, -7.500855792314704667340e1, -1.228866684490136173410e2,
    -6.485021904942025371773e1,
)  # fmt: skip
_BELOW = (
    1.0, 2.485846490142306297962e1, 1.650270098316988542046e2, 4.328810604912902668951e2, 4.853903996359136964868e2,
    1.945506571482613964425e2,
)  # fmt: skip


def _single(name: str, formula: Callable[[Term], Term]) -> Callable[[Builder, ir.Value], ir.Value]:
    spelled = in_double(formula)

    def function(build: Builder, x: ir.Value) -> ir.Value:
        if x.dtype == _DOUBLE:
            return spelled(build, x)
        if x.dtype == ir.DataType.BFLOAT16:
            return build.cast(build.op(name, build.cast(x, ir.DataType.FLOAT)), x.dtype)
        result: ir.Value = build.op(name, x)
        return result

    return function


def _atan(x: Term) -> Term:
    size = x.abs()
    large, middle = size > math.tan(3 * math.pi / 8), size > 0.66
    inner = choose(large, -1 / choose(large, size, 1.0), choose(middle, (size - 1) / (size + 1), size))
    square = inner * inner
    value = inner + inner * square * (polynomial(_ABOVE, square) / polynomial(_BELOW, square))
    value = value + choose(large, math.pi / 2, choose(middle, math.pi / 4, x * 0.0))
    value = choose(size.isinf(), math.pi / 2, value)
    return choose(x == 0, x, choose(x < 0, -value, value))


def _asin(x: Term) -> Term:
    return _atan2(x, ((1 - x) * (1 + x)).sqrt())


def _acos(x: Term) -> Term:
    return _atan2(((1 - x) * (1 + x)).sqrt(), x)


def _atan2(y: Term, x: Term) -> Term:
    """The angle by the smaller of both quotients; zeros and infinities by themselves."""
    both = x.isinf() & y.isinf()
    tall, wide = choose(both, 1.0, y.abs()), choose(both, 1.0, x.abs())
    steep = tall > wide
    below = choose(steep, tall, wide)
    quotient = choose(steep, wide, tall) / choose(below == 0, 1.0, below)
    angle = _atan(choose(below.isinf(), 0.0, quotient))
    angle = choose(steep, math.pi / 2 - angle, angle)
    angle = choose(_negative(x), math.pi - angle, angle)
    return choose(x.isnan() | y.isnan(), math.nan, choose(_negative(y), -angle, angle))


def _negative(x: Term) -> Term:
    """Below zero, or minus zero."""
    return (x < 0) | ((x == 0) & (1 / x < 0))


def _sinh(x: Term) -> Term:
    size = x.abs()
    half = (size / 2).exp()
    large = half * (half / 2) - (-size).exp() / 2
    square = x * x
    small = polynomial([1 / math.factorial(2 * at + 1) for at in range(9, -1, -1)], square)
    return choose(size < 1, x * small, choose(x < 0, -large, large))


def _cosh(x: Term) -> Term:
    half = (x.abs() / 2).exp()
    return half * (half / 2) + (-x.abs()).exp() / 2


def _asinh(x: Term) -> Term:
    size = x.abs()
    far = size > 1e9
    near = choose(far, 1.0, size)
    value = log_of_one_more(near + near * near / (1 + (near * near + 1).sqrt()))
    value = choose(far, choose(far, size, 1.0).log() + math.log(2), value)
    return choose(x == 0, x, choose(x < 0, -value, value))


def _acosh(x: Term) -> Term:
    far = x > 1e9
    less = choose(far, 1.0, x) - 1
    near = log_of_one_more(less + (less * (less + 2)).sqrt())
    return choose(x < 1, math.nan, choose(far, x.log() + math.log(2), near))


def _atanh(x: Term) -> Term:
    size = x.abs()
    value = log_of_one_more(2 * size / (1 - size)) / 2
    return choose(x == 0, x, choose(x < 0, -value, value))


def _tan(x: Term) -> Term:
    return x.sin() / x.cos()


acos, asin, atan = _single("Acos", _acos), _single("Asin", _asin), _single("Atan", _atan)
cosh, sinh, tan = _single("Cosh", _cosh), _single("Sinh", _sinh), _single("Tan", _tan)
acosh, asinh, atanh = in_double(_acosh), in_double(_asinh), in_double(_atanh)
atan2 = in_double(_atan2)
"""The angle of ``(x, y)``, given y first."""
