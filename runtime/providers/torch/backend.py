"""The backend protocol over torch: what the shared meanings run on for the torch provider, and for imported modules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from entrepot.runtime.kernels.backend import Array
from entrepot.runtime.providers.torch import integers, moving
from entrepot.runtime.providers.torch.dtypes import NUMPY, WIDE, tensor_of, torch_dtype
from entrepot.runtime.providers.torch.moving import claim, claim_product
from entrepot.runtime.providers.torch.unsigned import chosen, divided, from_ordered, moved, ordered, wrapping
from entrepot.runtime.providers.torch.uploads import uploaded

_tile = moved(torch.tile)


class TorchBackend:
    """Torch's functions under the protocol's names; only where the two differ is anything written out.

    Args:
        device: Where arrays are made that are not made from others. All else happens where the operands are.
    """

    name = "torch"

    def __init__(self, device: torch.device | str = "cpu") -> None:
        self.device = torch.device(device)

    # making arrays
    def asarray(self, value: Any, dtype: np.dtype[Any] | None = None) -> Array:
        """A tensor with the values of a tensor, a NumPy array, numbers or lists of them."""
        if isinstance(value, Tensor):
            return value if dtype is None else self.astype(value, dtype)
        array = np.asarray(value, dtype)
        return tensor_of(array) if self.device.type == "cpu" else uploaded(array, self.device)

    @staticmethod
    def scalar(value: float, *, like: Array) -> Array:
        """A 0-d array of ``like``'s dtype, where ``like`` is."""
        return torch.full((), value, dtype=like.dtype, device=like.device)

    def full(self, shape: Sequence[int], value: Any, dtype: np.dtype[Any]) -> Array:
        """One value everywhere."""
        claim(shape, dtype.itemsize)
        number = value.item() if isinstance(value, np.ndarray | np.generic) else value
        return torch.full(tuple(shape), number, dtype=torch_dtype(dtype), device=self.device)

    def arange(self, start: Any, stop: Any, step: Any, dtype: np.dtype[Any]) -> Array:
        """Integers from ``start`` up to ``stop``."""
        if all(type(bound) is int for bound in (start, stop, step)):
            claim((len(range(start, stop, step)),))
            stop = start + len(range(start, stop, step)) * step  # torch refuses a step that leads away
        return torch.arange(start, stop, step, dtype=torch_dtype(dtype), device=self.device)

    # asking arrays
    @staticmethod
    def shape(x: Array) -> tuple[int, ...]:
        """Its sizes."""
        return x.shape

    @staticmethod
    def dtype(x: Array) -> np.dtype[Any]:
        """Its element type, as NumPy calls it."""
        return NUMPY[x.dtype]

    # element types
    @staticmethod
    def astype(x: Array, dtype: np.dtype[Any]) -> Array:
        """Convert as torch does, and from what overflows float8e4m3fn, which torch saturates, make NaN."""
        kind = torch_dtype(dtype)
        return x.to(kind) if kind is not torch.float8_e4m3fn else _to_float8(x)

    @staticmethod
    def bitcast(x: Array, dtype: np.dtype[Any]) -> Array:
        """The same bits as another element type."""
        return x.view(torch_dtype(dtype))

    # shape and movement
    @staticmethod
    def reshape(x: Array, shape: Sequence[int]) -> Array:
        """The same elements in another shape."""
        return x.reshape(tuple(shape))

    @staticmethod
    def transpose(x: Array, axes: Sequence[int] | None = None) -> Array:
        """The axes in another order; reversed without one."""
        return x.permute(tuple(axes) if axes is not None else tuple(range(x.ndim))[::-1])

    expand_dims = staticmethod(moving.expand_dims)
    squeeze = staticmethod(moving.squeeze)

    @staticmethod
    def broadcast_to(x: Array, shape: Sequence[int]) -> Array:
        """A view in which axes of one entry are repeated."""
        claim(shape, x.element_size())
        return x.expand(tuple(shape))

    @staticmethod
    def concat(xs: Sequence[Array], axis: int) -> Array:
        """One after the other."""
        return torch.cat(tuple(xs), axis) if xs[0].ndim else torch.stack(tuple(xs), axis)

    @staticmethod
    def stack(xs: Sequence[Array], axis: int) -> Array:
        """Side by side, along a new axis."""
        return torch.stack(tuple(xs), axis)

    @staticmethod
    def split(x: Array, sizes: Sequence[int], axis: int) -> tuple[Array, ...]:
        """Parts of these sizes."""
        return torch.split(x, list(sizes), axis) if len(sizes) else ()

    @staticmethod
    def flip(x: Array, axis: int) -> Array:
        """One axis backwards."""
        return moving.flip(x, (axis,))

    @staticmethod
    def tile(x: Array, repeats: Sequence[int]) -> Array:
        """Each axis repeated as a whole."""
        claim([size * count for size, count in zip(x.shape, repeats, strict=True)], x.element_size())
        return _tile(x, tuple(repeats))

    pad = staticmethod(moving.pad)

    # picking and placing
    take = staticmethod(moving.take)
    take_along_axis = staticmethod(moving.take_along_axis)
    index = staticmethod(moving.index)
    scatter = staticmethod(moving.scatter)

    where = staticmethod(chosen)

    @staticmethod
    def nonzero(x: Array) -> tuple[Array, ...]:
        """The coordinates of what is not zero."""
        return torch.nonzero(x if x.dtype not in WIDE else ordered(x) != torch.iinfo(WIDE[x.dtype]).min, as_tuple=True)

    # elementwise
    @staticmethod
    def abs(x: Array) -> Array:
        """The absolute value."""
        return x if x.dtype in WIDE else torch.abs(x)

    @staticmethod
    def sign(x: Array) -> Array:
        """-1, 0 or 1; NaN stays."""
        if x.dtype in WIDE:
            return (x != 0).to(x.dtype)
        return torch.where(torch.isnan(x), x, torch.sign(x)) if x.is_floating_point() else torch.sign(x)

    exp = staticmethod(torch.exp)
    expm1 = staticmethod(torch.expm1)
    log = staticmethod(torch.log)
    log1p = staticmethod(torch.log1p)
    sqrt = staticmethod(torch.sqrt)
    erf = staticmethod(torch.erf)
    sin = staticmethod(torch.sin)
    cos = staticmethod(torch.cos)
    tan = staticmethod(torch.tan)
    asin = staticmethod(torch.asin)
    acos = staticmethod(torch.acos)
    atan = staticmethod(torch.atan)
    sinh = staticmethod(torch.sinh)
    cosh = staticmethod(torch.cosh)
    tanh = staticmethod(torch.tanh)
    asinh = staticmethod(torch.asinh)
    acosh = staticmethod(torch.acosh)
    atanh = staticmethod(torch.atanh)
    floor = staticmethod(torch.floor)
    ceil = staticmethod(torch.ceil)
    rint = staticmethod(torch.round)
    isnan = staticmethod(torch.isnan)

    @staticmethod
    def isinf(x: Array) -> Array:
        """Of bytes, too, which devices do not compare."""
        return torch.isinf(x.float() if x.element_size() == 1 else x)

    @staticmethod
    def minimum(x: Array, y: Array) -> Array:
        """Elementwise; NaN wins."""
        if x.dtype not in WIDE:
            return torch.minimum(x, y)
        return from_ordered(torch.minimum(ordered(x), ordered(y)), x.dtype)

    @staticmethod
    def maximum(x: Array, y: Array) -> Array:
        """Elementwise; NaN wins."""
        if x.dtype not in WIDE:
            return torch.maximum(x, y)
        return from_ordered(torch.maximum(ordered(x), ordered(y)), x.dtype)

    @staticmethod
    def power(x: Array, y: Array) -> Array:
        """In ``x``'s dtype."""
        return wrapping(torch.pow, x, y.to(x.dtype))

    @staticmethod
    def fmod(x: Array, y: Array) -> Array:
        """Remainder with the sign of ``x``."""
        return divided(x, y)[1] if x.dtype in WIDE else torch.fmod(x, y)

    # reductions
    @staticmethod
    def sum(x: Array, axis: tuple[int, ...], *, keepdims: bool = False) -> Array:
        """In ``x``'s dtype."""
        if not axis:
            return x
        return wrapping(lambda x: torch.sum(x, axis, keepdim=keepdims, dtype=x.dtype), x)

    @staticmethod
    def prod(x: Array, axis: tuple[int, ...], *, keepdims: bool = False) -> Array:
        """In ``x``'s dtype."""
        for along in sorted((each % x.ndim for each in axis), reverse=True):
            x = wrapping(lambda x, along=along: torch.prod(x, along, keepdim=keepdims, dtype=x.dtype), x)
        return x

    @staticmethod
    def max(x: Array, axis: tuple[int, ...], *, keepdims: bool = False) -> Array:
        """The largest; what never wins, of nothing."""
        return _extreme(torch.amax, x, axis, keepdims, lowest)

    @staticmethod
    def min(x: Array, axis: tuple[int, ...], *, keepdims: bool = False) -> Array:
        """The smallest; what never wins, of nothing."""
        return _extreme(torch.amin, x, axis, keepdims, highest)

    @staticmethod
    def argmax(x: Array, axis: int) -> Array:
        """The first of the largest."""
        return torch.argmax(ordered(x), axis)

    @staticmethod
    def argmin(x: Array, axis: int) -> Array:
        """The first of the smallest."""
        return torch.argmin(ordered(x), axis)

    @staticmethod
    def cumsum(x: Array, axis: int) -> Array:
        """In ``x``'s dtype."""
        return wrapping(lambda x: torch.cumsum(x, axis, dtype=x.dtype), x)

    @staticmethod
    def cumprod(x: Array, axis: int) -> Array:
        """In ``x``'s dtype."""
        return wrapping(lambda x: torch.cumprod(x, axis, dtype=x.dtype), x)

    @staticmethod
    def argsort(x: Array, axis: int, *, descending: bool = False) -> Array:
        """Stable both ways; NaN sorts as the largest."""
        return torch.argsort(ordered(x), dim=axis, descending=descending, stable=True)

    # linear algebra
    @staticmethod
    def matmul(x: Array, y: Array) -> Array:
        """The product of the last two axes, the others broadcast."""
        claim_product(x, y)
        return wrapping(integers.matmul if _lacks_products(x) else torch.matmul, x, y)

    @staticmethod
    def einsum(equation: str, xs: Sequence[Array]) -> Array:
        """A sum of products, by the names of the axes."""
        claim(_einsum_shape(equation, xs), 8)
        function = partial(torch.einsum, equation)
        if _lacks_products(xs[0]) and len(xs) == 2:
            return wrapping(partial(integers.bilinear, function), *xs)
        return wrapping(function, *xs)


def _lacks_products(x: Tensor) -> bool:
    """Whether libraries multiply no matrices of this type where it is."""
    return x.device.type not in ("cpu", "meta") and not (x.is_floating_point() or x.is_complex())


def _extreme(
    function: Callable[..., Tensor], x: Tensor, axis: tuple[int, ...], keepdims: bool, neutral: Callable[..., Any]
) -> Tensor:
    if not axis:
        return x
    if any(x.shape[each] == 0 for each in axis):
        shape = torch.sum(torch.zeros((), device=x.device).expand(x.shape), axis, keepdim=keepdims).shape
        return torch.full(shape, neutral(x.dtype), dtype=x.dtype, device=x.device)
    return from_ordered(function(ordered(x), axis, keepdim=keepdims), x.dtype)


_MOST = 464.0
"""The largest number that rounds to one of float8e4m3fn."""


def _to_float8(x: Tensor) -> Tensor:
    if not x.is_floating_point() or x.dtype.itemsize == 1:
        x = x.to(torch.float32)
    bits = x.to(torch.float8_e4m3fn).view(torch.uint8)
    return torch.where(x.abs() <= _MOST, bits, bits | 0x7F).view(torch.float8_e4m3fn)


def lowest(dtype: torch.dtype) -> Any:
    """What never wins a maximum."""
    if dtype is torch.bool:
        return False
    return -float("inf") if dtype.is_floating_point else torch.iinfo(dtype).min


def highest(dtype: torch.dtype) -> Any:
    """What never wins a minimum."""
    if dtype is torch.bool:
        return True
    return float("inf") if dtype.is_floating_point else torch.iinfo(dtype).max


def _einsum_shape(equation: str, xs: Sequence[Tensor]) -> tuple[int, ...]:
    """Sizes of the named axes of a result; those that dots stand for are as large as those of the operands."""
    terms, _, result = equation.replace(" ", "").partition("->")
    sizes: dict[str, int] = {}
    for term, x in zip(terms.split(","), xs, strict=False):
        names, dots, rest = term.partition("...")
        sizes.update(zip(names, x.shape, strict=False))
        sizes.update(zip(rest[::-1], x.shape[::-1] if dots else (), strict=False))
    return tuple(sizes.get(name, 1) for name in result.replace(".", ""))


TORCH = TorchBackend()
"""On the host's memory."""
