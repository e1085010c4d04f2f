"""Attention whose masks depend on sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from entrepot.exporters.building import typed
from entrepot.exporters.keras.operations.products import causal
from entrepot.exporters.keras.reading.step import Step, shape_of
from entrepot.exporters.keras.reading.table import layer
from entrepot.exporters.keras.upstream import attention_scores, attention_weights


@layer("MultiHeadAttention", "GroupedQueryAttention")
def heads(step: Step, query: Any, value: Any, key: Any = None, **given: Any) -> Any:
    """As Keras writes it, but for the mask of what is later, which is written for sizes that vary."""
    if given.pop("use_causal_mask", False):
        past = _past(step, query, key if key is not None else value)
        other = given.pop("attention_mask", None)
        given["attention_mask"] = past if other is None else _both(step, past, other)
    return step.follow_layer(
        lambda layer, *args, **named: layer.call(*args, **named), query, value, key, training=False, **given
    )


def _past(step: Step, query: ir.Value, key: ir.Value) -> ir.Value:
    """Which keys are no later than a query, with a batch of one."""
    rows, columns = (step.op("Range", 0, step.build.size(each, 1), 1) for each in (query, key))
    kept = step.op("GreaterOrEqual", step.op("Unsqueeze", rows, [0, 2]), step.op("Unsqueeze", columns, [0, 1]))
    return typed(kept, np.bool_, [1, shape_of(query)[1], shape_of(key)[1]])


def _both(step: Step, past: ir.Value, other: Any) -> ir.Value:
    mask = step.value(other, np.bool_)
    return typed(step.op("And", past, mask), np.bool_, shape_of(mask))


@layer("Attention", "AdditiveAttention")
def attention(
    step: Step, inputs: Any, mask: Any = None, return_attention_scores: bool = False, use_causal_mask: bool = False
) -> Any:
    """Scores, a mask of what is later and of what is padded, a sum."""
    query, value = inputs[:2]
    key = inputs[2] if len(inputs) > 2 else value
    scores = step.follow_layer(attention_scores, query=query, key=key)
    kept = None if mask is None or mask[1] is None else step.op("Unsqueeze", step.value(mask[1], np.bool_), [-2])
    if use_causal_mask:
        past = step.op("Unsqueeze", causal(step, scores), [0])
        kept = past if kept is None else step.op("And", kept, past)
    kept = None if kept is None else typed(kept, np.bool_, [None] * 3)
    result, weights = step.follow_layer(attention_weights, scores, value, kept)
    if mask is not None and mask[0] is not None:
        wide = step.op("Unsqueeze", step.value(mask[0], np.bool_), [-1])
        result = typed(step.op("Where", wide, result, step.value(0, result.dtype)), result.dtype, shape_of(result))
    return (result, weights) if return_attention_scores else result
