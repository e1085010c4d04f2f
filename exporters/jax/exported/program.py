"""A StableHLO program, run on ``jax.lax``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, TypeAlias

import jax
import numpy as np

from entrepot.exporters.jax.exported.operation import Operation, Unsure, array, element_type, is_numbers, shape_of
from entrepot.exporters.jax.exported.table import meanings, meanings_on_numbers
from entrepot.exporters.jax.upstream import stablehlo_module

Scope: TypeAlias = "dict[Any, Any]"
_MAIN = "main"


class Program:
    """The program in what ``jax.export`` made.

    Args:
        exported: That.
    """

    def __init__(self, exported: Any) -> None:
        self._module = stablehlo_module(exported)  # which keeps MLIR's context alive
        self._functions = {each.name.value: each for each in self._module.body.operations if hasattr(each, "name")}
        self._constants: dict[Any, np.ndarray] = {}
        self.kept = exported.module_kept_var_idx

    def __call__(self, arrays: Sequence[Any]) -> list[Any]:
        """The results for flat arrays."""
        types = self._functions[_MAIN].type.results
        with jax.enable_x64(True):  # the program states every type
            results = self.function(_MAIN, [arrays[at] for at in self.kept])
            return [array(value, element_type(kind)) for value, kind in zip(results, types, strict=True)]

    def argument_names(self, count: int) -> list[str]:
        """What the arguments were called in Python, as far as the program tells; empty where it does not."""
        names = [""] * count
        inner = self._functions.get("_wrapped_jax_export_main", self._functions[_MAIN])
        found = [re.findall(r'^loc\("(.*)"\)$', str(each.location)) for each in inner.arguments]
        for at, texts in zip(self.kept, found[len(found) - len(self.kept) :], strict=True):
            names[at] = texts[0] if texts else ""
        return names

    def function(self, name: str, values: Sequence[Any]) -> list[Any]:
        """What a function of the program returns."""
        return self.block(self.entry(name), values, {})

    def entry(self, name: str) -> Any:
        """What a function of the program consists of."""
        return self._functions[name].entry_block

    def block(self, block: Any, values: Sequence[Any], scope: Scope) -> list[Any]:
        """What the operations of a block return, for its arguments and the values around it."""
        inside = dict(scope)
        inside.update(zip(block.arguments, values, strict=True))
        *ops, end = block.operations
        for op in ops:
            results = self._run(op, inside)
            inside.update(zip(op.operation.results, results, strict=True))
        return [inside[each] for each in end.operation.operands]

    def _run(self, op: Any, scope: Scope) -> Sequence[Any]:
        operation = Operation(self, op, scope)
        operands = [scope[each] for each in op.operation.operands]
        if operation.name == "constant":
            return [self._constant(op)]
        if operation.name in ("call", "func.call"):
            return self.function(operation.symbol("callee"), operands)
        result = _on_numbers(operation, operands)
        if result is None:
            meaning = meanings().get(operation.name)
            if meaning is None:
                raise operation.unsupported("has no counterpart here")
            given = [array(value, kind) for value, kind in zip(operands, operation.operand_types, strict=True)]
            try:
                result = meaning(operation, *(given if operation.name not in _TAKE_SIZES else operands))
            except Unsure as error:
                raise operation.unsupported("takes a size that is computed from elements") from error
        return result if isinstance(result, list | tuple) else [result]

    def _constant(self, op: Any) -> np.ndarray:
        """A constant, the same object at every time, so that it is one weight."""
        place = op.operation.results[0]
        if place not in self._constants:
            self._constants[place] = _elements(op, shape_of(place.type), element_type(place.type))
        return self._constants[place]


_TAKE_SIZES = frozenset({
    "dynamic_broadcast_in_dim", "dynamic_reshape", "dynamic_iota", "dynamic_pad", "real_dynamic_slice",
    "dynamic_gather", "dynamic_conv", "custom_call",
})  # fmt: skip


def _on_numbers(operation: Operation, operands: Sequence[Any]) -> Any:
    """The result as numbers, where the operands are; ``None`` where they are not, or it cannot be said."""
    meaning = meanings_on_numbers().get(operation.name)
    if meaning is None or not any(is_numbers(each) for each in operands) or operation.dtype.kind not in "ib":
        return None
    try:
        return meaning(operation, *operands)
    except Unsure:
        return None


def _elements(op: Any, shape: Sequence[Any], dtype: np.dtype[Any]) -> np.ndarray:
    try:
        found = np.array(op.operation.attributes["value"])
    except TypeError:  # MLIR's Python interface has no arrays of some types
        return _printed(str(op), shape, dtype)
    same = found.dtype == dtype and list(found.shape) == list(shape)
    return found if same else _printed(str(op), shape, dtype)


def _printed(text: str, shape: Sequence[Any], dtype: np.dtype[Any]) -> np.ndarray:
    """The elements of a constant as MLIR prints them: as bytes, or each by itself."""
    inside = text[text.index("dense<") + len("dense<") : text.rindex("> : tensor")]
    if inside.startswith('"0x'):
        return np.frombuffer(bytes.fromhex(inside[3:-1]), dtype).reshape(shape)
    words = re.findall(r"\([^)]*\)|0x[0-9A-Fa-f]+|true|false|[-+.\w]+", inside)
    found = np.array([_element(word, dtype) for word in words], dtype)
    return found.reshape(shape) if found.size == np.prod(shape, dtype=int) else np.full(shape, found[0], dtype)


def _element(word: str, dtype: np.dtype[Any]) -> Any:
    if word.startswith("("):
        real, imaginary = word.strip("()").split(",")
        half = np.empty(0, dtype).real.dtype
        return complex(_element(real.strip(), half), _element(imaginary.strip(), half))
    if word.startswith("0x"):
        return np.array(int(word, 16), f"uint{8 * dtype.itemsize}").view(dtype)[()]
    if word in ("true", "false"):
        return word == "true"
    return float(word) if dtype.kind not in "iu" else int(word)
