"""Attention and rotary embeddings: spelled out by their schemas' bodies where a version lacks something.

| Attention | change |
|---|---|
| 24 | ``nonpad_kv_seqlen`` |
| 25 | window sizes |
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from entrepot.ir.opset.bodies import expand, expanded
from entrepot.ir.opset.builder import OpBuilder
from entrepot.ir.opset.rules import Replacement, adapter, decomposition, extended
from entrepot.ir.opset.schemas import schema

expanded("LinearAttention", 27)
extended("Attention", 23, 24)
extended("Attention", 24, 25)


@decomposition("RotaryEmbedding", 23)
def rotation(op: OpBuilder, node: ir.Node) -> Replacement:
    """Write the function body, which assumes that no size is 0; an empty input is returned as it is."""
    return op.Identity(op.x()) if 0 in (op.shape(op.x()) or []) else expand(op, node)


@decomposition("Attention", 23)
def attention(op: OpBuilder, node: ir.Node) -> Replacement:
    """Write the function body; a mask shorter than the keys, which the body does not handle, is padded first."""
    shapes = [op.shape(op.x(index)) or [] for index in range(3)]
    if any(0 in [*shape[1:-2], *shape[-1:]] for shape in shapes):
        op.refuse("it has no heads, or heads of no features: its body reads such a size as 'copy this axis'")
    mask = op.input(3)
    padded = None if mask is None else _padded(op, mask)
    if padded is not None:
        op.inputs(*(padded if index == 3 else value for index, value in enumerate(node.inputs)))
    return expand(op, node)


def _padded(op: OpBuilder, mask: ir.Value) -> ir.Value | None:
    """The mask with a column for every key; ``None`` where it certainly has them."""
    sizes = [_size(op, mask, -1), _size(op, op.x(1), -2), 0 if op.input(4) is None else _size(op, op.input(4), -2)]
    if sizes[2] == 0 and sizes[0] is not None and sizes[0] == sizes[1]:
        return None
    hidden = op.const(False if op.need_dtype(mask) == ir.DataType.BOOL else -np.inf, like=mask)
    columns, keys, past = sizes
    if isinstance(columns, int) and isinstance(keys, int) and isinstance(past, int):
        zeros, missing = [0] * op.need_rank(mask), keys + past - columns
        padded: ir.Value = op.Pad(mask, op.ints(*zeros, *zeros[1:], missing), hidden)
        return padded if missing else None
    return _padded_at_run_time(op, mask, hidden)


def _size(op: OpBuilder, value: ir.Value | None, axis: int) -> int | str | None:
    """A size, or the symbol that the model has for it."""
    shape = op.around.types.shape(value)
    dim = None if shape is None else shape[axis]
    return dim.value if isinstance(dim, ir.SymbolicDim) else dim


def _padded_at_run_time(op: OpBuilder, mask: ir.Value, hidden: ir.Value) -> ir.Value:
    keys = op.Shape(op.x(1), start=-2, end=-1)
    if op.input(4) is not None:
        keys = op.Add(keys, op.Shape(op.input(4), start=-2, end=-1))
    missing = op.Sub(keys, op.Shape(mask, start=-1))
    rest = op.Expand(hidden, op.Concat(op.Shape(mask, end=-1), missing, axis=0))
    result: ir.Value = op.Concat(mask, rest, axis=op.need_rank(mask) - 1)
    return result


@adapter("Attention", 25, 24)
def attention_without_windows(op: OpBuilder, node: ir.Node) -> Replacement:
    """Spell out windowed attention."""
    older = schema("", "Attention", 24).attributes
    fresh = [name for name in schema("", "Attention", 25).attributes if name not in older]
    if all(op.has_default(name, -1) for name in fresh):
        return op.drop(*fresh)
    return attention(op, node)


@adapter("Attention", 24, 23)
def attention_without_lengths(op: OpBuilder, node: ir.Node) -> Replacement:
    """Spell out attention to part of the cache."""
    return attention(op, node) if op.input(6) is not None else None
