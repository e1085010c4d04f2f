"""One operation of a StableHLO program: its attributes, and the types that it states."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np

from entrepot.ir.errors import UnsupportedOpError

if TYPE_CHECKING:
    from entrepot.exporters.jax.exported.program import Program, Scope

_TYPES = {
    "i1": np.bool_, "f16": np.float16, "f32": np.float32, "f64": np.float64, "bf16": ml_dtypes.bfloat16,
    "complex<f32>": np.complex64, "complex<f64>": np.complex128,
    **{f"{prefix}i{bits}": np.dtype(f"{name}{bits}") for prefix, name in (("", "int"), ("u", "uint"))
       for bits in (8, 16, 32, 64)},
}  # fmt: skip


class Unsure(Exception):  # noqa: N818 - an answer, not a fault
    """What follows from sizes cannot be said of all of them."""


class Operation:
    """An operation while the program that it is part of is run.

    Args:
        program: That.
        op: As MLIR has it.
        scope: The values around it.
    """

    def __init__(self, program: Program, op: Any, scope: Scope) -> None:
        self.program, self._op, self._scope = program, op.operation, scope
        self.name: str = self._op.name.removeprefix("stablehlo.")

    def has(self, name: str) -> bool:
        """Whether it has such an attribute."""
        return name in self._op.attributes

    def attribute(self, name: str) -> Any:
        """An attribute as MLIR has it."""
        return self._op.attributes[name]

    def integers(self, name: str, default: Sequence[int] = ()) -> list[int]:
        """Integers in a row."""
        return [int(each) for each in self.attribute(name)] if self.has(name) else list(default)

    def pairs(self, name: str, default: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
        """Integers in two columns."""
        if not self.has(name):
            return list(default)
        return [(int(low), int(high)) for low, high in np.array(self.attribute(name)).reshape(-1, 2)]

    def number(self, name: str, default: int = 0) -> int:
        """An integer."""
        return int(self.attribute(name).value) if self.has(name) else default

    def flag(self, name: str, *, default: bool = False) -> bool:
        """A truth value."""
        return bool(self.attribute(name).value) if self.has(name) else default

    def word(self, name: str) -> str:
        """The word that one of StableHLO's own attributes stands for; empty if there is none."""
        return str(self.attribute(name)).rstrip(">").rpartition(" ")[2] if self.has(name) else ""

    def symbol(self, name: str) -> str:
        """The name of a function, or a text."""
        return str(self.attribute(name).value)

    @property
    def text(self) -> str:
        """The operation as MLIR prints it."""
        return str(self._op)

    @property
    def operand_types(self) -> list[np.dtype[Any]]:
        """The element types of the operands."""
        return [element_type(each.type) for each in self._op.operands]

    @property
    def dtype(self) -> np.dtype[Any]:
        """The element type of the first result."""
        return element_type(self._op.results[0].type)

    @property
    def dims(self) -> list[int | None]:
        """The shape of the first result, ``None`` where it is not stated."""
        return shape_of(self._op.results[0].type)

    @property
    def shape(self) -> list[int]:
        """The shape of the first result, which has to be stated.

        Raises:
            UnsupportedOpError: A size is not.
        """
        known = [dim for dim in self.dims if dim is not None]
        if len(known) < len(self.dims):
            raise self.unsupported("has a result of a size that nothing states")
        return known

    def region(self, at: int = 0) -> Callable[..., list[Any]]:
        """A region as a function, which may use the values around it."""
        block = self._op.regions[at].blocks[0]
        return lambda *values: self.program.block(block, values, self._scope)

    def regions(self) -> list[Callable[..., list[Any]]]:
        """All of them."""
        return [self.region(at) for at in range(len(self._op.regions))]

    def combiner(self, function: str = "") -> tuple[str, list[int]]:
        """The only operation in the region or in a function, and which of its arguments that takes; or no name."""
        block = self.program.entry(function) if function else self._op.regions[0].blocks[0]
        ops = [each.operation for each in block.operations]
        arguments = list(block.arguments)
        last = list(ops[-1].operands)
        if len(ops) == 1 and len(last) == 1 and last[0] in arguments:
            return "argument", [arguments.index(last[0])]
        if len(ops) != 2 or list(ops[0].results) != last or any(each not in arguments for each in ops[0].operands):
            return "", []
        return ops[0].name.removeprefix("stablehlo."), [arguments.index(each) for each in ops[0].operands]

    def summed(self, at: int, first: int) -> Any:
        """What an operand is more than the operand before it, where the program computes it as their sum.

        Raises:
            Unsure: It does not.
        """
        owner = self._op.operands[at].owner
        name = getattr(owner, "name", "")
        if name != "stablehlo.add" or owner.operands[0] != self._op.operands[first]:
            raise Unsure
        return self._scope[owner.operands[1]]

    def reads(self, at: int = 0) -> list[int]:
        """Which arguments of a region something in it reads."""
        block = self._op.regions[at].blocks[0]
        return [index for index, each in enumerate(block.arguments) if list(each.uses)]

    def unsupported(self, why: str) -> UnsupportedOpError:
        """The error for what has no counterpart."""
        return UnsupportedOpError(
            f"StableHLO's {self.name} {why}", hint="export the function itself: ep.export(function, sample)"
        )


def element_type(kind: Any) -> np.dtype[Any]:
    """The element type of a tensor.

    Raises:
        UnsupportedOpError: NumPy has none like it.
    """
    name = str(kind.element_type)
    if name not in _TYPES:
        raise UnsupportedOpError(f"the program computes with {name}, which ONNX does not have")
    return np.dtype(_TYPES[name])


def shape_of(kind: Any) -> list[int | None]:
    """The shape of a tensor, ``None`` where it is not stated."""
    return [None if kind.is_dynamic_dim(at) else kind.get_dim_size(at) for at in range(kind.rank)]


def is_numbers(value: Any) -> bool:
    """Whether a value is known while it is traced, and may be sizes."""
    return isinstance(value, np.ndarray) and value.ndim <= 2 and value.size <= 64 and value.dtype.kind in "ibO"


def numbers(value: Any) -> list[Any]:
    """The sizes that a value consists of.

    Raises:
        Unsure: It is computed from elements.
    """
    if not is_numbers(value):
        raise Unsure
    return [each if not isinstance(each, np.generic) else each.item() for each in value.ravel()]


def array(value: Any, dtype: np.dtype[Any]) -> Any:
    """A value as an array: sizes have no type of their own."""
    if not (isinstance(value, np.ndarray) and value.dtype == object):
        return value
    if all(isinstance(each, int | bool) for each in value.ravel()):
        return value.astype(dtype)
    parts = [jnp.asarray(each, dtype).reshape(1) for each in value.ravel()]
    return jax.lax.concatenate(parts, 0).reshape(value.shape)
