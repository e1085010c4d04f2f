"""The BLAS that multiplies: NumPy's own, or for large products a second copy of it with wider vectors.

OpenBLAS chooses its kernels by the name of the processor when it is loaded, and on many AMD machines with AVX-512 it
takes those of Haswell, at half the speed. ``OPENBLAS_CORETYPE`` corrects that only before NumPy is imported, which is
done long before anybody imports us. So NumPy's library is opened once more, as a file in memory, with the right kernels
and one thread; the first one, NumPy and the user's environment stay as they are. ``ENTREPOT_BLAS=numpy`` turns it off,
``ENTREPOT_BLAS=copy`` asks for a copy wherever one can be made.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from entrepot.ir.errors import InputError
from entrepot.runtime.blas_copy import CORE_VARIABLE, Copy

Array: TypeAlias = np.ndarray[Any, Any]

SWITCH = "ENTREPOT_BLAS"
WIDE = "SkylakeX"
"""OpenBLAS' kernels for every processor with AVX-512."""

_WIDE_CORES = {"skylakex", "cooperlake", "sapphirerapids"}
_WIDE_FEATURES = {"X86_V4", "AVX512_SKX"}
_WORTH = 1 << 20
"""Multiplications that make up for a call through ctypes, a few microseconds."""
_NARROW = 4
"""Up to so many rows or columns a product is bound by memory, whatever the kernels."""


@dataclass(frozen=True)
class Choice:
    """What multiplies large matrices, and why.

    Attributes:
        library: Name and version of NumPy's BLAS, empty if unknown.
        core: The processor whose kernels it uses, as it says itself; empty if it does not say.
        wanted: The kernels that a copy should use, empty where NumPy's own library is right.
        remark: Why no copy is used although one would be faster; empty otherwise.
    """

    library: str
    core: str = ""
    wanted: str = ""
    remark: str = ""

    def __str__(self) -> str:
        """One line for people."""
        named = " ".join(filter(None, (self.library or "an unknown BLAS", f"({self.core} kernels)" * bool(self.core))))
        if self.remark:
            return f"{named}; {self.remark}"
        return f"{named}; large products by a copy of it with {self.wanted} kernels" if self.wanted else named


def choose(
    libraries: Sequence[Mapping[str, Any]], features: Collection[str], environment: Mapping[str, str], *, system: str
) -> Choice:
    """What to do on a machine.

    Args:
        libraries: BLAS libraries as ``threadpoolctl.threadpool_info()`` describes them, NumPy's first.
        features: What NumPy has found the processor to support.
        environment: Variables.
        system: ``sys.platform``.

    Raises:
        InputError: The switch has a value that it does not know.
    """
    wish = environment.get(SWITCH) or "auto"
    if wish not in ("auto", "numpy", "copy"):
        raise InputError(f"{SWITCH} is 'auto', 'numpy' or 'copy', not {wish!r}", value=wish)
    if not libraries:
        return Choice("")
    first = libraries[0]
    core = first.get("architecture") or ""
    library = f"{first['internal_api']} {first.get('version') or ''}".strip()
    wide = bool(_WIDE_FEATURES & set(features))
    slow = wide and first["internal_api"] == "openblas" and bool(core) and core.lower() not in _WIDE_CORES
    wanted = WIDE if wide else core
    if wish == "numpy" or not (slow or wish == "copy") or first["internal_api"] != "openblas":
        return Choice(library, core, remark=_told(f"{SWITCH}=numpy asks for nothing else") if slow else "")
    if wish == "auto" and environment.get(CORE_VARIABLE):
        return Choice(library, core, remark=_told(f"{CORE_VARIABLE}={environment[CORE_VARIABLE]} asks for these"))
    if not system.startswith("linux"):
        return Choice(library, core, remark=_told(f"set {CORE_VARIABLE}={WIDE} before Python starts") if slow else "")
    return Choice(library, core, wanted)


def _told(why: str) -> str:
    return f"{WIDE} kernels would be faster here ({why})"


@cache
def libraries() -> tuple[Mapping[str, Any], ...]:
    """The BLAS that NumPy uses, as threadpoolctl describes it; if it cannot be told apart, all there are."""
    from threadpoolctl import threadpool_info

    np.dot(np.ones((2, 2)), np.ones((2, 2)))
    found = [info for info in threadpool_info() if info["user_api"] == "blas"]
    return tuple([info for info in found if "numpy" in Path(info["filepath"]).parent.as_posix()] or found)


def product(A: Array, B: Array, out: Array) -> None:
    """``numpy.matmul(A, B, out=out)`` of matrices or of equally long stacks, by the copy where that is faster."""
    copy = _chosen()[1]
    if copy is None or out.size * A.shape[-1] < _WORTH or min(out.shape[-2:]) <= _NARROW:
        np.matmul(A, B, out=out)
    elif out.ndim == 2:
        if not copy.multiply(A, B, out):
            np.matmul(A, B, out=out)
    else:
        for left, right, result in zip(A, B, out, strict=True):
            product(left, right, result)


def choice() -> Choice:
    """What multiplies large matrices in this process."""
    return _chosen()[0]


def is_tuned() -> bool:
    """Whether that is a library with kernels for some processor, be it another one: it names the processor then."""
    return bool(choice().core)


def is_wide() -> bool:
    """Whether NumPy's own library has kernels for all of the vectors of AVX-512."""
    return choice().core.lower() in _WIDE_CORES


@cache
def _chosen() -> tuple[Choice, Copy | None]:
    features = np.show_config(mode="dicts")["SIMD Extensions"]["found"]
    made = choose(libraries(), features, os.environ, system=sys.platform)
    if not made.wanted:
        return made, None
    try:
        return made, Copy(libraries()[0]["filepath"], made.wanted)
    except OSError as error:
        return Choice(made.library, made.core, remark=_told(f"no copy could be opened: {error}")), None
