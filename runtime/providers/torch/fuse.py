"""What torch's kernels on the host do at once: a product or convolution with what follows it.

Where a rule cannot bind its kernel, nothing changes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import onnx_ir as ir
import torch
from torch import Tensor

from entrepot.runtime.binding import view
from entrepot.runtime.planning import attention_pattern, fuse
from entrepot.runtime.planning.chains import after_conv, after_matmul, as_one
from entrepot.runtime.planning.fuse import Neighbours
from entrepot.runtime.planning.plan import Step, Value
from entrepot.runtime.providers.torch.attention import attended
from entrepot.runtime.providers.torch.convolutions.concatenated import OfTwo, conv_of_two
from entrepot.runtime.providers.torch.convolutions.convolution import Convolution, conv_with
from entrepot.runtime.providers.torch.epilogues import Activation, activation
from entrepot.runtime.providers.torch.linear import and_added
from entrepot.runtime.providers.torch.measuring.chooser import Chooser
from entrepot.runtime.providers.torch.product import gemm_with, matmul_with


def _works_in_place(step: Step) -> bool:
    return activation(step) is not None


def _activation(step: Step | None) -> Activation | None:
    return None if step is None else activation(step)


def _fuse_conv(graph: Neighbours, conv: Step, chooser: Chooser | None = None) -> None:
    """Conv, then Add of a tensor of its result's shape, then an activation; each of the two may be missing."""
    chain = after_conv(graph, conv, _works_in_place)
    residual = [] if chain.residual is None else [chain.residual]
    inputs = [*conv.inputs, *[None] * (3 - len(conv.inputs)), *residual]
    is_told = (_tells(graph, conv.inputs[0]), _tells(graph, chain.residual))
    function = conv_with(view(conv), _activation(chain.activation), is_told=is_told, chooser=chooser)
    _replace(graph, chain.steps, inputs, function)


def _fuse_concat(graph: Neighbours, concat: Step, chooser: Chooser | None = None) -> None:
    """Concat of two tensors along the channels, then Conv, then an activation."""
    conv = graph.only_reader(concat)
    if conv is None or not conv.is_a("Conv") or conv.inputs[0] is not concat.outputs[0] or len(concat.inputs) != 2:
        return
    channels = _channels(concat.inputs[0])
    if concat.attributes.get("axis") not in (1, -3) or not channels or any(_is_known(each) for each in concat.inputs):
        return
    after = graph.only_reader(conv)
    found = _activation(after)
    steps = [concat, conv] if after is None or found is None else [concat, conv, after]
    left, right = (_tells(graph, each) for each in concat.inputs)
    function = conv_of_two(view(conv), channels, found, is_told=(left, right), chooser=chooser)
    _replace(graph, steps, [*concat.inputs, *conv.inputs[1:]], function)


def _tells(graph: Neighbours, value: Value | None) -> bool:
    """Whether a value is the result of a convolution that notes how far from zero it may be."""
    maker = graph.maker(value)
    return maker is not None and maker.call is not None and isinstance(maker.call.function, (Convolution, OfTwo))


def _channels(value: Value | None) -> int:
    """How many channels a stack of images is declared to have; 0 where that is unknown."""
    shape = None if value is None or value.type is None else value.type.shape
    return shape[1] if shape is not None and len(shape) == 4 and isinstance(shape[1], int) else 0


def _is_known(value: Value | None) -> bool:
    return value is None or value.constant is not None


def _fuse_gemm(graph: Neighbours, gemm: Step, chooser: Chooser | None = None) -> None:
    """Gemm by constants, then an activation."""
    after = graph.only_reader(gemm)
    found = _activation(after)
    steps = [gemm] if after is None or found is None else [gemm, after]
    _replace(graph, steps, list(gemm.inputs), gemm_with(view(gemm), found, chooser))


def _fuse_matmul(graph: Neighbours, product: Step, chooser: Chooser | None = None) -> None:
    """MatMul by a constant matrix, then Add of a constant row, then an activation or Add of a like tensor."""
    chain = after_matmul(graph, product, _works_in_place)
    if chain is not None and chain.bias is not None:
        function = matmul_with(view(product), chain.bias.constant, _activation(chain.activation), chooser)
        inputs = [*product.inputs, chain.bias]
        if function is not None and chain.residual is not None:
            function, inputs = and_added(function), [*inputs, chain.residual]
        if function is not None:
            return _replace(graph, chain.steps, inputs, function)
    return _replace(graph, [product], list(product.inputs), matmul_with(view(product), None, None, chooser))


def _replace(
    graph: Neighbours, steps: list[Step], inputs: list[Value | None], function: Callable[..., Tensor] | None
) -> None:
    if function is not None:
        graph.replace(steps, as_one(steps, inputs, function, "packed" if len(steps) == 1 else "fused"))


def _fuse_attention(graph: Neighbours, softmax: Step, chooser: Chooser | None = None) -> None:
    """Attention of float32 that was spelled out, by torch's own kernel."""
    found = attention_pattern.find(graph, softmax)
    kinds = set() if found is None else {None if each.type is None else each.type.dtype for each in found.inputs}
    if found is not None and kinds == {ir.DataType.FLOAT}:
        function = attended(found.scale, transposed=found.transposed, guarded=found.guarded, chooser=chooser)
        graph.replace(found.steps, as_one(found.steps, list(found.inputs), function))


def _fuse_without_nan(graph: Neighbours, asked: Step) -> None:
    """Where(IsNaN(x), c, x), as exporters write a softmax over what may be masked out altogether."""
    chosen, x = graph.only_reader(asked), asked.inputs[0]
    if chosen is None or not chosen.is_a("Where") or x is None or chosen.inputs[0] is not asked.outputs[0]:
        return
    instead = chosen.inputs[1]
    if chosen.inputs[2] is not x or instead is None or not _is_scalar_like(instead, x):
        return
    number = float(instead.constant.item())

    def run(x: Tensor) -> Tensor:
        return torch.nan_to_num(x, number, torch.inf, -torch.inf)

    graph.replace([asked, chosen], as_one([asked, chosen], [x], run))


def _is_scalar_like(value: Value, x: Value) -> bool:
    """Whether a value is one constant number, and selecting between it and x gives the shape of x."""
    known = x.type
    if not isinstance(value.constant, np.ndarray) or known is None or known.numpy != np.float32:
        return False
    return value.constant.size == 1 and known.shape is not None and value.constant.ndim <= len(known.shape)


def rules(chooser: Chooser | None = None) -> fuse.Rules:
    """What is tried on steps of each operator.

    Args:
        chooser: Measures which kernel is fastest; by default sizes decide, so that every session rounds alike.
    """
    return {
        **fuse.RULES,
        "Concat": (partial(_fuse_concat, chooser=chooser),),
        "Conv": (partial(_fuse_conv, chooser=chooser),),
        "Gemm": (partial(_fuse_gemm, chooser=chooser),),
        "IsNaN": (_fuse_without_nan,),
        "MatMul": (partial(_fuse_matmul, chooser=chooser),),
        "Softmax": (partial(_fuse_attention, chooser=chooser),),
    }
