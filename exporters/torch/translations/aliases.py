"""Operators by their other names: what is done for ``mul`` is done for ``multiply``.

torch.onnx (2.13) has translations for some of these names that know nothing of type promotion, or of how we compute
the function; torch would have taken the names apart if there were none.
"""

from __future__ import annotations

from typing import Any

import torch

aten = torch.ops.aten

_NAMES = """
concat=cat concatenate=cat divide=div true_divide=div greater=gt greater_equal=ge less=lt less_equal=le multiply=mul
special_erf=erf special_erfc=erfc special_expm1=expm1 special_sinc=sinc subtract=sub
"""


def _by_names() -> dict[Any, Any]:
    """Every overload of a second name, with the same overload of the first."""
    pairs = (pair.split("=") for pair in _NAMES.split())
    packets = ((getattr(aten, alias), getattr(aten, name)) for alias, name in pairs)
    return {
        getattr(alias, overload): getattr(original, overload)
        for alias, original in packets
        for overload in alias.overloads()
        if overload in original.overloads() and "out" not in overload.split("_")
    }


DECOMPOSITIONS: dict[Any, Any] = _by_names() | {
    aten.special_softmax.default: torch.softmax,
    aten.special_log_softmax.default: torch.log_softmax,
}
