"""Complex numbers as pairs of real ones: what operators become in ``lowering/complex_numbers.py``.

A rule takes the arguments of its operator, with a ``Pair`` for every complex tensor or number, and returns a tensor or
a ``Pair``. It may meet real tensors where torch would promote them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from entrepot.exporters.torch.translations.pair import REAL, Pair, bilinear, pair_of, real_kind
from entrepot.exporters.torch.translations.pair_functions import FUNCTIONS
from entrepot.exporters.torch.translations.pair_matrices import MATRICES
from entrepot.exporters.torch.translations.waves import along, is_power_of_two, is_product, waves
from entrepot.exporters.torch.upstream import pytree

aten, prims = torch.ops.aten, torch.ops.prims


def rule_for(operator: Any) -> Callable[..., Any] | None:
    """What an operator becomes; ``None`` if that is not known."""
    packet = getattr(operator, "overloadpacket", operator)
    return _RULES.get(operator) or _RULES.get(packet)


def _each(operator: Any) -> Callable[..., Any]:
    """For operators that only move, choose or add up elements: applied to both parts."""

    def rule(*args: Any, **kwargs: Any) -> Any:
        leaves, spec = pytree.tree_flatten((args, kwargs))
        parts = []
        for name in ("re", "im"):
            own = [_part(leaf, name) for leaf in leaves]
            args_, kwargs_ = pytree.tree_unflatten(own, spec)
            parts.append(operator(*args_, **real_kind(kwargs_)))
        re, how = pytree.tree_flatten(parts[0])
        return pytree.tree_unflatten([Pair(*both) for both in zip(re, pytree.tree_leaves(parts[1]), strict=True)], how)

    return rule


def _part(value: Any, name: str) -> Any:
    if isinstance(value, Pair):
        return getattr(value, name)
    real = isinstance(value, torch.Tensor) and value.is_floating_point() and name == "im"
    return torch.zeros_like(value) if real else value


def _add(one: Any, other: Any, *, alpha: Any = 1) -> Pair:
    return pair_of(one) + (pair_of(other) if alpha == 1 else pair_of(other) * alpha)


def _sub(one: Any, other: Any, *, alpha: Any = 1) -> Pair:
    return pair_of(one) - (pair_of(other) if alpha == 1 else pair_of(other) * alpha)


def _addmm(base: Any, one: Any, other: Any, *, beta: Any = 1, alpha: Any = 1) -> Pair:
    product = bilinear(torch.matmul)(one, other)
    return pair_of(base) * beta + product * alpha


def _linear(x: Any, weight: Any, bias: Any = None) -> Pair:
    product = bilinear(torch.nn.functional.linear)(x, weight)
    return product if bias is None else product + bias


def _einsum(equation: str, operands: Sequence[Any], **_how: Any) -> Pair:
    """Every choice of one part of each operand, with the sign that the imaginary ones among them give."""
    chosen: list[tuple[list[Any], int]] = [([], 0)]
    for operand in operands:
        parts = ((operand.re, 0), (operand.im, 1)) if isinstance(operand, Pair) else ((operand, 0),)
        chosen = [([*before, part], turns + turn) for before, turns in chosen for part, turn in parts]
    terms = [(aten.einsum(equation, parts), turns % 4) for parts, turns in chosen]
    return Pair(_signed(terms, 0, 2), _signed(terms, 1, 3))


def _signed(terms: Sequence[tuple[torch.Tensor, int]], plus: int, minus: int) -> torch.Tensor:
    result: Any = sum(term for term, turns in terms if turns == plus)
    return result - sum(term for term, turns in terms if turns == minus)


def _convolution(x: Any, weight: Any, bias: Any, *how: Any) -> Pair:
    product = bilinear(lambda one, other: aten.convolution(one, other, None, *how))(x, weight)
    if bias is None:
        return product
    shape = (-1,) + (1,) * (product.re.dim() - 2)
    part = pair_of(bias)
    return product + Pair(part.re.reshape(shape), part.im.reshape(shape))


def spectrum(x: torch.Tensor, dim: Sequence[int], normalization: int, onesided: bool, *, exact: bool = True) -> Pair:
    """Of real numbers, along the last axis first, which may be halved; parts that are real exactly so if it matters.

    Each axis is a step with a shape of its own: onnxruntime (1.31) takes half a spectrum to be as long as its signal.
    """
    if len(dim) > 1:
        return _transformed(spectrum(x, dim[-1:], normalization, onesided, exact=False), dim[:-1], normalization, True)
    axis = dim[0] % x.dim()
    size: Any = x.shape[axis]
    wide = None
    if is_product(size):
        cosines, sines = waves(size, size // 2 + 1 if onesided else size, normalization, x)
        re, im = along(x, axis, cosines), along(x, axis, -sines)
    elif is_power_of_two(size):
        found = torch.view_as_real(aten._fft_r2c(x, dim, normalization, onesided))  # noqa: SLF001 - what rfft becomes
        re, im = found.select(-1, 0), found.select(-1, 1)
    else:
        wide = torch.ops.entrepot.fourier(x.double().unsqueeze(-1), axis, normalization, True)
        wide = wide.narrow(axis, 0, size // 2 + 1) if onesided else wide
        re, im = _parts(wide, x)
    if not exact:
        return Pair(re, im, wide)
    place = torch.arange(size // 2 + 1 if onesided else size)
    # what is real is exactly so in torch, on which angles depend
    real = (place == 0) | (2 * place == _counted(size))
    real = real.reshape([-1 if each == axis else 1 for each in range(x.dim())])
    return Pair(re, im.masked_fill(real, 0.0), wide)


def _whole(z: Pair, sizes: Sequence[Any]) -> torch.Tensor:
    """Both parts along a last axis: of float64 unless the sizes to be transformed are known to be powers of two.

    Of other sizes, onnxruntime's DFT (1.31) of float32 is off by 2e-5 of the largest result for 100 elements, 2e-4 for
    1,000 and 2e-2 for 60,000; that of float64 takes no longer.
    """
    if all(map(is_power_of_two, sizes)):
        return torch.stack([z.re, z.im], -1)
    return torch.stack([z.re, z.im], -1).double() if z.exact is None else z.exact


def _parts(whole: torch.Tensor, like: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    narrow = whole.to(like.dtype)
    return narrow.select(-1, 0), narrow.select(-1, 1)


def spectra_of_frames(
    x: torch.Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: torch.Tensor | None = None,
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: bool | None = None,
    *,
    exact: bool = True,
) -> Pair:
    """``stft`` of real numbers, frame by frame: the operator of onnxruntime (1.31) is as coarse as its DFT."""
    frames = x.unfold(-1, n_fft, n_fft // 4 if hop_length is None else hop_length)
    width = win_length or n_fft
    if window is not None or width < n_fft:
        taper = x.new_ones(width) if window is None else window
        missing = n_fft - taper.shape[0]
        frames = frames * torch.nn.functional.pad(taper, (missing // 2, missing - missing // 2))
    found = spectrum(frames, [-1], int(normalized), onesided is not False, exact=exact)
    return Pair(found.re.transpose(-1, -2), found.im.transpose(-1, -2))


def _counted(size: Any) -> torch.Tensor:
    """A size as a tensor: torch.onnx (2.13) cannot promote it where it is compared as a number."""
    return torch.full((), size, dtype=torch.int64)


def _transformed(z: Pair, dim: Sequence[int], normalization: int, forward: bool) -> Pair:
    axes = [axis % z.re.dim() for axis in dim]
    for axis in filter(lambda axis: is_product(z.re.shape[axis]), axes):
        cosines, sines = waves(z.re.shape[axis], z.re.shape[axis], normalization, z.re)
        sines = -sines if forward else sines
        re = along(z.re, axis, cosines) - along(z.im, axis, sines)
        z = Pair(re, along(z.re, axis, sines) + along(z.im, axis, cosines))
    left = [axis for axis in axes if not is_product(z.re.shape[axis])]
    if not left:
        return z
    whole = _whole(z, [z.re.shape[axis] for axis in left])
    for axis in left:
        whole = torch.ops.entrepot.fourier(whole, axis, normalization, forward)
    return Pair(*_parts(whole, z.re), None if whole.dtype == z.re.dtype else whole)


def _signal(z: Pair, dim: Sequence[int], normalization: int, last_dim_size: Any) -> torch.Tensor:
    """From half a spectrum to real numbers, by way of the whole one.

    ONNX has an operator for half of one, but onnxruntime (1.31) takes its result to be as long as its input.
    """
    if len(dim) > 1:
        z = _transformed(z, dim[:-1], normalization, False)
    place = torch.arange(last_dim_size)
    mirrored = place > _counted(last_dim_size // 2)
    source = torch.where(mirrored, _counted(last_dim_size) - place, place)
    axis = dim[-1] % z.re.dim()
    mirrored = mirrored.reshape([-1 if each == axis else 1 for each in range(z.re.dim())])
    if is_product(last_dim_size):
        sign = torch.where(mirrored, -1.0, 1.0).to(z.re.dtype)
        whole = Pair(z.re.index_select(axis, source), z.im.index_select(axis, source) * sign)
        return _transformed(whole, [axis], normalization, False).re
    half = _whole(z, [last_dim_size])
    signs = torch.where(mirrored.unsqueeze(-1), 1.0 - 2.0 * torch.arange(2), 1.0).to(half.dtype)
    found = torch.ops.entrepot.fourier(half.index_select(axis, source) * signs, axis, normalization, False)
    return _parts(found, z.re)[0]


def _equal(one: Any, other: Any) -> torch.Tensor:
    one, other = pair_of(one), pair_of(other)
    return (one.re == other.re) & (one.im == other.im)


def _to(value: Any, *args: Any, dtype: Any = None, **_how: Any) -> Any:
    kind: Any = next((each for each in args if isinstance(each, torch.dtype)), dtype)
    if kind is None or kind in REAL:
        pair = pair_of(value)
        kind = REAL.get(kind, pair.re.dtype)
        return Pair(pair.re.to(kind), pair.im.to(kind))
    return pair_of(value).re.to(kind)  # as torch does, which warns of it


def _filled(create: Callable[..., torch.Tensor]) -> Callable[..., Pair]:
    """A tensor of zeros or ones, in the shape of another or in one given as numbers."""

    def rule(like: Any, *args: Any, **how: Any) -> Any:
        start = like.re if isinstance(like, Pair) else like
        kind = how.get("dtype")
        re = create(start, *args, **real_kind({key: value for key, value in how.items() if value is not None}))
        return re if kind is not None and kind not in REAL else Pair(re, torch.zeros_like(re))

    return rule


def _of_parts(real: torch.Tensor, imag: torch.Tensor) -> Pair:
    return Pair(real, imag) if real.shape == imag.shape else Pair(*torch.broadcast_tensors(real, imag))


def _full(create: Callable[..., torch.Tensor]) -> Callable[..., Pair]:
    """A tensor of one number that may be complex."""

    def rule(like: Any, *args: Any, **how: Any) -> Any:
        *sizes, value = args
        start, number, kind = like.re if isinstance(like, Pair) else like, pair_of(value), how.get("dtype")
        how = real_kind({key: value for key, value in how.items() if value is not None})
        if kind is not None and kind not in REAL:
            return create(start, *sizes, number.re, **how)
        how.setdefault("dtype", like.re.dtype if isinstance(like, Pair) else torch.get_default_dtype())
        return Pair(create(start, *sizes, number.re, **how), create(start, *sizes, number.im, **how))

    return rule


def _scalar_tensor(value: Any, **how: Any) -> Pair:
    return _full(torch.full)((), value, **how)


def _masked_fill(one: Any, mask: torch.Tensor, value: Any) -> Pair:
    one, number = pair_of(one), pair_of(value)
    return Pair(one.re.masked_fill(mask, number.re), one.im.masked_fill(mask, number.im))


def _padded(one: Pair, pads: Sequence[int], value: Any = 0) -> Pair:
    number = pair_of(value)
    parts = ((one.re, number.re), (one.im, number.im))
    return Pair(*(aten.constant_pad_nd.default(part, pads, fill) for part, fill in parts))


def _pad(one: Pair, pads: Sequence[int], mode: str = "constant", value: Any = None) -> Pair:
    if mode == "constant":
        return _padded(one, pads, value or 0)
    if mode == "circular":
        return Pair(*(_wrapped(part, pads) for part in (one.re, one.im)))
    return Pair(*(aten.pad.default(part, pads, mode) for part in (one.re, one.im)))


def _wrapped(part: torch.Tensor, pads: Sequence[int]) -> torch.Tensor:
    for axis, (before, after) in enumerate(zip(pads[::2], pads[1::2], strict=True), 1):
        size = part.shape[-axis]
        part = part.index_select(-axis, (torch.arange(before + size + after) - before) % size)
    return part


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
    "clone", "view", "reshape", "_unsafe_view", "permute", "transpose", "t", "expand", "slice", "select",
    "squeeze", "unsqueeze", "index", "gather", "cat", "stack", "sum", "mean", "cumsum", "neg", "flip", "roll",
    "repeat", "split", "split_with_sizes", "unbind", "index_select", "alias", "detach", "contiguous",
    "diagonal", "tril", "triu", "index_put", "scatter", "scatter_add", "index_add", "slice_scatter",
    "select_scatter", "copy", "embedding", "unfold", "as_strided", "movedim", "where", "diag_embed", "rot90",
    "trace", "take_along_dim", "masked_select", "repeat_interleave", "lift_fresh_copy", "lift_fresh",
    "nansum", "chunk", "constant_pad", "narrow", "hstack", "vstack", "flatten", "swapaxes", "index_fill",
    "diagonal_scatter", "_reshape_copy", "view_copy",
)  # fmt: skip

_PRODUCTS = ("mul", "mm", "bmm", "matmul", "dot", "mv", "outer")

_RULES: dict[Any, Callable[..., Any]] = {
    **FUNCTIONS,
    **MATRICES,
    **{getattr(aten, name): _each(getattr(aten, name)) for name in _MOVING if hasattr(aten, name)},
    **{getattr(aten, name): bilinear(getattr(aten, name)) for name in _PRODUCTS},
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
    aten.new_empty: _filled(aten.new_zeros),
    aten.new_ones: _filled(aten.new_ones),
    aten.full: _full(torch.full),
    aten.full_like: _full(torch.full_like),
    aten.new_full: _full(aten.new_full),
    aten.fill: _full(torch.full_like),
    aten.scalar_tensor: _scalar_tensor,
    aten.complex: _of_parts,
    aten.view_as_complex: lambda one: Pair(one.select(-1, 0), one.select(-1, 1)),
    aten.view_as_real: lambda one: torch.stack([one.re, one.im], -1),
    aten.sym_size: lambda one, dim: one.re.shape[dim],
    aten.sym_numel: lambda one: one.re.numel(),
    aten.real: lambda one: one.re if isinstance(one, Pair) else one,
    aten.imag: lambda one: one.im,
    aten.linear: _linear,
    aten.einsum: _einsum,
    aten.convolution: _convolution,
    aten._fft_c2c: _transformed,  # noqa: SLF001 - what fft of complex numbers becomes
    aten._fft_c2r: _signal,  # noqa: SLF001 - what irfft becomes
    aten._fft_r2c: spectrum,  # noqa: SLF001 - what rfft becomes
    aten.add: _add,
    aten.sub: _sub,
    aten.rsub: lambda one, other, *, alpha=1: _sub(other, one, alpha=alpha),
    aten.square: lambda one: one * one,
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
    aten.pad: _pad,
    aten.var: _var,
    aten.prod: _prod,
}  # fmt: skip
