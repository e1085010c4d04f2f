"""Functions of sizes that are numbers of Python."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import onnx_ir as ir
import torch
from onnxscript import opset20

import entrepot.exporters.torch.rewriting.logarithms  # noqa: F401 - defines the operator

op: Any = opset20
_FLOAT, _LONG, _DOUBLE = 1, 7, 11
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


def rounded(value: Any, digits: Any = None) -> Any:
    """``round``, to whole numbers; halves become even ones."""
    if digits is not None:
        raise NotImplementedError("sizes rounded to digits")
    return op.Cast(op.Round(op.Cast(value, to=_FLOAT)), to=_LONG)


def count(self: Any) -> Any:
    """``numel``: how many elements there are; of a vector as the size of its axis, which others ask for, too."""
    return op.Squeeze(op.Shape(self)) if len(self.shape) == 1 else op.Size(self)


def shifted_left(value: Any, places: Any) -> Any:
    """``value << places`` of whole numbers of Python, which torch.onnx (2.13) takes for tensors."""
    return op.Mul(_whole(value), _power_of_two(places))


def shifted_right(value: Any, places: Any) -> Any:
    """``value >> places``: rounded down, also below zero."""
    quotient = op.Div(op.Cast(_whole(value), to=_DOUBLE), op.Cast(_power_of_two(places), to=_DOUBLE))
    return op.Cast(op.Floor(quotient), to=_LONG)


def _power_of_two(places: Any) -> Any:
    two = op.Constant(value=ir.tensor(np.float64(2)))  # in float64, powers up to 2 ** 52 are exact
    return op.Cast(op.Pow(two, op.Cast(_whole(places), to=_DOUBLE)), to=_LONG)


def _whole(value: Any) -> Any:
    return op.Constant(value=ir.tensor(np.int64(value))) if isinstance(value, int) else value


TRANSLATIONS = {
    round: rounded,
    operator.lshift: shifted_left,
    operator.rshift: shifted_right,
    torch.ops.aten.sym_numel.default: count,
    torch.sym_sqrt: sym_sqrt,
    torch.ops.entrepot.logarithm.default: logarithm,
}
