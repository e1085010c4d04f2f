"""The node under conversion, and all that an adapter may ask of it."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeAlias

import numpy as np
import onnx_ir as ir

from entrepot.ir.errors import ConversionError
from entrepot.ir.opset.names import Names
from entrepot.ir.opset.values import Known
from entrepot.ir.typing.query import Types

Array: TypeAlias = np.ndarray[Any, Any]


class ReadersFirstError(ConversionError):
    """The node can be removed only once its readers have been converted."""


@dataclass
class Surroundings:
    """What all nodes of one conversion share."""

    names: Names
    known: Known
    types: Types
    targets: dict[str, int]
    main: ir.Graph | None
    touched: list[ir.Node]
    """Nodes that carry a version of their own until the conversion is done."""
    constants: dict[Hashable, ir.Attr] = field(default_factory=dict)
    """Small constants that have been written, by type, shape and bytes."""


@dataclass
class Place:
    """A node under conversion, and what is known around it.

    Attributes:
        node: The node.
        version: The opset that emitted nodes are read at.
        domain: Of the emitted nodes.
        since: The since-version that gives ``node`` its meaning now.
    """

    node: ir.Node
    version: int
    around: Surroundings
    domain: str = ""
    since: int = 0

    def input(self, index: int) -> ir.Value | None:
        """An input, or ``None`` when it is absent."""
        return self.node.inputs[index] if index < len(self.node.inputs) else None

    def x(self, index: int = 0) -> ir.Value:
        """A required input."""
        value = self.input(index)
        if value is None:
            self.refuse(f"its input {index} is missing")
        return value

    def used(self, index: int) -> bool:
        """Whether an output exists and is read."""
        if index >= len(self.node.outputs) or not self.node.outputs[index].name:
            return False
        return bool(self.node.outputs[index].uses()) or self.node.outputs[index].is_graph_output()

    def attr(self, name: str, default: Any = None) -> Any:
        """An attribute as a Python value; one that refers to a function's parameter is refused."""
        attr = self.node.attributes.get(name)
        if attr is None:
            return default
        if attr.is_ref():
            self.refuse(
                f"attribute {name} refers to the function's parameter '{attr.ref_attr_name}', which the step needs",
                hint="inline the function first",
            )
        return list(attr.value) if isinstance(attr.value, tuple) else attr.value

    def has_default(self, name: str, default: Any) -> bool:
        """Whether an attribute is absent or equal to a default; a default ``[1]`` means "all ones"."""
        value = self.attr(name)
        if isinstance(default, list):
            return value is None or all(item == default[0] for item in value)
        return value is None or value == default

    def known(self, value: ir.Value | None) -> Array | None:
        """The value as an array when it is constant."""
        return self.around.known.array(value)

    def need_known(self, index: int, what: str) -> Array:
        """The constant value of an input; refused when it is only known at run time."""
        array = self.known(self.input(index))
        if array is None:
            self.refuse(f"{what} is computed at run time", hint=f"possible if {what} is a constant")
        return array

    def dtype(self, value: ir.Value | None) -> ir.DataType | None:
        """Element type, or ``None`` when unknown."""
        return self.around.types.dtype(value)

    def need_dtype(self, value: ir.Value | None) -> ir.DataType:
        """Element type; refused when unknown."""
        dtype = self.dtype(value)
        if dtype is None:
            self.refuse("the element type of its input is unknown", hint="possible if the file states it (value_info)")
        return dtype

    def shape(self, value: ir.Value | None) -> list[int | None] | None:
        """The shape with ``None`` for dims that are not fixed, or ``None`` when the rank is unknown."""
        shape = self.around.types.shape(value)
        return None if shape is None else [dim if isinstance(dim, int) else None for dim in shape]

    def rank(self, value: ir.Value | None) -> int | None:
        """The rank, or ``None`` when unknown."""
        shape = self.around.types.shape(value)
        return None if shape is None else len(shape)

    def need_rank(self, value: ir.Value | None) -> int:
        """The rank; refused when unknown."""
        rank = self.rank(value)
        if rank is None:
            self.refuse("the rank of its input is unknown", hint="possible if the file states shapes (value_info)")
        return rank

    def refuse(self, reason: str, *, hint: str | None = None) -> NoReturn:
        """The step cannot be taken.

        Raises:
            ConversionError: Always; the driver adds which node and which step.
        """
        raise self.refusal(reason, hint=hint)

    def after_readers(self, reason: str, *, hint: str | None = None) -> NoReturn:
        """Try again when every other node is converted; refused if the node is still read then.

        Raises:
            ReadersFirstError: Always; the driver comes back to the node.
        """
        raise ReadersFirstError(reason, hint=hint)

    def refusal(self, reason: str, *, hint: str | None = None) -> ConversionError:
        """The error that ``refuse`` raises, for the end of a function that returns."""
        return ConversionError(reason, hint=hint)
