"""References in a text that stands for itself: what is imported, what is written out, what becomes a parameter."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import fields
from functools import cache
from typing import Any

import numpy as np

from entrepot.ir.errors import UnsupportedOpError
from entrepot.ir.operators import Definition
from entrepot.ir.traits import host_operands
from entrepot.ir.typing.plain import Type
from entrepot.runtime.emitting.names import Names
from entrepot.runtime.planning.plan import Call, Step, Value

_FEW = 16
"""Elements; host operands of up to so many are written out."""

_PLAIN = frozenset(np.dtype(kind) for kind in ("?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"))


class Spelled:
    """References by imports, literals and parameters.

    Args:
        names: Names that are free in the text.
        special: Objects that are written in a way of their own: by ``id``, the expression, and the statement that
            imports or makes what it refers to.
        weights: Names of the constants that are parameters however small they are.

    Attributes:
        imports: The statements that the text needs before it.
        parameters: Constants that are kept beside the text, by the names that it refers to them by.
    """

    def __init__(
        self, names: Names, special: Mapping[int, tuple[str, str]], weights: Collection[str] = frozenset()
    ) -> None:
        self.imports: dict[str, None] = {}
        self.parameters: dict[str, np.ndarray[Any, Any]] = {}
        self._names = names
        self._special = special
        self._weights = weights
        self._written: dict[int, tuple[Any, str]] = {}

    def thing(self, value: Any, wanted: str) -> str:
        """The expression for an object; what has no spelling becomes a parameter."""
        if id(value) in self._special:
            expression, statement = self._special[id(value)]
            self.imports[statement] = None
            return expression
        if id(value) not in self._written:
            self._written[id(value)] = value, self._expression(value, wanted)  # kept, so that its id stays its own
        return self._written[id(value)][1]

    def _expression(self, value: Any, wanted: str) -> str:
        if isinstance(value, np.ndarray):
            return self._parameter(value, wanted) if value.size > _FEW else self.array(value, wanted)
        if isinstance(value, tuple):
            items = [self.thing(item, wanted) for item in value]
            return f"({', '.join(items)}{',' * (len(items) == 1)})"
        if isinstance(value, Type):
            return self._type(value)
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, float | np.floating):
            return _number(value) if np.isfinite(value) else f"np.{_number(value)}".replace("np.-", "-np.")
        return self._imported(value) if callable(value) else repr(value)

    def constant(self, value: Value, step: Step | None, position: int) -> str:
        """Shapes, axes and single numbers are written out; weights, and what is large, are parameters."""
        array = value.constant
        decides = step is not None and position in host_operands(step.key)
        spelling = None if step is None or step.call is None else step.call.spelling
        if spelling is not None and position in spelling.literals:
            return _python(array.tolist())
        if array.size <= (_FEW if decides else 1) and (decides or value.name not in self._weights):
            return self.array(array, value.name)
        return self._parameter(array, value.name)

    def array(self, array: np.ndarray[Any, Any], wanted: str) -> str:
        """A small array written out; one of an element type that NumPy lacks is a parameter."""
        if array.shape == (0,) and array.dtype in _PLAIN:
            return f"np.array([], np.{array.dtype.name})"
        if array.dtype not in _PLAIN and not (array.dtype.kind == "O" and array.size):
            return self._parameter(array, wanted)
        if 0 in array.shape or not np.isfinite(array.astype(np.float64) if array.dtype.kind == "f" else 0).all():
            return self._parameter(array, wanted)
        kind = {"int64": "", "bool": "", "float64": "", "object": ", object"}.get(
            array.dtype.name, f", np.{array.dtype.name}"
        )
        return f"np.array({_nested(array)}{kind})"

    def text(self, value: str) -> str:
        """A string in double quotes, unless it has some."""
        plain = repr(value)
        if plain.startswith("'") and '"' not in plain:
            return f'"{plain[1:-1]}"'
        return plain

    def call(self, call: Call, step: Step, arguments: Sequence[str], attributes: Mapping[str, str]) -> str:
        """The call as its spelling has it, or of the kernel by its name."""
        if call.spelling is not None:
            self.imports.update(dict.fromkeys(line for line in call.spelling.imports if line != "import numpy as np"))
            return call.spelling.template.format(*arguments, **attributes)
        given = [self.thing(value, "xp") for value in call.leading]
        function = inspect.unwrap(call.function)
        defaults = _defaults(function)
        told = {key: text for key, text in attributes.items() if not _is(call.attributes[key], defaults.get(key))}
        given += [*arguments, *(f"{key}={text}" for key, text in told.items())]
        return f"{self.thing(function, step.op_type.lower())}({', '.join(given)})"

    def _parameter(self, array: np.ndarray[Any, Any], wanted: str) -> str:
        name, number = wanted or "constant", 1
        while name in self.parameters and self.parameters[name] is not array:
            number += 1
            name = f"{wanted}_{number}"
        self.parameters[name] = array
        return f"weights[{self.text(name)}]"

    def _imported(self, function: Callable[..., Any]) -> str:
        if isinstance(function, np.ufunc):
            return f"np.{function.__name__}"
        module, name = function.__module__, function.__name__
        if isinstance(definition := getattr(function, "definition", None), Definition):
            _check_importable(function, definition)
        assert getattr(sys.modules[module], name, None) is function, f"{module}.{name} cannot be imported"
        alias = name if self._names.claim(name) else self._names.fresh(name)
        self.imports[f"from {module} import {name}" + (f" as {alias}" if alias != name else "")] = None
        return alias

    def _type(self, known: Type) -> str:
        self.imports["from entrepot.ir.typing.plain import Type"] = None
        given = {field.name: getattr(known, field.name) for field in fields(known)}
        texts = [f"{name}={self._field(value)}" for name, value in given.items() if value is not None]
        return f"Type({', '.join(texts)})"

    def _field(self, value: Any) -> str:
        if isinstance(value, Type):
            return self._type(value)
        if hasattr(value, "bitwidth"):  # an element type of onnx_ir
            self.imports["from onnx_ir import DataType"] = None
            return f"DataType.{value.name}"
        return _python(value) if not isinstance(value, str) else self.text(value)


@cache
def _defaults(function: Callable[..., Any]) -> dict[str, Any]:
    """What a kernel's parameters are without being given."""
    if isinstance(function, np.ufunc):
        return {}
    parameters = inspect.signature(function).parameters.values()
    return {each.name: each.default for each in parameters if each.default is not each.empty}


def _is(value: Any, default: Any) -> bool:
    """Whether a value is the default, in type too; what is not plain is never told apart."""
    return isinstance(value, int | float | str) and type(value) is type(default) and value == default


def _nested(array: np.ndarray[Any, Any]) -> str:
    if array.ndim:
        return f"[{', '.join(_nested(part) if isinstance(part, np.ndarray) else _number(part) for part in array)}]"
    return _number(array.reshape(-1)[0])


def _number(value: Any) -> str:
    """The shortest text that reads back as the same number."""
    if isinstance(value, str):
        return _python(value)
    return str(value) if not isinstance(value, np.floating) else str(value).replace("e+", "e")


def _python(value: Any) -> str:
    """Numbers, strings and tuples of them; lists are written as tuples."""
    if isinstance(value, list | tuple):
        return f"({', '.join(map(_python, value))}{',' * (len(value) == 1)})"
    plain = repr(value)
    return f'"{plain[1:-1]}"' if plain.startswith("'") and '"' not in plain else plain


def _check_importable(function: Callable[..., Any], definition: Definition) -> None:
    module, name = function.__module__, function.__name__
    if getattr(sys.modules.get(module), name, None) is not function:
        raise UnsupportedOpError(
            f"{definition} cannot be imported from {module} as {name}, which the file would do",
            hint="define it at the top of a module",
        )
