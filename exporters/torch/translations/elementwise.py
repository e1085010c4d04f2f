"""Functions of each element, of pairs of elements and of all, which torch.onnx (2.13) does not translate."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere

from entrepot.exporters.torch.translations.precision import floating
from entrepot.exporters.torch.translations.scalars import of_tensors

aten = torch.ops.aten


def rsub(input: torch.Tensor, other: Any, *, alpha: float = 1) -> torch.Tensor:
    """``other - alpha * input``; torch's own decomposition fails for ``1.0 - integers``."""
    return other - alpha * input.to(torch.result_type(input, other))


def fmax(input: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """The larger of each pair, or the other one where one is NaN."""
    return torch.maximum(torch.where(input.isnan(), other, input), torch.where(other.isnan(), input, other))


def fmin(input: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """The smaller of each pair, or the other one where one is NaN."""
    return torch.minimum(torch.where(input.isnan(), other, input), torch.where(other.isnan(), input, other))


def hypot(input: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """sqrt(x² + y²), in double precision against overflow, which double precision itself is scaled against."""
    kind = torch.promote_types(input.dtype, other.dtype)
    if kind == torch.float64:
        length = _scaled_length(input, other)
    else:
        x, y = input.double(), other.double()
        length = (x * x + y * y).sqrt().to(kind)
    return torch.where(input.isinf() | other.isinf(), torch.inf, length)


def _scaled_length(input: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    larger, smaller = torch.maximum(input.abs(), other.abs()), torch.minimum(input.abs(), other.abs())
    ratio = smaller / torch.where(larger == 0, torch.ones_like(larger), larger)
    return larger * (1 + ratio * ratio).sqrt()


@floating
def logit(input: torch.Tensor, eps: float | None = None) -> torch.Tensor:
    """The inverse of the sigmoid; NaNs stay NaNs."""
    x = input
    if eps is not None:
        x = torch.where(x < eps, eps, x)
        x = torch.where(x > 1 - eps, 1 - eps, x)
    return (x / (1 - x)).log()


def power(input: torch.Tensor, exponent: Any) -> Any:
    """Of truth values, as of numbers; to a size, as to a tensor."""
    if isinstance(exponent, torch.SymInt | torch.SymFloat):
        return of_tensors(torch.pow)(input, exponent)
    if input.dtype != torch.bool:
        return NotImplemented
    return input.to(torch.int64 if isinstance(exponent, int) else torch.get_default_dtype()) ** exponent


def rounded(input: torch.Tensor) -> Any:
    """Whole numbers as they are; torch.onnx (2.13) makes floats of them."""
    return NotImplemented if input.is_floating_point() else input.clone()


def isclose(
    input: torch.Tensor, other: torch.Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> Any:
    """Of truth values, which cannot be subtracted, those that are equal; whole numbers are compared as floats, too."""
    if input.is_floating_point() or input.is_complex():
        return NotImplemented
    if input.dtype == torch.bool:
        return input == other
    kind = torch.get_default_dtype()
    return (input == other) | torch.isclose(input.to(kind), other.to(kind), rtol, atol, equal_nan)


def xlogy(input: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """The product x log(y), 0 for an x of 0 unless y is NaN."""
    product = torch.where(input == 0, 0.0, input * other.log())
    return torch.where(other.isnan(), other, product) if other.is_floating_point() else product


@floating
def lerp(input: torch.Tensor, end: torch.Tensor, weight: Any) -> torch.Tensor:
    """From ``input`` to ``end`` by ``weight``, counted from the nearer of them."""
    gap = end - input
    from_start, from_end = input + weight * gap, end - gap * (1 - weight)
    if isinstance(weight, torch.Tensor):
        return torch.where(weight.abs() < 0.5, from_start, from_end)
    return from_start if abs(weight) < 0.5 else from_end


def isin(elements: Any, test_elements: Any, *, assume_unique: bool = False, invert: bool = False) -> Any:
    """Whether each element is among others; all pairs are compared."""
    if not isinstance(elements, torch.Tensor):
        return NotImplemented
    if not isinstance(test_elements, torch.Tensor):
        return elements != test_elements if invert else elements == test_elements
    if test_elements.shape.numel() == 0:  # onnxruntime (1.31) loses the shape of a sum of nothing
        return torch.full_like(elements, invert, dtype=torch.bool)
    found = (elements.unsqueeze(-1) == test_elements.reshape(-1)).any(-1)
    return ~found if invert else found


def gcd(input: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """The greatest common divisor; Euclid's algorithm, with as many steps as the widest type may need."""
    a, b = torch.broadcast_tensors(input.abs(), other.abs())
    for _ in range({8: 13, 16: 24, 32: 47}.get(torch.iinfo(a.dtype).bits, 93)):
        a, b = b.where(b != 0, a), torch.where(b != 0, a % b.where(b != 0, torch.ones_like(b)), b)
    return a


def lcm(input: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """The least common multiple."""
    divisor = gcd(input, other)
    return (input // divisor.clamp(min=1) * other).abs()


def relu(input: torch.Tensor) -> Any:
    """Nothing below zero, of whole numbers: onnxruntime (1.31) has no ``Relu`` of most kinds of them."""
    return NotImplemented if input.is_floating_point() else input.clamp(min=0)


def rrelu(
    input: torch.Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False, inplace: bool = False
) -> torch.Tensor:
    """In evaluation mode, a leaky ReLU with the mean slope."""
    if training:
        return F.rrelu(input, lower, upper, training, inplace)
    return F.leaky_relu(input, (lower + upper) / 2)


def _rrelu(input: torch.Tensor, lower: float, upper: float, training: bool = False, generator: Any = None) -> Any:
    return NotImplemented if training else rrelu(input, lower, upper)


def aminmax(input: torch.Tensor, *, dim: int | None = None, keepdim: bool = False) -> Any:
    """The smallest and the largest element."""
    axes: Any = tuple(range(input.dim())) if dim is None else dim
    return torch.return_types.aminmax((input.amin(axes, keepdim), input.amax(axes, keepdim)))


def cov(
    input: torch.Tensor, *, correction: int = 1, fweights: torch.Tensor | None = None, aweights: Any = None
) -> torch.Tensor:
    """Covariances of rows."""
    if fweights is not None or aweights is not None or input.dim() != 2:
        return torch.cov(input, correction=correction, fweights=fweights, aweights=aweights)
    centred = input - input.mean(1, keepdim=True)
    return centred @ centred.mH / (input.shape[1] - correction)


def corrcoef(input: torch.Tensor) -> torch.Tensor:
    """Correlations of rows."""
    if input.dim() != 2:
        return torch.corrcoef(input)
    table = cov(input)
    spread = (table.diagonal().real if table.is_complex() else table.diagonal()).sqrt()
    result = table / spread[:, None] / spread[None]
    return (
        torch.view_as_complex(torch.view_as_real(result).clamp(-1, 1)) if result.is_complex() else result.clamp(-1, 1)
    )


def grouped_mm(input: torch.Tensor, weight: torch.Tensor, offs: torch.Tensor | None = None, **how: Any) -> torch.Tensor:
    """Rows of ``input``, in groups that end at ``offs``, each group by its own matrix."""
    if offs is None or input.dim() != 2 or weight.dim() != 3:
        return F.grouped_mm(input, weight, offs=offs, **how)
    place = torch.arange(input.shape[0]).unsqueeze(0)
    begins = F.pad(offs[:-1], (1, 0)).unsqueeze(-1)
    inside = (place >= begins) & (place < offs.unsqueeze(-1))
    return (input.unsqueeze(0).masked_fill(~inside.unsqueeze(-1), 0) @ weight).sum(0)


def _methods(*functions: Any) -> dict[Any, Any]:
    """Replacements of functions of torch and of the methods of the same name."""
    return {
        original: function
        for function in functions
        for original in (getattr(torch, function.__name__), getattr(torch.Tensor, function.__name__))
    }


DECOMPOSITIONS = {
    aten.fmax.default: fmax,
    aten.fmin.default: fmin,
    aten.gcd.default: gcd,
    aten.hypot.default: hypot,
    aten.isclose.default: isclose,
    aten.isin.Tensor_Scalar: isin,
    aten.isin.Tensor_Tensor: isin,
    aten.lcm.default: lcm,
    aten.lerp.Scalar: lerp,
    aten.lerp.Tensor: lerp,
    aten.logit.default: logit,
    aten.pow.Tensor_Scalar: power,
    aten.round.default: rounded,
    aten.relu.default: relu,
    aten.rrelu.default: _rrelu,
    aten.xlogy.Tensor: xlogy,
}
REPLACEMENTS: dict[Any, Any] = {
    torch.Tensor.__rsub__: rsub,
    torch.rsub: rsub,
    F.rrelu: rrelu,
    F.grouped_mm: grouped_mm,
    torch._grouped_mm: grouped_mm,  # noqa: SLF001 - what F.grouped_mm calls without asking
    # what transformers (5.23) captures in place of F.grouped_mm: a loop over the values of its offsets
    "transformers::grouped_mm_fallback": grouped_mm,
    **_methods(aminmax, cov, corrcoef),
}
