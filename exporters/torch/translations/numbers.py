"""Functions of sizes that are numbers of Python."""

from __future__ import annotations

from typing import Any

import torch
from onnxscript import opset20

op: Any = opset20
_FLOAT = 1


def sym_sqrt(value: Any) -> Any:
    """``math.sqrt``, in the precision in which torch.onnx computes with sizes."""
    return op.Sqrt(op.Cast(value, to=_FLOAT))


TRANSLATIONS = {torch.sym_sqrt: sym_sqrt}
