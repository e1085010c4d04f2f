"""Functions whose arguments or results count something, kept general where torch.export (2.13) fixes the count."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere

from entrepot.exporters.torch.rewriting.environment import hint


def linspace(start: Any, end: Any, steps: Any, **how: Any) -> torch.Tensor:
    """``steps`` numbers from ``start`` to ``end``."""
    dtype = how.get("dtype") or torch.get_default_dtype()
    if isinstance(steps, int) or not dtype.is_floating_point or how.get("out") is not None:
        return torch.linspace(start, end, steps, **how)
    return (start + torch.arange(steps, dtype=dtype) * ((end - start) / torch.sym_max(steps - 1, 1))).to(dtype)


def logspace(start: Any, end: Any, steps: int, base: float = 10.0, **how: Any) -> torch.Tensor:
    """``base`` to the power of ``steps`` numbers from ``start`` to ``end``."""
    if isinstance(steps, int):
        return torch.logspace(start, end, steps, base, **how)
    return torch.pow(base, linspace(start, end, steps, **how))


def chunk(input: torch.Tensor, chunks: int, dim: int = 0) -> Any:
    """Two halves; other numbers of chunks depend on the size in ways that a graph cannot follow."""
    size: Any = input.shape[dim]
    if chunks != 2 or isinstance(size, int):
        return torch.chunk(input, chunks, dim)
    half = (size + 1) // 2
    return input.narrow(dim, 0, half), input.narrow(dim, half, size - half)


def affine_grid(theta: torch.Tensor, size: Sequence[int], align_corners: bool | None = None) -> torch.Tensor:
    """Sampling points of an affine map for ``grid_sample``: [batch, (depth,) height, width, 2 or 3]."""
    axes = [_places(count, bool(align_corners), theta.dtype) for count in reversed(size[2:])]
    shape = [size[0], *size[2:]]
    parts = [
        axis.reshape([-1 if place == len(shape) - 1 - index else 1 for place in range(len(shape))]).expand(shape)
        for index, axis in enumerate(axes)
    ]
    base = torch.stack([*parts, torch.ones_like(parts[0])], -1)
    flat = base.reshape(size[0], -1, len(parts) + 1) @ theta.mT
    return flat.reshape([*shape, len(parts)])


def _places(count: Any, align_corners: bool, dtype: torch.dtype) -> torch.Tensor:
    place = torch.arange(count, dtype=dtype)
    if align_corners:
        return place * (2 / torch.sym_max(count - 1, 1)) - (1 if not isinstance(count, int) or count > 1 else 0)
    return (2 * place + 1) / count - 1


def fftfreq(n: Any, d: float = 1.0, **how: Any) -> torch.Tensor:
    """The frequencies of a Fourier transform: 0, 1, ..., and the negative ones."""
    place = torch.arange(n)
    return _frequencies(torch.where(place < (n + 1) // 2, place, place - n), n, d, how)


def rfftfreq(n: Any, d: float = 1.0, **how: Any) -> torch.Tensor:
    """The frequencies of one of real numbers, which are not negative."""
    return _frequencies(torch.arange(n // 2 + 1), n, d, how)


def _frequencies(steps: torch.Tensor, n: Any, d: float, how: dict[str, Any]) -> torch.Tensor:
    return steps.to(how.get("dtype") or torch.get_default_dtype()) * (1.0 / (n * d))


def roll(input: torch.Tensor, shifts: Sequence[Any], dims: Sequence[int] = ()) -> Any:
    """Elements moved on by numbers that depend on a size, as in ``fftshift``; torch.onnx (2.13) takes constants."""
    return NotImplemented if all(isinstance(shift, int) for shift in shifts) else _moved_on(input, shifts, dims)


def _rolled(plain: Callable[..., torch.Tensor], input: torch.Tensor, shifts: Any, dims: Any = ()) -> torch.Tensor:
    """The same of rows that data count: torch (2.13) asks first whether there are any."""
    if all(hint(size) is not None for size in input.shape):
        return plain(input, shifts, dims)
    return _moved_on(input, _listed(shifts), _listed(dims))


def _centred(
    plain: Callable[..., torch.Tensor], half: Callable[[Any], Any], input: torch.Tensor, dim: Any = None
) -> Any:
    """The first elements in the middle, or back again, of sizes that data or other sizes make."""
    if all(hint(size) is not None for size in input.shape):
        return plain(input, dim)
    dims = range(input.dim()) if dim is None else _listed(dim)
    return _moved_on(input, [half(input.shape[each]) for each in dims], dims)


def _moved_on(input: torch.Tensor, shifts: Sequence[Any], dims: Sequence[int]) -> torch.Tensor:
    if not dims:
        return _moved_on(input.reshape(-1), shifts, [0]).reshape(input.shape)
    for shift, dim in zip(shifts, dims, strict=True):
        size: Any = input.shape[dim]
        input = input.index_select(dim, (torch.arange(size) - shift) % size)  # noqa: A001 - one by one
    return input


def _listed(numbers: Any) -> Sequence[Any]:
    return numbers if isinstance(numbers, tuple | list) else [numbers]


DECOMPOSITIONS: dict[Any, Any] = {
    torch.ops.aten.fft_fftfreq.default: fftfreq,
    torch.ops.aten.fft_rfftfreq.default: rfftfreq,
    torch.ops.aten.roll.default: roll,
}
REPLACEMENTS: dict[Any, Any] = {
    torch.linspace: linspace,
    torch.logspace: logspace,
    torch.chunk: chunk,
    torch.Tensor.chunk: chunk,
    F.affine_grid: affine_grid,
    torch.fft.fftshift: functools.partial(_centred, torch.fft.fftshift, lambda size: size // 2),
    torch.fft.ifftshift: functools.partial(_centred, torch.fft.ifftshift, lambda size: (size + 1) // 2),
} | {form: functools.partial(_rolled, form) for form in (torch.roll, torch.Tensor.roll)}
