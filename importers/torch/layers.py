"""Which steps are layers: one short rule per operator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import onnx_ir as ir

from entrepot.importers.torch.dtypes import FLOATS, NAMES
from entrepot.importers.torch.layer import LAYERS, Argument, Array, Layer, applied, keywords, positional
from entrepot.importers.torch.op import Op
from entrepot.importers.torch.recurrent import recurrent, stacked
from entrepot.importers.torch.words.elementwise import short
from entrepot.importers.torch.words.products import one, symmetric, window

Rule = Callable[[Op], "Layer | None"]


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


def _weight(op: Op, position: int, rank: int | None = None) -> Array | None:
    """A constant operand that may be trained."""
    value = op.value(position)
    array = None if value is None else value.constant
    if not isinstance(array, np.ndarray) or not array.size or ir.DataType.from_numpy(array.dtype) not in FLOATS:
        return None
    return array if rank is None or array.ndim == rank else None


def _name(op: Op, position: int = 1) -> str:
    value = op.value(position)
    return "" if value is None else value.name


def _with(**tensors: Array | None) -> dict[str, Array]:
    return {name: array for name, array in tensors.items() if array is not None}


def _unless(**given: tuple[object, object]) -> tuple[Argument, ...]:
    """Arguments that differ from their defaults: the value and the default of each."""
    return keywords(**{name: value for name, (value, default) in given.items() if value != default})


def _sizes(values: list[int], default: int) -> tuple[object, object]:
    return one(values), str(default)


def _conv(op: Op) -> Layer | None:
    weight, bias = _weight(op, 1), _weight(op, 2, 1)
    rank = 0 if weight is None else weight.ndim - 2
    call: Callable[[Op, str], str] = applied
    pads = symmetric(op, rank)
    if weight is None or not 1 <= rank <= 3 or (op.has(2) and bias is None):
        return None
    if pads is None:
        uneven = _uneven(op, weight.shape[2:])
        if uneven is None:
            return None
        pads, call = [0] * rank, _padded(uneven)
    groups = op.attribute("group")
    given = _unless(
        stride=_sizes(list(op.attribute("strides") or [1] * rank), 1),
        padding=_sizes(pads, 0),
        dilation=_sizes(list(op.attribute("dilations") or [1] * rank), 1),
        groups=(groups, 1),
        bias=(bias is not None, True),
    )
    sizes = positional(
        in_channels=weight.shape[1] * groups, out_channels=weight.shape[0], kernel_size=one(weight.shape[2:])
    )
    return Layer(f"Conv{rank}d", (*sizes, *given), _with(weight=weight, bias=bias), call=call, source=_name(op))


def _uneven(op: Op, kernel: tuple[int, ...]) -> list[int] | None:
    """Padding that differs from side to side, as ``F.pad`` takes it; ``None`` where it depends on sizes."""
    rank, auto, pads = len(kernel), op.attribute("auto_pad"), op.attribute("pads")
    if auto == "NOTSET":
        pairs = list(zip(pads[:rank], pads[rank:], strict=True))
    else:
        strides = op.attribute("strides") or [1] * rank
        dilations = op.attribute("dilations") or [1] * rank
        if set(strides) != {1}:
            return None
        totals = [step * (size - 1) for size, step in zip(kernel, dilations, strict=True)]
        less = [(total // 2, total - total // 2) for total in totals]
        pairs = less if auto == "SAME_UPPER" else [(more, few) for few, more in less]
    return [size for pair in reversed(pairs) for size in pair]


def _padded(sizes: list[int]) -> Callable[[Op, str], str]:
    return lambda op, layer: f"{layer}(F.pad({op[0]}, {tuple(sizes)}))"


def _conv_transpose(op: Op) -> Layer | None:
    weight, bias = _weight(op, 1), _weight(op, 2, 1)
    rank = 0 if weight is None else weight.ndim - 2
    pads = symmetric(op, rank)
    if weight is None or not 1 <= rank <= 3 or pads is None or (op.has(2) and bias is None):
        return None
    if op.attribute("output_shape") is not None:
        return None
    groups = op.attribute("group")
    strides = list(op.attribute("strides") or [1] * rank)
    dilations = list(op.attribute("dilations") or [1] * rank)
    extra = list(op.attribute("output_padding") or [0] * rank)
    if any(add >= max(pair) for add, *pair in zip(extra, strides, dilations, strict=True)):
        return None
    given = _unless(
        stride=_sizes(strides, 1), padding=_sizes(pads, 0), output_padding=_sizes(extra, 0), groups=(groups, 1),
        bias=(bias is not None, True), dilation=_sizes(dilations, 1),
    )  # fmt: skip
    sizes = positional(
        in_channels=weight.shape[0], out_channels=weight.shape[1] * groups, kernel_size=one(weight.shape[2:])
    )
    return Layer(f"ConvTranspose{rank}d", (*sizes, *given), _with(weight=weight, bias=bias), source=_name(op))


def _linear(op: Op) -> Layer | None:
    """MatMul by a constant matrix, with or without what is added; Gemm."""
    weight, bias = _weight(op, 1, 2), _weight(op, 2)
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
    given = _unless(bias=(bias is not None, True))
    flat = None if bias is None else bias.reshape(-1)
    return Layer("Linear", (*sizes, *given), _with(weight=weight, bias=flat), source=_name(op))


def _batch_norm(op: Op) -> Layer | None:
    tensors = [_weight(op, position, 1) for position in (1, 2, 3, 4)]
    rank = op.rank(0)
    if any(tensor is None for tensor in tensors) or op.attribute("training_mode") or len(op.step.outputs) > 1:
        return None
    if rank is None or not 2 <= rank <= 5:
        return None
    names = ("weight", "bias", "running_mean", "running_var")
    held = _with(**dict(zip(names, tensors, strict=True)), num_batches_tracked=np.array(0))
    size = positional(num_features=held["weight"].size)
    given = _unless(eps=(short(op.attribute("epsilon")), "1e-05"), momentum=(_momentum(op), "0.1"))
    kind = {2: 1, 3: 1, 4: 2, 5: 3}[rank]
    buffers = frozenset({"running_mean", "running_var", "num_batches_tracked"})
    return Layer(f"BatchNorm{kind}d", (*size, *given), held, buffers, source=_name(op))


def _momentum(op: Op) -> str:
    """ONNX says how much is kept, torch how much is new."""
    return repr(round(1 - op.attribute("momentum"), 6))


def _instance_norm(op: Op) -> Layer | None:
    weight, bias, rank = _weight(op, 1, 1), _weight(op, 2, 1), op.rank(0)
    if weight is None or bias is None or rank not in (3, 4, 5) or any(size == 1 for size in (op.shape(0) or ())[2:]):
        return None
    given = _unless(eps=(short(op.attribute("epsilon")), "1e-05"))
    size = positional(num_features=weight.size)
    arguments = (*size, *given, *keywords(affine=True))
    return Layer(f"InstanceNorm{rank - 2}d", arguments, _with(weight=weight, bias=bias), source=_name(op))


def _group_norm(op: Op) -> Layer | None:
    weight, bias = _weight(op, 1, 1), _weight(op, 2, 1)
    if weight is None or bias is None:
        return None
    sizes = positional(num_groups=op.attribute("num_groups"), num_channels=weight.size)
    given = _unless(eps=(short(op.attribute("epsilon")), "1e-05"))
    return Layer("GroupNorm", (*sizes, *given), _with(weight=weight, bias=bias), source=_name(op))


def _layer_norm(op: Op) -> Layer | None:
    weight, bias, rank, axis = _weight(op, 1), _weight(op, 2), op.rank(0), op.attribute("axis")
    if weight is None or rank is None or (op.has(2) and bias is None) or len(op.step.outputs) > 1:
        return None
    if weight.ndim != (-axis if axis < 0 else rank - axis) or op.made == ir.DataType.DOUBLE:
        return None
    if bias is not None and bias.shape != weight.shape:
        return None
    given = _unless(eps=(short(op.attribute("epsilon")), "1e-05"), bias=(bias is not None, True))
    shape = positional(normalized_shape=weight.shape[0] if weight.ndim == 1 else weight.shape)
    return Layer("LayerNorm", (*shape, *given), _with(weight=weight, bias=bias), source=_name(op))


def _rms_norm(op: Op) -> Layer | None:
    weight, rank, axis = _weight(op, 1), op.rank(0), op.attribute("axis")
    if weight is None or rank is None or weight.ndim != (-axis if axis < 0 else rank - axis):
        return None
    if op.made == ir.DataType.DOUBLE:
        return None
    shape = positional(normalized_shape=weight.shape[0] if weight.ndim == 1 else weight.shape)
    return Layer("RMSNorm", (*shape, *keywords(eps=short(op.attribute("epsilon")))), _with(weight=weight),
                 source=_name(op))  # fmt: skip


def _embedding(op: Op) -> Layer | None:
    """Rows of a constant matrix, by indices that are computed."""
    weight, index = _weight(op, 0, 2), op.value(1)
    if weight is None or index is None or index.constant is not None or not op.rank(1):
        return None
    if op.attribute("axis") not in (0, -2) or not op.writer.is_parameter(op.value(0)):
        return None
    sizes = positional(num_embeddings=weight.shape[0], embedding_dim=weight.shape[1])
    return Layer(
        "Embedding", sizes, _with(weight=weight), call=lambda op, layer: f"{layer}({op[1]})", source=_name(op, 0)
    )


def _prelu(op: Op) -> Layer | None:
    slope, rank = _weight(op, 1), op.rank(0)
    if slope is None or rank is None or rank < 2 or (slope.size > 1 and slope.shape[0] != slope.size):
        return None
    if slope.size > 1 and slope.ndim != rank - 1:
        return None
    given = _unless(num_parameters=(slope.size, 1))
    return Layer("PReLU", given, _with(weight=slope.reshape(-1)), source=_name(op))


def _dropout(op: Op) -> Layer | None:
    """It is nothing in a file, and what a user expects in training."""
    ratio = op.number(1) if op.has(1) else "0.5"
    if ratio is None or op.asked(1) or (op.has(2) and op.ints(2) is not None and op.number(2) != "False"):
        return None
    op.attribute("seed")
    return Layer("Dropout", positional(p=ratio))


_RULES: dict[str, Rule] = {
    "Conv": _conv,
    "ConvTranspose": _conv_transpose,
    "MatMul": _linear,
    "Linear": _linear,
    "Gemm": _linear,
    "BatchNormalization": _batch_norm,
    "InstanceNormalization": _instance_norm,
    "GroupNormalization": _group_norm,
    "LayerNormalization": _layer_norm,
    "RMSNormalization": _rms_norm,
    "Gather": _embedding,
    "PRelu": _prelu,
    "Dropout": _dropout,
    "LSTM": recurrent,
    "GRU": recurrent,
    "RNN": recurrent,
    **dict.fromkeys(("StackedLSTM", "StackedGRU", "StackedRNN"), stacked),
}


def _plain(kind: str) -> Rule:
    return lambda op: Layer(kind, ())


def _gelu(op: Op) -> Layer:
    return Layer("GELU", keywords(approximate='"tanh"') if op.attribute("approximate") == "tanh" else ())


def _pool(kind: str, *, average: bool = False) -> Rule:
    def rule(op: Op) -> Layer | None:
        given = window(op, average=average)
        if given is None or op.asked(1) or op.attribute("ceil_mode"):
            return None
        arguments = (*positional(kernel_size=given.pop("kernel_size")), *keywords(**given))
        return Layer(f"{kind}{len(op.attribute('kernel_shape'))}d", arguments)

    return rule


def _flatten(op: Op) -> Layer | None:
    return Layer("Flatten", ()) if op.attribute("axis") == 1 and (op.rank(0) or 0) > 1 else None


def _softmax(kind: str) -> Rule:
    return lambda op: Layer(kind, keywords(dim=op.axis(op.attribute("axis"), op.rank(0)))) if op.rank(0) else None


def _swish(op: Op) -> Layer | None:
    return Layer("SiLU", ()) if op.attribute("alpha") == 1 else None


STATELESS: dict[str, Rule] = {
    "Relu": _plain("ReLU"),
    "Sigmoid": _plain("Sigmoid"),
    "Tanh": _plain("Tanh"),
    "HardSwish": _plain("Hardswish"),
    "Mish": _plain("Mish"),
    "Swish": _swish,
    "Gelu": _gelu,
    "MaxPool": _pool("MaxPool"),
    "AveragePool": _pool("AvgPool", average=True),
    "Flatten": _flatten,
    "Softmax": _softmax("Softmax"),
    "LogSoftmax": _softmax("LogSoftmax"),
}
"""What is a layer only where a list of layers has a place for it."""
