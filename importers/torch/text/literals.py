"""Numbers that a text has, where a tensor is needed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx_ir as ir

from entrepot.importers.torch.dtypes import NAMES
from entrepot.importers.torch.text import sizes as numbers
from entrepot.importers.torch.text.sizes import Sizes
from entrepot.runtime.planning.plan import Value

if TYPE_CHECKING:
    from entrepot.importers.torch.text.writer import ModuleWriter


def of_numbers(writer: ModuleWriter, sizes: Sizes) -> str:
    """A tensor of numbers that are computed in Python."""
    plain = sizes.dtype == ir.DataType.INT64 and bool(sizes.items)  # torch makes floats of no numbers
    return _made(writer, str(sizes), None if plain else sizes.dtype)


def of_constant(writer: ModuleWriter, value: Value) -> str:
    """A tensor of a few numbers that are known."""
    array = value.constant
    kind = None if array.dtype == object else ir.DataType.from_numpy(array.dtype)
    if not array.size and kind in NAMES:
        return _filled(writer, array.shape, "0", kind)
    if array.ndim > 1 and kind in NAMES:
        items = array.reshape(-1)
        if array.tobytes() == items[0].tobytes() * array.size:
            return _filled(writer, array.shape, numbers.literal(items[0].item(), array.dtype), kind)
        told = ", ".join(numbers.literal(item, array.dtype) for item in items.tolist())
        return f"{_made(writer, f'[{told}]', kind)}.reshape({tuple(array.shape)})"
    if array.size == 1 and kind in NAMES and (number := _of_one(writer, array, kind)) is not None:
        return _filled(writer, array.shape, number, kind)
    sizes = numbers.of_constant(value)
    return writer.helpers.constant(value, None, 0) if sizes is None else of_numbers(writer, sizes)


def _of_one(writer: ModuleWriter, array: np.ndarray[Any, Any], kind: ir.DataType) -> str | None:
    """The number where it is the largest of its type, or of a type that NumPy lacks; else ``None``."""
    end = numbers.extreme(array.reshape(-1)[0])
    if end is not None:
        return f"torch.finfo({writer.dtype_name(kind)}).{end}"
    return None if array.dtype.kind in "iufb" else numbers.literal(array.item(), array.dtype)


def _made(writer: ModuleWriter, numbers: str, kind: ir.DataType | None) -> str:
    device = writer.device()
    dtype = "" if kind is None else f", dtype={writer.dtype_name(kind)}"
    return f"torch.tensor({numbers}{dtype}{f', device={device}' if device else ''})"


def _filled(writer: ModuleWriter, shape: Sequence[int], number: str, kind: ir.DataType) -> str:
    device = writer.device()
    end = f"dtype={writer.dtype_name(kind)}{f', device={device}' if device else ''})"
    return f"torch.zeros({tuple(shape)}, {end}" if number == "0" else f"torch.full({tuple(shape)}, {number}, {end}"
