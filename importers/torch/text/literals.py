"""Numbers that a text has, where a tensor is needed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import onnx_ir as ir

from entrepot.importers.torch.dtypes import NAMES
from entrepot.importers.torch.text import sizes as numbers
from entrepot.importers.torch.text.sizes import Sizes
from entrepot.runtime.planning.plan import Value

if TYPE_CHECKING:
    from entrepot.importers.torch.text.writer import ModuleWriter


def of_numbers(writer: ModuleWriter, sizes: Sizes) -> str:
    """A tensor of numbers that are computed in Python."""
    plain = sizes.dtype == ir.DataType.INT64 and sizes.items != ()
    dtype = "" if plain else f", dtype={writer.dtype_name(sizes.dtype)}"
    device = writer.device()
    return f"torch.tensor({sizes}{dtype}{f', device={device}' if device else ''})"


def of_constant(writer: ModuleWriter, value: Value) -> str:
    """A tensor of a few numbers that are known."""
    array = value.constant
    kind = None if array.dtype == object else ir.DataType.from_numpy(array.dtype)
    if array.size == 1 < array.ndim and kind in NAMES:
        return _filled(writer, array.shape, numbers.literal(array.reshape(()).item(), array.dtype), kind)
    sizes = numbers.of_constant(value)
    if kind is None or sizes is None:
        return writer.helpers.constant(value, None, 0)
    return of_numbers(writer, sizes) if array.size else _filled(writer, array.shape, "0", kind)


def _filled(writer: ModuleWriter, shape: Sequence[int], number: str, kind: ir.DataType) -> str:
    device = writer.device()
    end = f"dtype={writer.dtype_name(kind)}{f', device={device}' if device else ''})"
    return f"torch.zeros({tuple(shape)}, {end}" if number == "0" else f"torch.full({tuple(shape)}, {number}, {end}"
