"""Numbers with fractions that are made of sizes, as nodes in double precision."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir
from onnxscript import opset20

from entrepot.exporters.torch.lowering.fractions import computed

op: Any = opset20
_LONG, _DOUBLE = 7, 11
_WHOLE = {"Ceil": op.Ceil, "Floor": op.Floor, "Round": op.Round, "Trunc": lambda value: value}


def translate_fractions(numbers: Sequence[Any], formula: str) -> Any:
    """The nodes of a formula over ``numbers``."""
    return _written(json.loads(formula), numbers)


def _written(tree: Any, numbers: Sequence[Any]) -> Any:
    if isinstance(tree, str):
        return op.Cast(numbers[int(tree)], to=_DOUBLE)
    if not isinstance(tree, list):
        return op.Constant(value=ir.tensor(np.float64(tree)))
    name, *operands = tree
    values = [_written(each, numbers) for each in operands]
    if name in _WHOLE:
        return op.Cast(_WHOLE[name](*values), to=_LONG)
    if name == "NotEqual":
        return op.Not(op.Equal(*values))
    return values[0] if name in ("Identity", "Tensor") else getattr(op, name)(*values)


TRANSLATIONS = {computed: translate_fractions}
