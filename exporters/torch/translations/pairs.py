"""Complex numbers as pairs of real ones: what operators become in ``lowering/complex_numbers.py``.

A rule takes the arguments of its operator, with a ``Pair`` for every complex tensor or number, and returns a tensor or
a ``Pair``. It may meet real tensors where torch would promote them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from entrepot.exporters.torch.upstream import pytree

aten, prims = torch.ops.aten, torch.ops.prims

REAL = {torch.complex64: torch.float32, torch.complex128: torch.float64, torch.complex32: torch.float16}
"""The dtype of the parts."""


@dataclass(frozen=True)
class Pair:
    """Real and imaginary part."""

    re: Any
    im: Any

    def __add__(self, other: Any) -> Pair:
        two = _pair(other, self)
        return Pair(self.re + two.re, self.im + two.im)

    def __sub__(self, other: Any) -> Pair:
        two = _pair(other, self)
        return Pair(self.re - two.re, self.im - two.im)

    def __mul__(self, other: Any) -> Pair:
        return _bilinear(torch.mul)(self, other)

    def __neg__(self) -> Pair:
        return Pair(-self.re, -self.im)


def is_complex(value: Any) -> bool:
    """Whether an argument is, or should be, a pair."""
    return isinstance(value, Pair | complex) or (isinstance(value, torch.Tensor) and value.is_complex())


def rule_for(operator: Any) -> Callable[..., Any] | None:
    """What an operator becomes; ``None`` if that is not known."""
    packet = getattr(operator, "overloadpacket", operator)
    return _RULES.get(operator) or _RULES.get(packet)


def _pair(value: Any, like: Pair | None = None) -> Pair:
    if isinstance(value, Pair):
        return value
    if isinstance(value, complex):
        return Pair(value.real, value.imag)
    return Pair(value, torch.zeros_like(value) if isinstance(value, torch.Tensor) else 0.0)


def _each(operator: Any) -> Callable[..., Any]:
    """For operators that only move, choose or add up elements: applied to both parts."""

    def rule(*args: Any, **kwargs: Any) -> Any:
        leaves, spec = pytree.tree_flatten((args, kwargs))
        parts = []
        for name in ("re", "im"):
            own = [_part(leaf, name) for leaf in leaves]
            args_, kwargs_ = pytree.tree_unflatten(own, spec)
            parts.append(operator(*args_, **_real_kind(kwargs_)))
        re, how = pytree.tree_flatten(parts[0])
        return pytree.tree_unflatten([Pair(*both) for both in zip(re, pytree.tree_leaves(parts[1]), strict=True)], how)

    return rule


def _part(value: Any, name: str) -> Any:
    if isinstance(value, Pair):
        return getattr(value, name)
    real = isinstance(value, torch.Tensor) and value.is_floating_point() and name == "im"
    return torch.zeros_like(value) if real else value


def _real_kind(how: dict[str, Any]) -> dict[str, Any]:
    return how | ({"dtype": REAL[how["dtype"]]} if how.get("dtype") in REAL else {})


def _bilinear(operator: Any) -> Callable[..., Any]:
    """For products of two operands of any kind."""

    def rule(one: Any, other: Any, *args: Any, **kwargs: Any) -> Pair:
        if not is_complex(one):
            other = _pair(other)
            return Pair(operator(one, other.re, *args, **kwargs), operator(one, other.im, *args, **kwargs))
        one = _pair(one)
        if not is_complex(other):
            return Pair(operator(one.re, other, *args, **kwargs), operator(one.im, other, *args, **kwargs))
        other = _pair(other)
        straight = operator(one.re, other.re, *args, **kwargs) - operator(one.im, other.im, *args, **kwargs)
        return Pair(straight, operator(one.re, other.im, *args, **kwargs) + operator(one.im, other.re, *args, **kwargs))

    return rule


def _add(one: Any, other: Any, *, alpha: Any = 1) -> Pair:
    return _pair(one) + (_pair(other) if alpha == 1 else _pair(other) * alpha)


def _sub(one: Any, other: Any, *, alpha: Any = 1) -> Pair:
    return _pair(one) - (_pair(other) if alpha == 1 else _pair(other) * alpha)


def _addmm(base: Any, one: Any, other: Any, *, beta: Any = 1, alpha: Any = 1) -> Pair:
    product = _bilinear(torch.matmul)(one, other)
    return _pair(base) * beta + product * alpha


def _linear(x: Any, weight: Any, bias: Any = None) -> Pair:
    product = _bilinear(torch.nn.functional.linear)(x, weight)
    return product if bias is None else product + bias


def _einsum(equation: str, operands: Sequence[Any], **_how: Any) -> Pair:
    """Every choice of one part of each operand, with the sign that the imaginary ones among them give."""
    chosen: list[tuple[list[Any], int]] = [([], 0)]
    for operand in operands:
        parts = ((operand.re, 0), (operand.im, 1)) if isinstance(operand, Pair) else ((operand, 0),)
        chosen = [([*before, part], turns + turn) for before, turns in chosen for part, turn in parts]
    terms = [(torch.einsum(equation, *parts), turns % 4) for parts, turns in chosen]
    return Pair(_signed(terms, 0, 2), _signed(terms, 1, 3))


def _signed(terms: Sequence[tuple[torch.Tensor, int]], plus: int, minus: int) -> torch.Tensor:
    result: Any = sum(term for term, turns in terms if turns == plus)
    return result - sum(term for term, turns in terms if turns == minus)


def _convolution(x: Any, weight: Any, bias: Any, *how: Any) -> Pair:
    product = _bilinear(lambda one, other: aten.convolution(one, other, None, *how))(x, weight)
    if bias is None:
        return product
    shape = (-1,) + (1,) * (product.re.dim() - 2)
    part = _pair(bias)
    return product + Pair(part.re.reshape(shape), part.im.reshape(shape))


def _spectrum(x: torch.Tensor, dim: Sequence[int], normalization: int, onesided: bool) -> Pair:
    """Of real numbers; what is real in one dimension is exactly so in torch, on which angles depend."""
    found = torch.view_as_real(aten._fft_r2c(x, dim, normalization, onesided))  # noqa: SLF001 - what rfft becomes
    re, im = found.select(-1, 0), found.select(-1, 1)
    if len(dim) == 1:
        axis = dim[0] % x.dim()
        size: Any = x.shape[axis]
        place = torch.arange(size // 2 + 1 if onesided else size)
        real = (place == 0) | (2 * place == _counted(size))
        im = im.masked_fill(real.reshape([-1 if each == axis else 1 for each in range(x.dim())]), 0.0)
    return Pair(re, im)


def _counted(size: Any) -> torch.Tensor:
    """A size as a tensor: torch.onnx (2.13) cannot promote it where it is compared as a number."""
    return torch.full((), size, dtype=torch.int64)


def _transformed(z: Pair, dim: Sequence[int], normalization: int, forward: bool) -> Pair:
    whole = torch.stack([z.re, z.im], -1)
    for axis in dim:
        whole = torch.ops.entrepot.fourier(whole, axis % z.re.dim(), normalization, forward)
    return Pair(whole.select(-1, 0), whole.select(-1, 1))


def _signal(z: Pair, dim: Sequence[int], normalization: int, last_dim_size: Any) -> torch.Tensor:
    """From half a spectrum to real numbers, by way of the whole one.

    ONNX has an operator for half of one, but onnxruntime (1.31) takes its result to be as long as its input.
    """
    if len(dim) > 1:
        z = _transformed(z, dim[:-1], normalization, False)
    place = torch.arange(last_dim_size)
    mirrored = place > _counted(last_dim_size // 2)
    source = torch.where(mirrored, _counted(last_dim_size) - place, place)
    sign = torch.where(mirrored, -1.0, 1.0).to(z.re.dtype)
    sign = sign.reshape([-1 if axis == dim[-1] % z.re.dim() else 1 for axis in range(z.re.dim())])
    whole = Pair(z.re.index_select(dim[-1], source), z.im.index_select(dim[-1], source) * sign)
    return _transformed(whole, dim[-1:], normalization, False).re


def _div(one: Any, other: Any) -> Pair:
    """Scaled by the larger part of the divisor, as Smith does, against overflow."""
    one = _pair(one)
    if not is_complex(other):
        return Pair(one.re / other, one.im / other)
    two = _pair(other)
    re, im = (torch.as_tensor(part) for part in (two.re, two.im)) if isinstance(other, complex) else (two.re, two.im)
    wide = re.abs() >= im.abs()
    larger, smaller = torch.where(wide, re, im), torch.where(wide, im, re)
    ratio = smaller / larger
    scale = larger + smaller * ratio
    along, across = torch.where(wide, one.re, one.im), torch.where(wide, one.im, one.re)
    imaginary = across - along * ratio
    return Pair((along + across * ratio) / scale, torch.where(wide, imaginary, -imaginary) / scale)


def _reciprocal(one: Pair) -> Pair:
    return _div(Pair(torch.ones_like(one.re), torch.zeros_like(one.im)), one)


def _abs(one: Pair) -> torch.Tensor:
    return torch.hypot(one.re, one.im)


def _angle(one: Pair) -> torch.Tensor:
    return torch.atan2(one.im, one.re)


def _polar(size: torch.Tensor, angle: torch.Tensor) -> Pair:
    return Pair(size * angle.cos(), size * angle.sin())


def _exp(one: Pair) -> Pair:
    return _polar(one.re.exp(), one.im)


def _log(one: Pair) -> Pair:
    return Pair(_abs(one).log(), _angle(one))


def _sqrt(one: Pair) -> Pair:
    """The root with a real part that is not negative."""
    size = _abs(one)
    along = ((size + one.re.abs()) / 2).sqrt()
    across = torch.where(along == 0, 0.0, one.im / (2 * torch.where(along == 0, 1.0, along)))
    positive, sign = one.re >= 0, torch.where(torch.signbit(one.im), -1.0, 1.0).to(one.re.dtype)
    return Pair(torch.where(positive, along, across.abs()), torch.where(positive, across, sign * along))


def _pow(one: Any, power: Any) -> Pair:
    if isinstance(power, int) and isinstance(one, Pair) and 0 <= power <= 8:
        result = Pair(torch.ones_like(one.re), torch.zeros_like(one.im))
        for _ in range(power):
            result = result * one
        return result
    if power == 0.5 and isinstance(one, Pair):
        return _sqrt(one)
    if not is_complex(one):
        one = torch.as_tensor(one)
        return _exp(_pair(power) * one.log())
    return _exp(_bilinear(torch.mul)(_log(_pair(one)), power))


def _sin(one: Pair) -> Pair:
    return Pair(one.re.sin() * one.im.cosh(), one.re.cos() * one.im.sinh())


def _cos(one: Pair) -> Pair:
    return Pair(one.re.cos() * one.im.cosh(), -(one.re.sin() * one.im.sinh()))


def _sinh(one: Pair) -> Pair:
    return Pair(one.re.sinh() * one.im.cos(), one.re.cosh() * one.im.sin())


def _cosh(one: Pair) -> Pair:
    return Pair(one.re.cosh() * one.im.cos(), one.re.sinh() * one.im.sin())


def _tanh(one: Pair) -> Pair:
    """By the tangent of the imaginary part and the hyperbolic one of the real part, which cannot overflow."""
    hyperbolic, turn = one.re.tanh(), one.im.tan()
    return _div(Pair(hyperbolic, turn), Pair(torch.ones_like(turn), hyperbolic * turn))


def _tan(one: Pair) -> Pair:
    found = _tanh(Pair(-one.im, one.re))
    return Pair(found.im, -found.re)


def _sigmoid(one: Pair) -> Pair:
    return (_tanh(one * 0.5) + 1.0) * 0.5


def _silu(one: Pair) -> Pair:
    return one * _sigmoid(one)


def _sgn(one: Pair) -> Pair:
    size = _abs(one)
    safe = torch.where(size == 0, torch.ones_like(size), size)
    return Pair(one.re / safe, one.im / safe)


def _equal(one: Any, other: Any) -> torch.Tensor:
    one, other = _pair(one), _pair(other)
    return (one.re == other.re) & (one.im == other.im)


def _to(value: Any, *args: Any, dtype: Any = None, **_how: Any) -> Any:
    kind: Any = next((each for each in args if isinstance(each, torch.dtype)), dtype)
    if kind is None or kind in REAL:
        pair = _pair(value)
        kind = REAL.get(kind, pair.re.dtype)
        return Pair(pair.re.to(kind), pair.im.to(kind))
    return _pair(value).re.to(kind)  # as torch does, which warns of it


def _filled(create: Callable[..., torch.Tensor]) -> Callable[..., Pair]:
    """A tensor of zeros or ones, in the shape of another or in one given as numbers."""

    def rule(like: Any, *args: Any, **how: Any) -> Any:
        start = like.re if isinstance(like, Pair) else like
        kind = how.get("dtype")
        re = create(start, *args, **_real_kind({key: value for key, value in how.items() if value is not None}))
        return re if kind is not None and kind not in REAL else Pair(re, torch.zeros_like(re))

    return rule


def _full(create: Callable[..., torch.Tensor]) -> Callable[..., Pair]:
    """A tensor of one number that may be complex."""

    def rule(like: Any, value: Any, **how: Any) -> Any:
        start, number, kind = like.re if isinstance(like, Pair) else like, _pair(value), how.get("dtype")
        how = _real_kind({key: value for key, value in how.items() if value is not None})
        if kind is not None and kind not in REAL:
            return create(start, number.re, **how)
        how.setdefault("dtype", like.re.dtype if isinstance(like, Pair) else torch.get_default_dtype())
        return Pair(create(start, number.re, **how), create(start, number.im, **how))

    return rule


def _scalar_tensor(value: Any, **how: Any) -> Pair:
    return _full(torch.full)((), value, **how)


def _masked_fill(one: Any, mask: torch.Tensor, value: Any) -> Pair:
    one, number = _pair(one), _pair(value)
    return Pair(one.re.masked_fill(mask, number.re), one.im.masked_fill(mask, number.im))


def _padded(one: Pair, pads: Sequence[int], value: Any = 0) -> Pair:
    number = _pair(value)
    parts = ((one.re, number.re), (one.im, number.im))
    return Pair(*(torch.constant_pad_nd(part, pads, float(fill)) for part, fill in parts))


def _vector_norm(one: Pair, *args: Any, **how: Any) -> torch.Tensor:
    return torch.linalg.vector_norm(_abs(one), *args, **_real_kind(how))


def _var(one: Pair, *args: Any, **how: Any) -> torch.Tensor:
    return aten.var(one.re, *args, **how) + aten.var(one.im, *args, **how)


def _prod(one: Pair, dim: int, keepdim: bool = False, **_how: Any) -> Pair:
    """Half by half, as often as it takes: sizes are known where torch lets complex numbers be multiplied."""
    parts = [Pair(*both) for both in zip(one.re.unbind(dim), one.im.unbind(dim), strict=True)]
    result = parts[0]
    for part in parts[1:]:
        result = result * part
    return Pair(result.re.unsqueeze(dim), result.im.unsqueeze(dim)) if keepdim else result


def _either(test: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[Pair], torch.Tensor]:
    return lambda one: test(one.re) | test(one.im)


def _conjugate(one: Pair) -> Pair:
    return Pair(one.re, -one.im)


def _as_is(one: Pair, *_args: Any, **_how: Any) -> Pair:
    return one


def _nonzero(test: Any) -> Callable[..., Any]:
    return lambda *args, **how: test(
        *((each.re != 0) | (each.im != 0) if isinstance(each, Pair) else each for each in args), **how
    )


_MOVING = (
    "clone",
    "view",
    "reshape",
    "_unsafe_view",
    "permute",
    "transpose",
    "t",
    "expand",
    "slice",
    "select",
    "squeeze",
    "unsqueeze",
    "index",
    "gather",
    "cat",
    "stack",
    "sum",
    "mean",
    "cumsum",
    "neg",
    "flip",
    "roll",
    "repeat",
    "split",
    "split_with_sizes",
    "unbind",
    "index_select",
    "alias",
    "detach",
    "contiguous",
    "diagonal",
    "tril",
    "triu",
    "index_put",
    "scatter",
    "scatter_add",
    "index_add",
    "slice_scatter",
    "select_scatter",
    "copy",
    "embedding",
    "unfold",
    "as_strided",
    "movedim",
    "where",
    "diag_embed",
    "rot90",
    "trace",
    "take_along_dim",
    "masked_select",
    "repeat_interleave",
    "lift_fresh_copy",
    "lift_fresh",
    "nansum",
    "chunk",
    "constant_pad",
    "narrow",
    "hstack",
    "vstack",
    "flatten",
    "swapaxes",
    "index_fill",
    "diagonal_scatter",
    "_reshape_copy",
    "view_copy",
)

_PRODUCTS = ("mul", "mm", "bmm", "matmul", "dot", "mv", "outer")

_RULES: dict[Any, Callable[..., Any]] = {
    **{getattr(aten, name): _each(getattr(aten, name)) for name in _MOVING if hasattr(aten, name)},
    **{getattr(aten, name): _bilinear(getattr(aten, name)) for name in _PRODUCTS},
    **dict.fromkeys([aten.addmm, aten.baddbmm, aten.addmv], _addmm),
    **dict.fromkeys([aten.resolve_conj, aten.resolve_neg, prims.conj], _as_is),
    **dict.fromkeys([aten._conj, aten._conj_physical, aten.conj_physical, prims.conj_physical], _conjugate),  # noqa: SLF001
    **dict.fromkeys([aten.to, aten._to_copy, prims.convert_element_type], _to),  # noqa: SLF001 - what to becomes
    aten._neg_view: lambda one: -one,  # noqa: SLF001 - what imag of a conj becomes
    aten.zeros: _filled(torch.zeros),
    aten.ones: _filled(torch.ones),
    aten.empty: _filled(torch.zeros),
    aten.zeros_like: _filled(torch.zeros_like),
    aten.empty_like: _filled(torch.zeros_like),
    aten.ones_like: _filled(torch.ones_like),
    aten.new_zeros: _filled(aten.new_zeros),
    aten.new_ones: _filled(aten.new_ones),
    aten.full: _full(torch.full),
    aten.full_like: _full(torch.full_like),
    aten.new_full: _full(aten.new_full),
    aten.fill: _full(torch.full_like),
    aten.scalar_tensor: _scalar_tensor,
    aten.complex: Pair,
    aten.polar: _polar,
    aten.view_as_complex: lambda one: Pair(one.select(-1, 0), one.select(-1, 1)),
    aten.view_as_real: lambda one: torch.stack([one.re, one.im], -1),
    aten.sym_size: lambda one, dim: one.re.shape[dim],
    aten.sym_numel: lambda one: one.re.numel(),
    aten.real: lambda one: one.re if isinstance(one, Pair) else one,
    aten.imag: lambda one: one.im,
    aten.linear: _linear,
    aten.einsum: _einsum,
    aten.convolution: _convolution,
    aten._fft_c2r: _signal,  # noqa: SLF001 - what irfft becomes
    aten._fft_r2c: _spectrum,  # noqa: SLF001 - what rfft becomes
    aten.add: _add,
    aten.sub: _sub,
    aten.rsub: lambda one, other, *, alpha=1: _sub(other, one, alpha=alpha),
    aten.div: _div,
    aten.reciprocal: _reciprocal,
    aten.abs: _abs,
    aten.angle: _angle,
    aten.exp: _exp,
    aten.expm1: lambda one: _exp(one) - 1.0,
    aten.log: _log,
    aten.sqrt: _sqrt,
    aten.rsqrt: lambda one: _reciprocal(_sqrt(one)),
    aten.square: lambda one: one * one,
    aten.pow: _pow,
    aten.sin: _sin,
    aten.cos: _cos,
    aten.tan: _tan,
    aten.sinh: _sinh,
    aten.cosh: _cosh,
    aten.tanh: _tanh,
    aten.sigmoid: _sigmoid,
    aten.silu: _silu,
    aten.sgn: _sgn,
    aten.eq: _equal,
    aten.ne: lambda one, other: ~_equal(one, other),
    aten.isnan: _either(torch.isnan),
    aten.isinf: _either(torch.isinf),
    aten.isfinite: lambda one: one.re.isfinite() & one.im.isfinite(),
    aten.any: _nonzero(aten.any),
    aten.all: _nonzero(aten.all),
    aten.logical_not: _nonzero(aten.logical_not),
    aten.logical_and: _nonzero(aten.logical_and),
    aten.logical_or: _nonzero(aten.logical_or),
    aten.masked_fill: _masked_fill,
    aten.constant_pad_nd: _padded,
    aten.linalg_vector_norm: _vector_norm,
    aten.var: _var,
    aten.prod: _prod,
}  # fmt: skip
