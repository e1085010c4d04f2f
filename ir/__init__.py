"""What a model is: the neutral form, its files, its versions and its errors."""

from __future__ import annotations

from entrepot.ir.opset import OPSET

__all__ = ["OPSET"]
