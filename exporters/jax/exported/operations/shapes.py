"""Shapes, parts of arrays, and numbers in order; sizes may be operands."""

from __future__ import annotations

from typing import Any

from jax import lax

from entrepot.exporters.jax.exported.operation import Operation, array, is_numbers, numbers
from entrepot.exporters.jax.exported.table import means


@means("broadcast_in_dim")
def broadcast_in_dim(operation: Operation, x: Any) -> Any:
    """New axes, and repeated ones; a constant of the same shape stays one."""
    if list(x.shape) == operation.shape:
        return x
    return lax.broadcast_in_dim(x, operation.shape, operation.integers("broadcast_dimensions"))


@means("dynamic_broadcast_in_dim")
def dynamic_broadcast_in_dim(operation: Operation, x: Any, shape: Any) -> Any:
    """The same to a shape that is computed."""
    whole = array(x, operation.operand_types[0])
    return lax.broadcast_in_dim(whole, numbers(shape), operation.integers("broadcast_dimensions"))


@means("reshape")
def reshape(operation: Operation, x: Any) -> Any:
    """The elements in another shape."""
    return lax.reshape(x, operation.shape)


@means("dynamic_reshape")
def dynamic_reshape(operation: Operation, x: Any, shape: Any) -> Any:
    """The same for a shape that is computed."""
    return lax.reshape(array(x, operation.operand_types[0]), numbers(shape))


@means("iota")
def iota(operation: Operation) -> Any:
    """0, 1, ... along an axis."""
    return lax.broadcasted_iota(operation.dtype, operation.shape, operation.number("iota_dimension"))


@means("dynamic_iota")
def dynamic_iota(operation: Operation, shape: Any) -> Any:
    """The same for a shape that is computed."""
    return lax.broadcasted_iota(operation.dtype, numbers(shape), operation.number("iota_dimension"))


@means("transpose")
def transpose(operation: Operation, x: Any) -> Any:
    """Axes in another order."""
    return lax.transpose(x, operation.integers("permutation"))


@means("reverse")
def reverse(operation: Operation, x: Any) -> Any:
    """Axes turned round."""
    return lax.rev(x, operation.integers("dimensions"))


@means("concatenate")
def concatenate(operation: Operation, *operands: Any) -> Any:
    """Arrays behind one another."""
    return lax.concatenate(operands, operation.number("dimension"))


@means("pad")
def pad(operation: Operation, x: Any, value: Any) -> Any:
    """Room around an array and between its elements."""
    sides = (operation.integers(name) for name in ("edge_padding_low", "edge_padding_high", "interior_padding"))
    return lax.pad(x, value, [*zip(*sides, strict=True)])


@means("dynamic_pad")
def dynamic_pad(operation: Operation, x: Any, value: Any, *sides: Any) -> Any:
    """The same, with room that is computed."""
    whole, filling = (array(each, kind) for each, kind in zip((x, value), operation.operand_types, strict=False))
    return lax.pad(whole, filling, [*zip(*map(numbers, sides), strict=True)])


@means("slice")
def sliced(operation: Operation, x: Any) -> Any:
    """A part."""
    return lax.slice(x, *(operation.integers(name) for name in ("start_indices", "limit_indices", "strides")))


@means("real_dynamic_slice")
def real_dynamic_slice(operation: Operation, x: Any, start: Any, end: Any, strides: Any) -> Any:
    """A part whose bounds are computed: from sizes, or as so much from a place on."""
    whole = array(x, operation.operand_types[0])
    if is_numbers(start) and is_numbers(end):
        return lax.slice(whole, *map(numbers, (start, end, strides)))
    sizes = numbers(operation.summed(2, 1))
    return lax.dynamic_slice(whole, [*array(start, operation.operand_types[1])], sizes)


@means("dynamic_slice")
def dynamic_slice(operation: Operation, x: Any, *starts: Any) -> Any:
    """A part that begins anywhere."""
    return lax.dynamic_slice(x, starts, operation.integers("slice_sizes"))


@means("dynamic_update_slice")
def dynamic_update_slice(operation: Operation, x: Any, update: Any, *starts: Any) -> Any:
    """An array with a part of it replaced."""
    return lax.dynamic_update_slice(x, update, starts)
