"""Batch normalisations by constants are absorbed into the weights of the product before them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from entrepot.ir.typing.plain import of_array
from entrepot.runtime.planning.plan import Block, Step, Value, with_work_of

Array: TypeAlias = np.ndarray[Any, Any]

_BLAS = (np.dtype(np.float32), np.dtype(np.float64))


def absorbed(block: Block) -> Block:
    """The block with fewer batch normalisations, and those within it.

    Before: ``y = BatchNormalization(Conv(x, w, b), scale, bias, mean, var)``, the result of Conv read here alone.
    After: ``y = Conv(x, w * f, (b - mean) * f + bias)`` with ``f = scale / sqrt(var + epsilon)``, all in float64 and
    rounded once. The same for ConvTranspose, and for Gemm whose addend is a row.
    """
    reads: dict[Value, int] = {}
    for step in block.steps:
        step.blocks = {name: absorbed(inner) for name, inner in step.blocks.items()}
        for value in step.uses():
            reads[value] = reads.get(value, 0) + 1
    outputs = {value for value in block.outputs if value is not None}
    alone = {value for value, count in reads.items() if count == 1 and value not in outputs}
    made: dict[Value, Step] = {}
    instead: dict[Step, Step | None] = {}
    for step in block.steps:
        product = made.get(step.inputs[0]) if step.is_a("BatchNormalization") and step.inputs[0] in alone else None
        one = None if product is None else _one(product, step)
        if product is not None and one is not None:
            instead[product], instead[step] = None, one
        made.update((value, one or step) for value in step.outputs if value is not None)
    steps = [instead.get(step, step) for step in block.steps]
    return Block(block.inputs, block.outputs, [step for step in steps if step is not None], block.name)


def _one(product: Step, norm: Step) -> Step | None:
    """One product for both; ``None`` where something is not constant or of another type, or would overflow."""
    scale_rows = _SCALED.get(product.op_type) if product.domain == "" else None
    if scale_rows is None or len(norm.outputs) != 1 or norm.attributes.get("training_mode"):
        return None
    weight, addend = _constant(product, 1), _addend(product)
    statistics = [_constant(norm, position) for position in range(1, 5)]
    if weight is None or addend is None or any(s is None or s.dtype != weight.dtype for s in statistics):
        return None
    if len({s.shape for s in statistics if s is not None}) > 1:
        return None
    scale, bias, mean, var = (np.asarray(s, np.float64) for s in statistics)
    with np.errstate(all="ignore"):
        factor = scale / np.sqrt(var + norm.attributes.get("epsilon", 1e-5))
        rows = scale_rows(product, weight.astype(np.float64), factor)
        if rows is None or addend.size not in (1, factor.size):
            return None
        shift = ((addend.reshape(-1) - mean) * factor + bias).astype(weight.dtype)
        rows = rows.astype(weight.dtype)
    if not (np.isfinite(rows).all() and np.isfinite(shift).all()):
        return None
    inputs = [product.inputs[0], _value(product.inputs[1], rows), _value(norm.inputs[2], shift)]
    where = f"{product.where} with {norm.where}"
    computes = with_work_of(product, [norm], "absorbed")
    attributes = _attributes(product)
    return replace(product, inputs=inputs, outputs=norm.outputs, where=where, attributes=attributes, computes=computes)


def _constant(step: Step, position: int) -> Array | None:
    value = step.inputs[position] if len(step.inputs) > position else None
    array = None if value is None else value.constant
    return array if isinstance(array, np.ndarray) and array.dtype in _BLAS else None


def _addend(product: Step) -> Array | None:
    """What is added per channel, in float64; ``None`` when it is not constant, or not per channel."""
    if len(product.inputs) < 3 or product.inputs[2] is None:
        return np.zeros(1)
    given = _constant(product, 2)
    if given is None or given.size != (given.shape[-1] if given.ndim else 1):
        return None  # a Gemm's may be a whole matrix, or a column
    return given.astype(np.float64) * (product.attributes.get("beta", 1.0) if product.is_a("Gemm") else 1.0)


def _attributes(product: Step) -> dict[str, Any]:
    return {name: value for name, value in product.attributes.items() if name != "beta"}


def _value(old: Value | None, array: Array) -> Value:
    array.flags.writeable = False
    return Value("" if old is None else old.name, of_array(array), array.view())


def _conv(product: Step, weight: Array, factor: Array) -> Array | None:
    return weight * factor.reshape(-1, *[1] * (weight.ndim - 1)) if weight.shape[0] == factor.size else None


def _conv_transpose(product: Step, weight: Array, factor: Array) -> Array | None:
    group = product.attributes.get("group", 1)
    if weight.shape[1] * group != factor.size or weight.shape[0] % group:
        return None
    parts = weight.reshape(group, weight.shape[0] // group, *weight.shape[1:])
    return (parts * factor.reshape(group, 1, -1, *[1] * (weight.ndim - 2))).reshape(weight.shape)


def _gemm(product: Step, weight: Array, factor: Array) -> Array | None:
    axis = 0 if product.attributes.get("transB") else 1
    if weight.ndim != 2 or weight.shape[axis] != factor.size:
        return None
    return weight * (factor[:, None] if axis == 0 else factor)


_SCALED: dict[str, Callable[[Step, Array, Array], Array | None]] = {
    "Conv": _conv,
    "ConvTranspose": _conv_transpose,
    "Gemm": _gemm,
}
