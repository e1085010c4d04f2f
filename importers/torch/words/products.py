"""Operators that sum products, and windows."""

from __future__ import annotations

import math
from collections.abc import Sequence

import onnx_ir as ir

from entrepot.importers.torch.dtypes import FLOATS
from entrepot.importers.torch.layers.layer import LAYERS
from entrepot.importers.torch.op import Op
from entrepot.importers.torch.table import WORDS, word
from entrepot.importers.torch.words.elementwise import short


@word("MatMul")
def matmul(op: Op) -> str | None:
    """``x @ y``."""
    return f"{op[0]} @ {op[1]}" if op.made in FLOATS else None


@word("Gemm")
def gemm(op: Op) -> str | None:
    """``alpha * A @ B + beta * C``."""
    if op.made not in FLOATS:
        return None
    left = f"{op[0]}.T" if op.attribute("transA") else op[0]
    right = f"{op[1]}.T" if op.attribute("transB") else op[1]
    alpha, beta = op.attribute("alpha"), op.attribute("beta")
    text = f"{left} @ {right}" if alpha == 1 else f"{short(alpha)} * ({left} @ {right})"
    if not op.has(2) or beta == 0:
        return text
    return f"{text} + {op[2] if beta == 1 else f'{short(beta)} * {op[2]}'}"


@word("Einsum")
def einsum(op: Op) -> str | None:
    """``torch.einsum``."""
    equation = op.attribute("equation")
    plain = equation.replace("...", "").replace(",", "").replace("->", "").replace(" ", "")
    if op.made not in FLOATS or not (plain.isalpha() or not plain):
        return None
    return f'torch.einsum("{equation}", {", ".join(op.operands())})'


def one(sizes: Sequence[int]) -> str:
    """Sizes for every axis, or the one that all have."""
    return str(sizes[0]) if len(set(sizes)) == 1 else str(tuple(sizes))


def symmetric(op: Op, rank: int) -> list[int] | None:
    """Padding that is the same on both sides; ``None`` where it is not, or depends on sizes."""
    auto, pads = op.attribute("auto_pad"), op.attribute("pads")
    if auto == "VALID" or (auto == "NOTSET" and pads is None):
        return [0] * rank
    if auto != "NOTSET":
        return None
    pads = list(pads)
    return pads[:rank] if pads[:rank] == pads[rank:] else None


def around(op: Op, kernel: Sequence[int], value: str = "") -> str | None:
    """An input with padding around it that differs from side to side; ``None`` where windows lie outside."""
    rank, auto, pads = len(kernel), op.attribute("auto_pad"), op.attribute("pads")
    strides, dilations = (tuple(op.attribute(name) or [1] * rank) for name in ("strides", "dilations"))
    if auto == "NOTSET":
        if any(pad >= size for pad, size in zip(pads, [*kernel, *kernel], strict=True)) and value:
            return None
        flat = tuple(size for at in reversed(range(rank)) for size in (pads[at], pads[at + rank]))
        return f"F.pad({op[0]}, {flat}{value and f', value={value}'})"
    given = [op[0], str(tuple(kernel)), str(strides), str(dilations)]
    given += ["lower=True"] if auto == "SAME_LOWER" else []
    given += [f"value={value}"] if value else []
    return f"{op.writer.helper('same')}({', '.join(given)})"


def window(op: Op, *, average: bool = False, padded: bool = False) -> dict[str, str] | None:
    """The arguments of a pooling, perhaps of an input that is padded already."""
    kernel = list(op.attribute("kernel_shape"))
    rank, pads = len(kernel), [0] * len(kernel) if padded else symmetric(op, len(kernel))
    strides = list(op.attribute("strides") or [1] * rank)
    dilations = list(op.attribute("dilations") or [1] * rank)
    if pads is None or not 1 <= rank <= 3 or any(2 * pad > size for pad, size in zip(pads, kernel, strict=True)):
        return None
    if average and set(dilations) != {1}:
        return None
    given = {"kernel_size": one(kernel), "stride": one(strides)}
    if any(pads):
        given["padding"] = one(pads)
    if set(dilations) != {1}:
        given["dilation"] = one(dilations)
    if op.attribute("ceil_mode"):
        given["ceil_mode"] = "True"
    if average and not op.attribute("count_include_pad") and any(pads):
        given["count_include_pad"] = "False"
    return given


@word("MaxPool")
def max_pool(op: Op) -> str | None:
    """``F.max_pool2d``."""
    if op.asked(1) or op.made not in FLOATS or op.attribute("ceil_mode"):
        return None
    kernel = op.attribute("kernel_shape")
    if symmetric(op, len(kernel)) is None:
        x, given = around(op, kernel, 'float("-inf")'), window(op, padded=True)
        return None if x is None else _pooled(op, "max_pool", given, x)
    return _pooled(op, "max_pool", window(op))


@word("AveragePool")
def average_pool(op: Op) -> str | None:
    """``F.avg_pool2d``."""
    if op.made not in FLOATS or op.attribute("ceil_mode"):
        return None
    given = window(op, average=True)
    return None if given and "padding" in given and not _held(op) else _pooled(op, "avg_pool", given)


def _held(op: Op) -> bool:
    """Whether the input is known to hold a window without its padding, as torch wants it in three dimensions."""
    kernel, there = op.attribute("kernel_shape"), (op.shape(0) or ())[2:]
    sizes = list(zip(kernel, there, strict=False))
    return len(kernel) < 3 or (len(sizes) == 3 and all(isinstance(size, int) and size >= k for k, size in sizes))


def _pooled(op: Op, name: str, given: dict[str, str] | None, x: str = "") -> str | None:
    if given is None:
        return None
    kernel = given.pop("kernel_size")
    rank = len(op.attribute("kernel_shape"))
    arguments = ", ".join([x or op[0], kernel, *(f"{key}={value}" for key, value in given.items())])
    return f"F.{name}{rank}d({arguments})"


@word("Conv")
def conv(op: Op) -> str | None:
    """With weights that are computed."""
    rank = (op.rank(0) or 0) - 2
    pads = symmetric(op, rank)
    if not 1 <= rank <= 3 or pads is None or op.made not in FLOATS:
        return None
    named = {
        "stride": list(op.attribute("strides") or [1] * rank),
        "padding": pads,
        "dilation": list(op.attribute("dilations") or [1] * rank),
    }
    plain = {"stride": 1, "padding": 0, "dilation": 1}
    given = [f"{key}={one(value)}" for key, value in named.items() if set(value) != {plain[key]}]
    given += [f"groups={op.attribute('group')}"] if op.attribute("group") != 1 else []
    operands = [op[0], op[1], *([op[2]] if op.has(2) else [])]
    return f"F.conv{rank}d({', '.join([*operands, *given])})"


@word("LayerNormalization")
def layer_norm(op: Op) -> str | None:
    """Over the last axes, with scale and bias that are computed or shared."""
    axis, rank, scale = op.attribute("axis"), op.rank(0), op.shape(1)
    if rank is None or len(op.step.outputs) > 1 or scale is None or not all(isinstance(s, int) for s in scale):
        return None
    count = -axis if axis < 0 else rank - axis
    if len(scale) != count or op.made == ir.DataType.DOUBLE or not op.covers(1):
        return None
    if op.has(2) and op.shape(2) != scale:
        return None
    operands = [op[0], str(tuple(scale)), op[1], *([op[2]] if op.has(2) else [])]
    return f"F.layer_norm({', '.join(operands)}{_epsilon(op)})"


@word("RMSNormalization")
def rms_norm(op: Op) -> str | None:
    """Over the last axes."""
    axis, rank, scale = op.attribute("axis"), op.rank(0), op.shape(1)
    if rank is None or scale is None or not all(isinstance(s, int) for s in scale):
        return None
    if len(scale) != (-axis if axis < 0 else rank - axis) or not op.covers(1):
        return None
    return f"F.rms_norm({op[0]}, {tuple(scale)}, {op[1]}, eps={short(op.attribute('epsilon'))})"


@word("GroupNormalization")
def group_norm(op: Op) -> str | None:
    """Over groups of channels."""
    return f"F.group_norm({op[0]}, {op.attribute('num_groups')}, {op[1]}, {op[2]}{_epsilon(op)})"


@word("InstanceNormalization")
def instance_norm(op: Op) -> str | None:
    """Over every channel."""
    rank = op.rank(0)
    shape = op.shape(0) or ()
    if rank is None or rank < 3 or any(size == 1 for size in shape[2:]):
        return None
    return f"F.instance_norm({op[0]}, weight={op[1]}, bias={op[2]}{_epsilon(op)})"


def _epsilon(op: Op) -> str:
    epsilon = short(op.attribute("epsilon"))
    return "" if epsilon == "1e-05" else f", eps={epsilon}"


@word("Attention")
def attention(op: Op) -> str | None:
    """``F.scaled_dot_product_attention`` on heads that are apart."""
    if len(op.step.outputs) > 1 or any(op.has(at) for at in (4, 5, 6)) or op.rank(0) != 4 or op.made not in FLOATS:
        return None
    if op.attribute("softcap") or op.attribute("softmax_precision") or op.attribute("qk_matmul_output_mode"):
        return None
    heads, keys, mask = op.shape(0), op.shape(1), op.shape(3)
    if heads is None or keys is None or (op.has(3) and (op.attribute("is_causal") or mask is None)):
        return None
    given = [op[0], op[1], op[2], *([f"attn_mask={op[3]}"] if op.has(3) else [])]
    if op.attribute("is_causal"):
        if heads[2] is None or heads[2] != keys[2]:
            return None
        given.append("is_causal=True")
    if op.attribute("scale"):
        given.append(f"scale={short(op.attribute('scale'))}")
    if heads[1] != keys[1]:
        given.append("enable_gqa=True")
    return f"F.scaled_dot_product_attention({', '.join(given)})"


@WORDS("Attention", 1, domain=LAYERS)
def scaled_attention(op: Op) -> str | None:
    """A pattern of products and a softmax."""
    width, scale = (op.shape(0) or (None,))[-1], op.attribute("scale")
    usual = isinstance(width, int) and math.isclose(scale, width**-0.5, rel_tol=1e-6)
    mask = [f"attn_mask={op[3]}"] if op.has(3) else []
    given = [op[0], op[1], op[2], *mask]
    given += [] if usual else [f"scale={short(scale)}"]
    return f"F.scaled_dot_product_attention({', '.join(given)})"


@WORDS("Linear", 1, domain=LAYERS)
def linear(op: Op) -> str | None:
    """A product by a matrix, and a row that is added."""
    return f"{op[0]} @ {op[1]} + {op[2]}"
