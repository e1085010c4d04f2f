"""What a file has before its classes: imports, functions copied from here, kernels."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from entrepot.importers.torch import support
from entrepot.importers.torch.op import Op
from entrepot.ir.errors import UnsupportedOpError
from entrepot.runtime.plan import Call, Step, Value


class Helpers:
    """The functions that a text needs, as they are needed."""

    def __init__(self) -> None:
        self._needed: dict[str, str] = {}

    @property
    def reserved(self) -> list[str]:
        """Names that the file may use."""
        return [name for name in vars(support) if not name.startswith("_")]

    def need(self, name: str) -> str:
        """A function of ``support``, with those that it calls."""
        if name not in self._needed:
            text = inspect.getsource(getattr(support, name))
            for inner in ast.walk(ast.parse(text)):
                if isinstance(inner, ast.Name) and inner.id != name and inspect.isfunction(getattr(support, inner.id, 0)):
                    self.need(inner.id)
            self._needed[name] = text.rstrip()
        return name

    def texts(self) -> list[str]:
        """The functions, those that others call first."""
        return list(self._needed.values())

    def kernel(self, op: Op) -> str:
        """The call of a kernel that is written out in the file."""
        raise UnsupportedOpError(f"torch has no word for {op.step.op_type}", node=op.step.where)

    # what a Writer asks for
    def thing(self, value: Any, wanted: str) -> str:
        """A function of ``support``."""
        return self.need(value.__name__)

    def constant(self, value: Value, step: Step | None, position: int) -> str:
        """What is neither kept nor a number."""
        raise UnsupportedOpError(f"torch has no {value.type.dtype if value.type else 'such'} tensors", value=value.name)

    def text(self, value: str) -> str:
        """A string in double quotes."""
        plain = repr(value)
        return f'"{plain[1:-1]}"' if plain.startswith("'") and '"' not in plain else plain

    def call(self, call: Call, step: Step, arguments: Sequence[str], attributes: Mapping[str, str]) -> str:
        """Not used: steps are written by words."""
        raise NotImplementedError
