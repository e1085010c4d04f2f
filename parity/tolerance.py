"""How far apart two values may be and still agree."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, TypeAlias

import ml_dtypes
import numpy as np

from entrepot.ir.arguments import NumberLike, as_flag, as_integer, as_number, expected
from entrepot.ir.errors import InputError

ToleranceLike: TypeAlias = "Tolerance | NumberLike | tuple[NumberLike, NumberLike] | Mapping[str, Any]"
"""What ``Tolerance.of`` accepts."""

DTypeClass = Literal["float", "complex", "integer", "bool", "string"]


@dataclass(frozen=True)
class Tolerance:
    """The rule ``|actual - expected| <= atol + rtol * |expected|``, element by element.

    Booleans and strings always agree exactly. Integers agree exactly too, unless ``steps`` says otherwise: a relative
    tolerance must not let index 5000 pass for 5001. Wherever a tolerance is expected, ``1e-3`` means
    ``Tolerance(atol=1e-3, rtol=1e-3)``, a pair ``Tolerance(atol, rtol)``, and a dict its keyword arguments.

    Attributes:
        atol: Absolute part.
        rtol: Part relative to the expected element.
        steps: Largest difference allowed between two integers (1 lets quantised values round either way).
        scaled: ``atol`` is in units of the expected tensor's ``typical_magnitude``.
    """

    atol: float = 0.0
    rtol: float = 0.0
    steps: int = 0
    scaled: bool = False

    def __post_init__(self) -> None:
        """Refuse a tolerance that would let everything pass, or nothing."""
        for name in ("atol", "rtol"):
            object.__setattr__(self, name, as_number(getattr(self, name), f"tolerance {name}"))
        object.__setattr__(self, "steps", as_integer(self.steps, "tolerance steps", least=0))
        object.__setattr__(self, "scaled", as_flag(self.scaled, "tolerance scaled"))

    @classmethod
    def of(cls, given: Any) -> Tolerance | None:
        """The tolerance that is meant; ``None``, which means the default of each dtype, stays ``None``.

        Args:
            given: A tolerance; a number for both parts; ``(atol, rtol)``; or a dict of keyword arguments.

        Raises:
            InputError: It is none of these.
        """
        if given is None or isinstance(given, Tolerance):
            return given
        if isinstance(given, Mapping) and given and set(given) <= {field.name for field in fields(cls)}:
            return cls(**given)
        if isinstance(given, list | tuple) and len(given) == 2:
            return cls(*given)
        if isinstance(given, list | tuple | Mapping):
            raise expected("tolerance", "(atol, rtol) or a dict of atol, rtol and steps", given)
        both = as_number(given, "tolerance", hint="1e-3, (atol, rtol), or ep.Tolerance(atol=1e-5, rtol=1e-3)")
        return cls(both, both)

    def at_scale(self, scale: NumberLike) -> Tolerance:
        """The same rule with an absolute ``atol``, for a tensor whose typical magnitude is ``scale``."""
        return replace(self, atol=self.atol * as_number(scale, "scale"), scaled=False) if self.scaled else self


def default_tolerance(dtype: np.dtype) -> Tolerance:
    """The tolerance for results of one dtype when the caller names none.

    ``atol`` follows the tensor: probabilities around 1e-5 are not waved through by an absolute 1e-4, and a zero
    among logits of 1000 is not asked to be exact to 1e-5. A float32 network sums thousands of terms in float32, hence
    about 1000 eps; half precision formats are rounded after each operation but summed in float32, hence about 10 eps;
    an 8-bit or 4-bit float may be rounded to the neighbouring value.

    ============================ ======================== =============================
    dtype                        rtol                     atol, times the typical magnitude
    ============================ ======================== =============================
    float64, complex128          1e-9                     1e-10
    float32, complex64           1e-4                     2e-5
    float16, bfloat16            10 eps (1e-2, 8e-2)      10 eps
    float8, float4               eps                      smallest subnormal, absolute
    integers, booleans, strings  exact                    exact
    ============================ ======================== =============================
    """
    if classify(dtype) not in {"float", "complex"}:
        return Tolerance(0.0, 0.0)
    if dtype.name in _WIDE:
        return _WIDE[dtype.name]
    limits: Any = ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
    eps = float(limits.eps)
    if limits.bits < 16:
        return Tolerance(atol=float(limits.smallest_subnormal), rtol=eps)
    return Tolerance(atol=10 * eps, rtol=10 * eps, scaled=True)


_WIDE = {
    "float64": Tolerance(atol=1e-10, rtol=1e-9, scaled=True),
    "complex128": Tolerance(atol=1e-10, rtol=1e-9, scaled=True),
    "float32": Tolerance(atol=2e-5, rtol=1e-4, scaled=True),
    "complex64": Tolerance(atol=2e-5, rtol=1e-4, scaled=True),
}


def least_exact(dtypes: Iterable[np.dtype]) -> np.dtype | None:
    """The least exact of the types of half precision, in which networks are computed; ``None`` if there is none."""
    half = [dtype for dtype in map(np.dtype, set(dtypes)) if dtype.name in ("float16", "bfloat16")]
    return max(half, key=lambda dtype: default_tolerance(dtype).rtol, default=None)


def classify(dtype: np.dtype) -> DTypeClass:
    """How a dtype is compared; ml_dtypes are recognised by their number format, not by NumPy's kind.

    Raises:
        InputError: No model has results of this dtype.
    """
    by_kind = _KINDS.get(dtype.kind)
    if by_kind is not None:
        return by_kind
    for limits, found in _FORMATS:
        try:
            limits(dtype)
        except ValueError:
            continue
        return found
    raise InputError(f"values of dtype {dtype} cannot be compared", hint="convert them to numbers or strings")


_FORMATS: tuple[tuple[type, DTypeClass], ...] = ((ml_dtypes.finfo, "float"), (ml_dtypes.iinfo, "integer"))
_KINDS: dict[str, DTypeClass] = {
    "f": "float",
    "c": "complex",
    "i": "integer",
    "u": "integer",
    "b": "bool",
    "O": "string",
    "U": "string",
    "T": "string",
}


def dtype_name(dtype: np.dtype) -> str:
    """``float32``, ``bfloat16``, …; every way NumPy stores text is ``string``."""
    return "string" if classify(dtype) == "string" else dtype.name
