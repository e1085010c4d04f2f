"""The operators of ``torch.ops.quantized``: what they compute on plain numbers, and what they round that to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere

from entrepot.exporters.torch.quantised.dynamic import rounded_by_range
from entrepot.exporters.torch.quantised.packed import Packed
from entrepot.exporters.torch.quantised.recurrent import CELLS
from entrepot.exporters.torch.quantised.scheme import Scheme, marked, rounded, scheme_of
from entrepot.exporters.torch.upstream import bound_arguments
from entrepot.ir.errors import UnsupportedOpError

_TARGETS = (("output_scale", "output_zero_point"), ("Y_scale_i", "Y_zero_point_i"), ("scale", "zero_point"))


def run(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """One call.

    Raises:
        UnsupportedOpError: It is not known what the operator computes.
    """
    stem = name.removeprefix("quantized::")
    rectified = stem not in _MEANINGS  # perhaps one that is known, and then ``relu``
    meaning = _MEANINGS.get(stem.replace("_relu", "") if rectified else stem)
    if meaning is None:
        raise UnsupportedOpError(f"the quantised operator {name} has no counterpart", hint="dequantise before it")
    given = bound_arguments(name, args, kwargs)
    scale, zero_point = next(
        ((given.pop(a), given.pop(b)) for a, b in _TARGETS if a in given and b in given), (None, None)
    )
    given.pop("inplace", None)
    first = given.pop(next(iter(given)))  # goes by many names
    result = meaning(first, **given)
    result = F.relu(result) if rectified else result
    kind = next(
        (scheme.kind for value in _flat([first, *given.values()]) if (scheme := scheme_of(value))), torch.quint8
    )
    return result if scale is None else rounded(result, Scheme(scale, zero_point, kind))


def _flat(values: Any) -> list[Any]:
    return [each for value in values for each in (value if isinstance(value, list | tuple) else (value,))]


def linear(X: torch.Tensor, W_prepack: Packed) -> torch.Tensor:
    """``X`` times the weight."""
    return F.linear(X, W_prepack.weight, W_prepack.added)


def linear_dynamic(X: torch.Tensor, W_prepack: Packed, reduce_range: bool = False) -> torch.Tensor:
    """The same for what is quantised by its own range."""
    return linear(rounded_by_range(X, reduced=reduce_range), W_prepack)


def conv(qx: torch.Tensor, packed_weight: Packed, **_: Any) -> torch.Tensor:
    """A convolution over one to three dimensions, by the weight's rank; one is done as two."""
    function = _CONVOLUTIONS[packed_weight.transposed, packed_weight.weight.dim()]
    line = packed_weight.weight.dim() == 4 and qx.dim() == 3
    found = function(
        qx.unsqueeze(-2) if line else qx, packed_weight.weight, packed_weight.added, **packed_weight.layout
    )
    return found.squeeze(-2) if line else found


_CONVOLUTIONS: dict[Any, Callable[..., torch.Tensor]] = {
    (False, 4): F.conv2d,
    (False, 5): F.conv3d,
    (True, 4): F.conv_transpose2d,
    (True, 5): F.conv_transpose3d,
}


def conv_dynamic(qx: torch.Tensor, packed_weight: Packed, reduce_range: bool = False) -> torch.Tensor:
    """The same for what is quantised by its own range."""
    return conv(rounded_by_range(qx, reduced=reduce_range), packed_weight)


def conv_add(qx: torch.Tensor, qaccum: torch.Tensor, packed_weight: Packed) -> torch.Tensor:
    """A convolution added to something."""
    return conv(qx, packed_weight) + qaccum


def add_scalar(qa: torch.Tensor, b: Any) -> torch.Tensor:
    """Adds the nearest multiple of the step; the zero point moves, and the step grows where it cannot."""
    scheme = scheme_of(qa)
    assert scheme is not None
    steps = round(float(b) / scheme.scale)
    zero, limits = scheme.zero_point - steps, scheme.limits
    moved = qa + steps * scheme.scale
    if zero < limits.min:
        grown = Scheme((limits.max - zero) / (limits.max - limits.min) * scheme.scale, limits.min, scheme.kind)
        return rounded(moved, grown)
    if zero > limits.max:
        grown = Scheme((zero - limits.min) / (limits.max - limits.min) * scheme.scale, limits.max, scheme.kind)
        return rounded(moved, grown)
    return marked(moved, Scheme(scheme.scale, zero, scheme.kind))


def mul_scalar(qa: torch.Tensor, b: Any) -> torch.Tensor:
    """Multiplies the step; the integers stay, or are mirrored."""
    scheme = scheme_of(qa)
    assert scheme is not None
    if b == 0:
        return marked(qa * 0.0, Scheme(1.0, 0, scheme.kind))
    limits = scheme.limits
    zero = scheme.zero_point if b > 0 else limits.max - (scheme.zero_point - limits.min)
    return marked(qa * b, Scheme(abs(b) * scheme.scale, zero, scheme.kind))


def batch_norm(
    qx: torch.Tensor, weight: Any, bias: Any, mean: torch.Tensor, var: torch.Tensor, eps: float
) -> torch.Tensor:
    """By running statistics."""
    return F.batch_norm(qx, mean, var, weight, bias, eps=eps)


def embedding(weight: Packed, indices: torch.Tensor, pruned_weights: bool = False) -> torch.Tensor:
    """Rows of a table."""
    return weight.held.rows(indices)


def elu(self: torch.Tensor, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> torch.Tensor:
    """Of which ``celu`` and ``selu`` are cases."""
    return torch.where(self > 0, self * scale, (torch.exp(self * input_scale) - 1) * alpha * scale)


_MEANINGS: dict[str, Callable[..., Any]] = {
    "linear": linear,
    "linear_dynamic": linear_dynamic,
    "linear_dynamic_fp16": linear,
    "linear_leaky_relu": lambda X, W_prepack, negative_slope: F.leaky_relu(linear(X, W_prepack), negative_slope),
    "linear_tanh": lambda X, W_prepack: torch.tanh(linear(X, W_prepack)),
    "conv2d_add": conv_add,
    **dict.fromkeys(("conv1d", "conv2d", "conv3d", *(f"conv_transpose{n}d" for n in (1, 2, 3))), conv),
    **{f"conv{n}d_dynamic": conv_dynamic for n in (1, 2, 3)},
    **{f"conv_transpose{n}d_dynamic": conv_dynamic for n in (1, 2, 3)},
    "add": lambda qa, qb: qa + qb,
    "mul": lambda qa, qb: qa * qb,
    "matmul": lambda qa, qb: qa @ qb,
    "add_scalar": add_scalar,
    "mul_scalar": mul_scalar,
    "cat": lambda qx, dim: torch.cat(list(qx), dim),
    **dict.fromkeys(("batch_norm", *(f"batch_norm{n}d" for n in (1, 2, 3))), batch_norm),
    "layer_norm": F.layer_norm,
    "group_norm": F.group_norm,
    "instance_norm": F.instance_norm,
    "elu": elu,
    "celu": lambda self, alpha=1: F.celu(self, alpha),
    "hardswish": F.hardswish,
    "leaky_relu": F.leaky_relu,
    "prelu": F.prelu,
    "sigmoid": torch.sigmoid,
    "softmax": torch.softmax,
    "dropout": lambda self, p=0.5, training=False: self,
    "relu6": lambda qx: rounded(F.relu6(qx), _same(qx)),
    "clamp": lambda qx, **given: rounded(torch.clamp(qx, **given), _same(qx)),
    "threshold": lambda qx, threshold, value: rounded(F.threshold(qx, threshold, value), _same(qx)),
    "max_pool1d": lambda qx, **given: marked(F.max_pool1d(qx, **given), _same(qx)),
    "max_pool2d": lambda qx, **given: marked(F.max_pool2d(qx, **given), _same(qx)),
    "embedding_byte": embedding,
    **CELLS,
}


def _same(qx: torch.Tensor) -> Scheme:
    scheme = scheme_of(qx)
    assert scheme is not None
    return scheme
