"""The table of spellings: how an operator of another runtime is written in operators of ai.onnx at the hub's opset.

A spelling is a function shaped like the operator's schema: ``op`` first, inputs by position (``None`` for an absent
optional one), attributes keyword-only under their names with the schema's defaults. It writes nodes through ``op`` and
returns a value, or a tuple of them in schema order, in which ``None`` stands for an output that it does not make. An
attribute or input that it does not name is refused, never ignored.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import ml_dtypes
import numpy as np

if TYPE_CHECKING:
    import onnx_ir as ir

Spelling: TypeAlias = Callable[..., Any]

S = TypeVar("S", bound=Spelling)

MICROSOFT = "com.microsoft"
"""The domain of onnxruntime's own operators, which its optimizer and its quantizer write."""

_ELSEWHERE = {
    "com.microsoft.nchwc": "it is in onnxruntime's own order of memory for one kind of processor",
    "com.ms.internal.nhwc": "it is in the internal layout of one of onnxruntime's providers",
}
_COMPUTED_IN = {2: np.dtype(np.float16), 3: np.dtype(ml_dtypes.bfloat16), 4: np.dtype(ml_dtypes.bfloat16)}
"""By ``accuracy_level``; integers of 8 bits, the last, are as exact as bfloat16."""
_PACKAGES = ("microsoft",)
_rounding: set[Spelling] = set()
_spellings: dict[tuple[str, str], Spelling] = {}


def spelled(*op_types: str, domain: str = MICROSOFT, rounds: bool = False) -> Callable[[S], S]:
    """Register how operators are spelled out; those that are named together mean the same.

    Args:
        op_types: Their names.
        domain: Their domain.
        rounds: Whether they round to few steps, as what is quantised is.
    """

    def register(spelling: S) -> S:
        if rounds:
            _rounding.add(spelling)
        for op_type in op_types:
            if _spellings.setdefault((domain, op_type), spelling) is not spelling:
                raise ValueError(f"two spellings of {domain}::{op_type}")
        return spelling

    return register


def find(domain: str, op_type: str) -> Spelling | None:
    """How an operator is spelled out; ``None`` for the standard's own, and where nobody has said it."""
    if not domain or domain.startswith("ai.onnx"):
        return None
    _fill()
    return _spellings.get((domain, op_type))


def rounds(spelling: Spelling) -> bool:
    """Whether what is spelled out so rounds to few steps."""
    return spelling in _rounding


def coarsest(nodes: Iterable[ir.Node]) -> np.dtype[Any] | None:
    """The least exact type that onnxruntime may compute in where a node allows it; ``None`` if none does."""
    levels = [node.attributes.get_int("accuracy_level", 0) for node in nodes if node.domain == MICROSOFT]
    return _COMPUTED_IN.get(max(levels, default=0))


def every() -> dict[tuple[str, str], Spelling]:
    """All spellings by domain and operator."""
    _fill()
    return dict(_spellings)


def why_not(domain: str) -> str:
    """Why no operator of a domain can be spelled out, and what would help; empty for other domains."""
    reason = _ELSEWHERE.get(domain)
    if reason is None:
        return ""
    return f"{reason}: save the model with onnxruntime's graph_optimization_level at ORT_ENABLE_EXTENDED or below"


@functools.cache
def _fill() -> None:
    for name in _PACKAGES:
        package = importlib.import_module(f"{__package__}.{name}")
        for module in pkgutil.iter_modules(package.__path__):
            importlib.import_module(f"{package.__name__}.{module.name}")
