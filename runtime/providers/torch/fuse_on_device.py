"""What torch's kernels on a device do at once. None looks at elements on the host, so that work can be captured."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnx_ir as ir
import torch
from torch import Tensor
from torch.nn import functional

from entrepot.runtime.planning import attention_pattern, fuse, gelu_pattern
from entrepot.runtime.planning.chains import after_conv, as_one
from entrepot.runtime.planning.fuse import Neighbours
from entrepot.runtime.planning.plan import Step, Value
from entrepot.runtime.providers.torch import products_on_device
from entrepot.runtime.providers.torch.convolutions.on_device import ConvRelu
from entrepot.runtime.providers.torch.products_on_device import are_alike

_ROUNDED = {ir.DataType.FLOAT16: 2.0**-11, ir.DataType.BFLOAT16: 2.0**-8}
"""Narrow types, and how far a rounded constant may be from what it stands for, relative to it."""


def _fuse_conv(graph: Neighbours, conv: Step) -> None:
    """Conv of images, then Add of a tensor of its result's shape, then Relu; narrow weights with channels last."""
    weights = conv.inputs[1]
    if weights is None or np.ndim(weights.constant) != 4 or not are_alike(filter(None, conv.inputs)):
        return
    conv.inputs = [conv.inputs[0], _channels_last(weights), *conv.inputs[2:]]
    chain = after_conv(graph, conv, lambda step: step.is_a("Relu"))
    if chain.activation is None or (chain.residual is not None and not are_alike([chain.residual, weights])):
        return
    residual = [] if chain.residual is None else [chain.residual]
    inputs = [*conv.inputs, *[None] * (3 - len(conv.inputs)), *residual]
    graph.replace(chain.steps, as_one(chain.steps, inputs, ConvRelu(conv.attributes)))


def _channels_last(weights: Value) -> Value:
    """The same weights as they lie best: the cores for narrow products read all channels of a point at once."""
    known, array = weights.type, weights.constant
    if known is None or known.dtype not in _ROUNDED:
        return weights
    return replace(weights, constant=np.ascontiguousarray(array.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2))


def _fuse_attention(graph: Neighbours, softmax: Step) -> None:
    """Attention that was spelled out."""
    found = attention_pattern.find(graph, softmax, masked=True)
    if found is None or not are_alike(found.inputs):
        return
    scale, is_transposed, is_guarded = found.scale, found.transposed, found.guarded

    def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
        key = k.transpose(2, 3) if is_transposed else k
        y = functional.scaled_dot_product_attention(q, key, v, mask, scale=scale)
        if is_guarded:
            return _without_nan(y, v)
        return y if mask is None else _with_nan(y, mask)

    graph.replace(found.steps, as_one(found.steps, list(found.inputs), attend))


def _without_nan(y: Tensor, v: Tensor) -> Tensor:
    """Rows whose weights are all NaN as if these were zero: zero times the values, of which some may not be finite.

    Where values are what makes a result NaN, so they do times zero. Their mean, unlike their sum, stays in range.
    """
    return torch.where(torch.isnan(y), v.mean(-2, keepdim=True) * 0, y)


def _with_nan(y: Tensor, mask: Tensor) -> Tensor:
    """Rows that see no key, which torch's kernels make zero, as a softmax of nothing but the lowest makes them."""
    return torch.where((mask == -torch.inf).all(-1, keepdim=True), torch.nan, y)


def _fuse_gelu(graph: Neighbours, function: Step) -> None:
    """Gelu by its steps: rounded once, also in the narrow types, in which the pattern's constants are rounded too."""
    result = function.outputs[0]
    kind = None if result is None or result.type is None else result.type.dtype
    fuse.fuse_gelu(graph, function, gelu_pattern.CLOSE if kind is None else _ROUNDED.get(kind, gelu_pattern.CLOSE))


RULES: fuse.Rules = {
    **fuse.RULES,
    "Conv": (_fuse_conv,),
    "Erf": (_fuse_gelu,),
    "MatMul": (products_on_device.fuse_several, products_on_device.fuse_one),
    "Softmax": (_fuse_attention,),
    "Tanh": (_fuse_gelu,),
}
"""What is tried on steps of each operator."""
