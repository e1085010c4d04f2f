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
    missing = _missing_columns(op)
    if mask is not None and missing:
        zeros, like = [0] * op.need_rank(mask), op.need_dtype(mask)
        hidden = op.const(False if like == ir.DataType.BOOL else -np.inf, like=mask)
        padded = op.Pad(mask, op.ints(*zeros, *zeros[1:], missing), hidden)
        op.inputs(*(padded if index == 3 else value for index, value in enumerate(node.inputs)))
    return expand(op, node)


def _missing_columns(op: OpBuilder) -> int:
    """How many of the keys have no column in the mask, if sizes are fixed."""
    lengths = [op.shape(value)[axis] for value, axis in ((op.input(3), -1), (op.x(1), -2)) if op.shape(value)]  # type: ignore[index]
    past = op.shape(op.input(4)) if op.input(4) is not None else [0, 0]
    if len(lengths) != 2 or past is None or None in (*lengths, past[-2]):
        return 0
    return (lengths[1] or 0) + (past[-2] or 0) - (lengths[0] or 0)


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
