"""Where the words of torch are found."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from entrepot.importers.torch.op import Op
from entrepot.ir.opset import OPSET
from entrepot.ir.opset.schemas import since
from entrepot.ir.table import OpTable

Word = Callable[[Op], "str | None"]
"""The expression for a step; ``None`` where torch has no word for this use of the operator."""

WORDS: OpTable[Callable[..., Any]] = OpTable("torch word", packages=("entrepot.importers.torch.words",))


def word(*op_types: str) -> Callable[[Word], Word]:
    """Decorator that registers how operators of ai.onnx are written, at the version in force at the hub."""

    def register(function: Word) -> Word:
        for op_type in op_types:
            WORDS(op_type, since("", op_type, OPSET))(function)
        return function

    return register
