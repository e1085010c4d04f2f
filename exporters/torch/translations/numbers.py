"""Functions of sizes that are numbers of Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import torch
from onnxscript import opset20

import entrepot.exporters.torch.rewriting.logarithms  # noqa: F401 - defines the operator

op: Any = opset20
_FLOAT, _DOUBLE = 1, 11
_FINE = np.float64(2**40)
"""Logarithms of different sizes below 2 ** 38 differ by more than one part of this."""


def sym_sqrt(value: Any) -> Any:
    """``math.sqrt``, in the precision in which torch.onnx computes with sizes."""
    return op.Sqrt(op.Cast(value, to=_FLOAT))


def logarithm(value: Any, base: float) -> Any:
    """``math.log2``, ``math.log10`` and ``math.log``; those of powers are whole, as quotients of logarithms are not."""
    quotient = op.Div(op.Log(op.Cast(value, to=_DOUBLE)), op.Constant(value=ir.tensor(np.log(np.float64(base)))))
    fine = op.Constant(value=ir.tensor(_FINE))
    return op.Cast(op.Div(op.Round(op.Mul(quotient, fine)), fine), to=_FLOAT)


def count(self: Any) -> Any:
    """``numel``: how many elements there are."""
    return op.Size(self)


TRANSLATIONS = {
    torch.ops.aten.sym_numel.default: count,
    torch.sym_sqrt: sym_sqrt,
    torch.ops.entrepot.logarithm.default: logarithm,
}
