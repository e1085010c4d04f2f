"""One step as the words of torch see it: operands as text, attributes, types."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import onnx_ir as ir

from entrepot.importers.torch.dtypes import NAMES
from entrepot.importers.torch.steps.natural import is_stated
from entrepot.importers.torch.text.sizes import Sizes, extreme, literal
from entrepot.ir.opset.schemas import schema
from entrepot.runtime.kernels.axes import counted
from entrepot.runtime.planning.plan import Step, Value

if TYPE_CHECKING:
    from entrepot.importers.torch.text.writer import ModuleWriter


class Op:
    """A step being written.

    Args:
        writer: The text so far.
        step: What is to be written next.
    """

    def __init__(self, writer: ModuleWriter, step: Step) -> None:
        self.writer = writer
        self.step = step
        self._asked: set[str] = set()
        self._seen: set[int] = set()

    def __len__(self) -> int:
        return len(self.step.inputs)

    def __getitem__(self, position: int) -> str:
        """The text of an operand, a tensor."""
        return self.writer.read(self.value(position), self.step, position)

    def value(self, position: int) -> Value | None:
        """An operand; ``None`` for one that is absent."""
        self._seen.add(position)
        return self.step.inputs[position] if position < len(self.step.inputs) else None

    def see(self, *positions: int) -> None:
        """Operands that are looked at when the layer is called."""
        self._seen.update(positions)

    @property
    def overlooked(self) -> bool:
        """Whether an attribute that is not at its default, or an operand, was not looked at."""
        defaults = _defaults(self.step.key)
        given = {name for name, value in self.step.attributes.items() if value != defaults.get(name)}
        there = {at for at, value in enumerate(self.step.inputs) if value is not None}
        return bool(given - self._asked - _SAID_TWICE or there - self._seen)

    def has(self, position: int) -> bool:
        """Whether an operand is given."""
        return self.value(position) is not None

    def operands(self) -> list[str]:
        """The text of every operand."""
        return [self[position] for position in range(len(self))]

    def attribute(self, name: str) -> Any:
        """An attribute, or the schema's default for it."""
        self._asked.add(name)
        if name in self.step.attributes:
            return self.step.attributes[name]
        return _defaults(self.step.key).get(name)

    def number(self, position: int) -> str | None:
        """An operand as a number of Python, which takes the other operand's type; ``None`` for a tensor.

        A constant of one element counts if it adds no axis to the result.
        """
        value = self.value(position)
        if value is None:
            return None
        array = value.constant
        if isinstance(array, np.ndarray) and array.size == 1 and not self.writer.is_parameter(value):
            return self.literal(array) if array.ndim == 0 or array.ndim <= self._rank_beside(position) else None
        sizes = self.writer.sizes.get(value)
        if sizes is not None and sizes.items is not None and len(sizes.items) == 1:
            return sizes.items[0] if sizes.rank <= self._rank_beside(position) else None
        return None

    def literal(self, array: np.ndarray[Any, Any]) -> str | None:
        """The one element of an array as Python writes it; the largest of a type follows ``half()``."""
        if array.dtype.kind not in "iufb" and array.dtype.name != "bfloat16":
            return None
        value = array.reshape(-1)[0]
        if (end := extreme(value)) is not None:
            return f"torch.finfo({self.dtype_text(ir.DataType.from_numpy(array.dtype))}).{end}"
        return literal(value.astype(np.float32).item() if array.dtype.name == "bfloat16" else value, array.dtype)

    def _rank_beside(self, position: int) -> int:
        """The rank of the other operands, as far as it is known."""
        others = [self.rank(at) for at in range(len(self)) if at != position and self.value(at) is not None]
        return max((rank for rank in others if rank is not None), default=0)

    def either(self, position: int) -> str:
        """A number where it can be one, else a tensor."""
        number = self.number(position)
        return self[position] if number is None else number

    def sizes(self, position: int) -> Sizes | None:
        """An operand whose values decide a shape, as numbers of Python; ``None`` for one that is absent."""
        value = self.value(position)
        return None if value is None else self.writer.numbers(value, self.step, position)

    def one(self, position: int) -> str:
        """An operand of one element as a number of Python."""
        sizes = self.sizes(position)
        items = None if sizes is None else sizes.items
        return items[0] if items is not None and len(items) == 1 else f"{self[position]}.item()"

    def ints(self, position: int) -> list[int] | None:
        """The numbers of an operand that is constant."""
        sizes = self.sizes(position)
        return None if sizes is None else sizes.known

    def is_natural(self, position: int) -> bool:
        """Whether an operand is known to have nothing below 0."""
        value = self.value(position)
        return value is not None and (value in self.writer.state.plan.natural or is_stated(value))

    def type(self, position: int) -> Any:
        """What is known of an operand."""
        value = self.value(position)
        return None if value is None else value.type

    def rank(self, position: int) -> int | None:
        """The rank of an operand; ``None`` if unknown."""
        shape = self.shape(position)
        return None if shape is None else len(shape)

    def shape(self, position: int) -> tuple[int | str | None, ...] | None:
        """The shape of an operand; ``None`` if unknown."""
        known = self.type(position)
        return None if known is None else known.shape

    def covers(self, position: int) -> bool:
        """Whether an operand has the last sizes of the first one, so that it is repeated along none of these axes."""
        own, whole = self.shape(position), self.shape(0)
        if own is None or whole is None or len(own) > len(whole):
            return False
        pairs = zip(own[::-1], whole[::-1], strict=False)
        return all(size == there or (size != 1 and not isinstance(there, int)) for size, there in pairs)

    def dtype(self, position: int = 0) -> ir.DataType | None:
        """The element type of an operand; ``None`` if unknown."""
        known = self.type(position)
        return None if known is None else known.dtype

    @property
    def out(self) -> Value:
        """The first result."""
        value = self.step.outputs[0]
        assert value is not None
        return value

    @property
    def made(self) -> ir.DataType | None:
        """The element type of the first result that is read."""
        value = next((value for value in self.step.outputs if value is not None), None)
        return None if value is None or value.type is None else value.type.dtype

    @property
    def out_shape(self) -> tuple[int | str | None, ...] | None:
        """The shape of the first result."""
        value = self.step.outputs[0]
        return None if value is None or value.type is None else value.type.shape

    def asked(self, position: int) -> bool:
        """Whether a result is read."""
        return position < len(self.step.outputs) and self.step.outputs[position] is not None

    def dtype_text(self, dtype: ir.DataType | int) -> str | None:
        """An element type; the model's own one by a name that follows ``half()``."""
        kind = ir.DataType(dtype)
        return self.writer.dtype() if kind == self.writer.floating else NAMES.get(kind)

    def axis(self, axis: int, rank: int | None) -> int:
        """An axis as a reader likes it: from the front, but for the last."""
        if rank is None:
            return axis
        axis = counted(axis, max(rank, 1))
        return -1 if axis == rank - 1 and rank > 1 else axis


_SAID_TWICE = frozenset({"kernel_shape", "hidden_size", "saturate"})
"""Attributes that operands say too, or that matter to types which no word is for."""


@cache
def _defaults(key: Any) -> dict[str, Any]:
    if not onnx.defs.has(key.op_type, key.domain):
        return {}
    made = {}
    for name, attribute in schema(key.domain, key.op_type, key.since).attributes.items():
        value = attribute.default_value
        if value.type:
            made[name] = onnx.helper.get_attribute_value(value)
    return {name: value.decode() if isinstance(value, bytes) else value for name, value in made.items()}
