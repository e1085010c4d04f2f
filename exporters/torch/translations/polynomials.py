"""Orthogonal polynomials by their recurrences, for degrees that are only known at run time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnx_ir
import torch
from onnxscript import opset18

from entrepot.exporters.torch.translations.recurrences import by_recurrence

op: Any = opset18  # what torch.onnx (2.13) writes graphs in
aten = torch.ops.aten

_FORMS: dict[str, tuple[float, float, float, float, float, float, float, float]] = {
    # the polynomial of degree 1, a x + b; then ((c + d k) x + e + f k) p - (g + h k) q, divided by k + 1 for some
    "chebyshev_polynomial_t": (1, 0, 2, 0, 0, 0, 1, 0),
    "chebyshev_polynomial_u": (2, 0, 2, 0, 0, 0, 1, 0),
    "chebyshev_polynomial_v": (2, -1, 2, 0, 0, 0, 1, 0),
    "chebyshev_polynomial_w": (2, 1, 2, 0, 0, 0, 1, 0),
    "hermite_polynomial_h": (2, 0, 2, 0, 0, 0, 0, 2),
    "hermite_polynomial_he": (1, 0, 1, 0, 0, 0, 0, 1),
    "laguerre_polynomial_l": (-1, 1, -1, 0, 1, 2, 0, 1),
    "legendre_polynomial_p": (1, 0, 1, 2, 0, 0, 0, 1),
}
_DIVIDED = ("laguerre_polynomial_l", "legendre_polynomial_p")


def _translation(name: str, *, shifted: bool) -> Callable[..., Any]:
    form, divided = [float(number) for number in _FORMS[name]], name in _DIVIDED

    def translate(x: Any, n: Any) -> Any:
        kind = next((each.dtype for each in (x, n) if getattr(each, "dtype", None) is not None), None)
        kind = kind if kind is not None and kind.is_floating_point() else onnx_ir.DataType.FLOAT
        place, degree = _double(x), _double(n)
        if shifted:
            place = op.Sub(op.Add(place, place), op.Constant(value=onnx_ir.tensor(1.0, dtype=onnx_ir.DataType.DOUBLE)))
        return op.Cast(by_recurrence(place, degree, form=form, divided=int(divided)), to=int(kind))

    return translate


def _double(value: Any) -> Any:
    if isinstance(value, int | float):
        return op.Constant(value=onnx_ir.tensor(float(value), dtype=onnx_ir.DataType.DOUBLE))
    return op.Cast(value, to=int(onnx_ir.DataType.DOUBLE))


def _translations() -> dict[Any, Callable[..., Any]]:
    table = {}
    names = [(name, name, False) for name in _FORMS]
    names += [(f"shifted_{name}", name, True) for name in _FORMS if name.startswith("chebyshev")]
    for full, name, shifted in names:
        packet = getattr(aten, f"special_{full}")
        for overload in ("default", "n_scalar", "x_scalar"):
            table[getattr(packet, overload)] = _translation(name, shifted=shifted)
    return table


TRANSLATIONS = _translations()
