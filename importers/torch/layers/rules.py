"""Which steps are layers: one short rule per operator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import onnx_ir as ir

from entrepot.importers.torch.dtypes import FLOATS, NAMES
from entrepot.importers.torch.layers.layer import LAYERS, Layer, Rule, applied, keywords, looked_up, positional
from entrepot.importers.torch.layers.norms import batch_norm, group_norm, instance_norm, layer_norm, rms_norm
from entrepot.importers.torch.layers.recurrent import recurrent, stacked
from entrepot.importers.torch.layers.weights import name_at, present, sizes_of, unless_default, weight_at
from entrepot.importers.torch.op import Op
from entrepot.importers.torch.words.products import around, one, symmetric


def layer_of(op: Op) -> Layer | None:
    """The layer that a step is; ``None`` for one that is none."""
    rule = _RULES.get(op.step.op_type) if op.step.domain in ("", LAYERS) else None
    layer = None if rule is None or op.made not in FLOATS else rule(op)
    return None if layer is None else _of_its_type(layer)


def _of_its_type(layer: Layer) -> Layer:
    """The layer, which says the element type of its weights unless it is torch's own choice."""
    kinds = [ir.DataType.from_numpy(array.dtype) for array in layer.tensors.values()]
    others = [kind for kind in kinds if kind in FLOATS and kind != ir.DataType.FLOAT]
    return replace(layer, arguments=(*layer.arguments, *keywords(dtype=NAMES[others[0]]))) if others else layer


def _conv(op: Op) -> Layer | None:
    weight, bias = weight_at(op, 1), weight_at(op, 2, 1)
    rank = 0 if weight is None else weight.ndim - 2
    call: Callable[[Op, str], str] = applied
    pads = symmetric(op, rank)
    if weight is None or not 1 <= rank <= 3 or (op.has(2) and bias is None):
        return None
    if pads is None:
        pads, call = [0] * rank, _padded(weight.shape[2:])
    groups = op.attribute("group")
    given = unless_default(
        stride=sizes_of(list(op.attribute("strides") or [1] * rank), 1),
        padding=sizes_of(pads, 0),
        dilation=sizes_of(list(op.attribute("dilations") or [1] * rank), 1),
        groups=(groups, 1),
        bias=(bias is not None, True),
    )
    sizes = positional(
        in_channels=weight.shape[1] * groups, out_channels=weight.shape[0], kernel_size=one(weight.shape[2:])
    )
    return Layer(f"Conv{rank}d", (*sizes, *given), present(weight=weight, bias=bias), call=call, source=name_at(op))


def _padded(kernel: tuple[int, ...]) -> Callable[[Op, str], str]:
    return lambda op, layer: f"{layer}({around(op, kernel)})"


def _conv_transpose(op: Op) -> Layer | None:
    weight, bias = weight_at(op, 1), weight_at(op, 2, 1)
    rank = 0 if weight is None else weight.ndim - 2
    if weight is None or not 1 <= rank <= 3 or (op.has(2) and bias is None):
        return None
    if op.attribute("output_shape") is not None or op.attribute("auto_pad") not in ("NOTSET", "VALID"):
        return None
    groups = op.attribute("group")
    strides = list(op.attribute("strides") or [1] * rank)
    dilations = list(op.attribute("dilations") or [1] * rank)
    extra = list(op.attribute("output_padding") or [0] * rank)
    if any(add >= max(pair) for add, *pair in zip(extra, strides, dilations, strict=True)):
        return None
    pads, cut = _cut(op, rank)
    given = unless_default(
        stride=sizes_of(strides, 1), padding=sizes_of(pads, 0), output_padding=sizes_of(extra, 0), groups=(groups, 1),
        bias=(bias is not None, True), dilation=sizes_of(dilations, 1),
    )  # fmt: skip
    sizes = positional(
        in_channels=weight.shape[0], out_channels=weight.shape[1] * groups, kernel_size=one(weight.shape[2:])
    )
    call: Callable[[Op, str], str] = (lambda op, layer: f"{applied(op, layer)}{cut}") if cut else applied
    kind, tensors = f"ConvTranspose{rank}d", present(weight=weight, bias=bias)
    return Layer(kind, (*sizes, *given), tensors, call=call, source=name_at(op))


def _cut(op: Op, rank: int) -> tuple[list[int], str]:
    """What a transposed convolution cuts off on both sides, and the rest, on one side, as a slice."""
    pads = list(op.attribute("pads") or [0] * 2 * rank) if op.attribute("auto_pad") == "NOTSET" else [0] * 2 * rank
    sides = list(zip(pads[:rank], pads[rank:], strict=True))
    both = [min(pair) for pair in sides]
    slices = [_slice(begin - each, end - each) for (begin, end), each in zip(sides, both, strict=True)]
    return both, "" if set(slices) == {":"} else f"[..., {', '.join(slices)}]"


def _slice(begin: int, end: int) -> str:
    return f"{begin or ''}:{-end if end else ''}"


def _linear(op: Op) -> Layer | None:
    """MatMul by a constant matrix, with or without what is added; Gemm."""
    weight, bias = weight_at(op, 1, 2), weight_at(op, 2)
    if weight is None or not op.rank(0):
        return None
    if op.step.op_type == "Gemm":
        if op.attribute("transA") or op.attribute("alpha") != 1 or (op.has(2) and op.attribute("beta") != 1):
            return None
        weight = weight if op.attribute("transB") else weight.T
    else:
        weight = weight.T
    if op.has(2) and (bias is None or bias.size != weight.shape[0] or bias.shape[-1] != bias.size):
        return None
    sizes = positional(in_features=weight.shape[1], out_features=weight.shape[0])
    given = unless_default(bias=(bias is not None, True))
    flat = None if bias is None else bias.reshape(-1)
    return Layer("Linear", (*sizes, *given), present(weight=weight, bias=flat), source=name_at(op))


def _embedding(op: Op) -> Layer | None:
    """Rows of a constant matrix, by indices that are computed."""
    weight, index = weight_at(op, 0, 2), op.value(1)
    if weight is None or index is None or index.constant is not None or not op.rank(1):
        return None
    if op.attribute("axis") not in (0, -2) or not op.writer.is_parameter(op.value(0)):
        return None
    sizes = positional(num_embeddings=weight.shape[0], embedding_dim=weight.shape[1])
    call = _looked_up_from_front if op.writer.is_cut(index) else looked_up
    return Layer("Embedding", sizes, present(weight=weight), call=call, source=name_at(op, 0))


def _looked_up_from_front(op: Op, layer: str) -> str:
    """Torch's layer takes no number below 0, which counts from the end."""
    return f"{layer}({op.writer.helper('from_front')}({op[1]}, {layer}.num_embeddings))"


def _prelu(op: Op) -> Layer | None:
    slope, rank = weight_at(op, 1), op.rank(0)
    if slope is None or rank is None or rank < 2 or (slope.size > 1 and slope.shape[0] != slope.size):
        return None
    if slope.size > 1 and slope.ndim != rank - 1:
        return None
    given = unless_default(num_parameters=(slope.size, 1))
    return Layer("PReLU", given, present(weight=slope.reshape(-1)), source=name_at(op))


def _dropout(op: Op) -> Layer | None:
    """It is nothing in a file, and what a user expects in training."""
    ratio = op.number(1) if op.has(1) else "0.5"
    if ratio is None or op.asked(1) or (op.has(2) and op.number(2) != "False"):
        return None
    op.attribute("seed")
    return Layer("Dropout", positional(p=ratio))


_RULES: dict[str, Rule] = {
    "Conv": _conv,
    "ConvTranspose": _conv_transpose,
    "MatMul": _linear,
    "Linear": _linear,
    "Gemm": _linear,
    "BatchNormalization": batch_norm,
    "InstanceNormalization": instance_norm,
    "GroupNormalization": group_norm,
    "LayerNormalization": layer_norm,
    "RMSNormalization": rms_norm,
    "Gather": _embedding,
    "PRelu": _prelu,
    "Dropout": _dropout,
    "LSTM": recurrent,
    "GRU": recurrent,
    "RNN": recurrent,
    **dict.fromkeys(("StackedLSTM", "StackedGRU", "StackedRNN"), stacked),
}
