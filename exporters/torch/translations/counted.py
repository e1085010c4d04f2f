"""Windows, frequencies and classes as many as a size or data say; torch (2.13) takes those numbers as constants."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere

from entrepot.exporters.torch.translations.sizes import fftfreq, rfftfreq


def _general(plain: Callable[..., Any], form: Callable[..., Any]) -> Callable[..., Any]:
    """``plain`` where all arguments are numbers, ``form`` where there is a size that varies."""

    def counted(*args: Any, **kwargs: Any) -> Any:
        varies = any(isinstance(each, torch.SymInt) for each in (*args, *kwargs.values()))
        return (form if varies else plain)(*args, **kwargs)

    return counted


def _cosines(*factors: float) -> Callable[..., torch.Tensor]:
    def window(window_length: Any, periodic: bool = True, *, dtype: Any = None, **how: Any) -> torch.Tensor:
        angle = _turns(window_length, periodic, dtype) * (2 * math.pi)
        terms = [factor * torch.cos(angle * order) for order, factor in enumerate(factors)]
        return sum(terms[1:], terms[0])

    return window


def hamming_window(
    window_length: Any, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, **how: Any
) -> torch.Tensor:
    """A raised cosine."""
    return _cosines(alpha, -beta)(window_length, periodic, **how)


def bartlett_window(window_length: Any, periodic: bool = True, *, dtype: Any = None, **how: Any) -> torch.Tensor:
    """A triangle."""
    return 1 - (2 * _turns(window_length, periodic, dtype) - 1).abs()


def kaiser_window(
    window_length: Any, periodic: bool = True, beta: float = 12.0, *, dtype: Any = None, **how: Any
) -> torch.Tensor:
    """By the modified Bessel function of order 0."""
    place = 2 * _turns(window_length, periodic, dtype) - 1
    return torch.special.i0(beta * (1 - place.square()).clamp(min=0).sqrt()) / torch.special.i0(
        torch.tensor(beta, dtype=place.dtype)
    )


def _turns(count: Any, periodic: bool, dtype: torch.dtype | None) -> torch.Tensor:
    """From 0 to 1, which a periodic window does not reach; a single sample is the middle."""
    last = torch.sym_max(count if periodic else count - 1, 1)
    return torch.arange(count, dtype=dtype or torch.get_default_dtype()) / last + 0.5 * torch.sym_max(2 - count, 0)


def one_hot(tensor: torch.Tensor, num_classes: Any = -1) -> torch.Tensor:
    """A class as a row with a one at its place; the largest number may say how many there are."""
    if isinstance(num_classes, int) and num_classes != -1:
        return F.one_hot(tensor, num_classes)
    wanted: Any = tensor.max() + 1 if isinstance(num_classes, int) else num_classes
    count = wanted.item() if isinstance(wanted, torch.Tensor) else wanted
    torch._check(count >= 0)  # noqa: SLF001 - nothing else says of a number of data that it is a size
    return (tensor.unsqueeze(-1) == torch.arange(count)).to(torch.int64)


def bincount(input: torch.Tensor, weights: torch.Tensor | None = None, minlength: Any = 0) -> torch.Tensor:
    """How often each number occurs, for numbers below a size: what is not would be no index of the result."""
    counted = torch.ones_like(input) if weights is None else weights
    return torch.zeros(minlength, dtype=counted.dtype).index_add(0, input, counted)


REPLACEMENTS: dict[Any, Any] = {
    torch.fft.fftfreq: _general(torch.fft.fftfreq, fftfreq),
    torch.fft.rfftfreq: _general(torch.fft.rfftfreq, rfftfreq),
    torch.hann_window: _cosines(0.5, -0.5),
    torch.hamming_window: hamming_window,
    torch.blackman_window: _cosines(0.42, -0.5, 0.08),
    torch.bartlett_window: bartlett_window,
    torch.kaiser_window: kaiser_window,
    F.one_hot: one_hot,
    torch.bincount: _general(torch.bincount, bincount),
    torch.Tensor.bincount: _general(torch.bincount, bincount),
}
