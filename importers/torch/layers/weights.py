"""Constant operands as the weights and arguments of layers."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from entrepot.importers.torch.dtypes import FLOATS
from entrepot.importers.torch.layers.layer import Argument, Array, keywords
from entrepot.importers.torch.op import Op
from entrepot.importers.torch.words.products import one
from entrepot.runtime.planning.plan import Value


def weight_at(op: Op, position: int, rank: int | None = None) -> Array | None:
    """A constant operand that may be trained."""
    value = op.value(position)
    array = None if value is None else value.constant
    if not isinstance(array, np.ndarray) or not array.size or ir.DataType.from_numpy(array.dtype) not in FLOATS:
        return None
    return array if rank is None or array.ndim == rank else None


def is_neutral(op: Op, weight: int, bias: int) -> bool:
    """Whether the file says that a scale and a shift were nobody's weights, and they are one and zero throughout."""
    return all(op.value(at) is None or _is_filler(op, at, number) for at, number in ((weight, 1), (bias, 0)))


def is_unshifted(op: Op, bias: int) -> bool:
    """Whether a shift is zero throughout because the operator asks for one, and was nobody's weight."""
    return _is_filler(op, bias, 0)


def _is_filler(op: Op, position: int, number: int) -> bool:
    value = op.value(position)
    is_filled = value is not None and value.constant is not None and bool((value.constant == number).all())
    return is_filled and value is not None and _is_nobodys(op, value)


def _is_nobodys(op: Op, value: Value) -> bool:
    return not op.writer.is_parameter(value) and not op.writer.is_buffer(value)


def name_at(op: Op, position: int = 1) -> str:
    """The name of an operand."""
    value = op.value(position)
    return "" if value is None else value.name


def present(**tensors: Array | None) -> dict[str, Array]:
    """Tensors by torch's names for them, without those that a step does not have."""
    return {name: array for name, array in tensors.items() if array is not None}


def unless_default(**given: tuple[object, object]) -> tuple[Argument, ...]:
    """Arguments that differ from their defaults: the value and the default of each."""
    return keywords(**{name: value for name, (value, default) in given.items() if value != default})


def sizes_of(values: list[int], default: int) -> tuple[object, object]:
    """Sizes for ``unless_default``: one where all are the same."""
    return one(values), str(default)
