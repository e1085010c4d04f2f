"""Attention and rotary embeddings: spelled out by their schemas' bodies where a version lacks something.

| Attention | change |
|---|---|
| 24 | ``nonpad_kv_seqlen`` |
| 25 | window sizes |
"""

from __future__ import annotations

import onnx_ir as ir

from entrepot.ir.opset.bodies import expand, expanded
from entrepot.ir.opset.builder import OpBuilder
from entrepot.ir.opset.rules import Replacement, adapter, extended
from entrepot.ir.opset.schemas import schema

expanded("Attention", 23)
expanded("RotaryEmbedding", 23)
expanded("LinearAttention", 27)
extended("Attention", 23, 24)
extended("Attention", 24, 25)


@adapter("Attention", 25, 24)
def attention_without_windows(op: OpBuilder, node: ir.Node) -> Replacement:
    """Spell windowed attention out."""
    older = schema("", "Attention", 24).attributes
    fresh = [name for name in schema("", "Attention", 25).attributes if name not in older]
    if all(op.has_default(name, -1) for name in fresh):
        return op.drop(*fresh)
    return expand(op, node)


@adapter("Attention", 24, 23)
def attention_without_lengths(op: OpBuilder, node: ir.Node) -> Replacement:
    """Spell attention to a part of the cache out."""
    return expand(op, node) if op.input(6) is not None else None
