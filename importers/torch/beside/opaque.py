"""Kernels that look at the values of tensors: operators of their own in a graph that is captured."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Sequence
from typing import Any

import entrepot
from entrepot.importers.torch.dtypes import COMPUTED, NAMES
from entrepot.runtime.planning.plan import Step, Value


def operands(step: Step, fixed: Collection[int]) -> dict[int, str] | None:
    """What the operands of a kernel are called inside of it, by position, but for those that are ``fixed``.

    ``None`` where one is no tensor.
    """
    given = {at: value for at, value in enumerate(step.inputs) if value is not None and at not in fixed}
    kinds = [value.type for value in given.values()]
    if not given or any(kind is None or kind.kind != "tensor" or kind.dtype not in NAMES for kind in kinds):
        return None
    return {at: f"x{at}" for at in given}


def results(step: Step, given: Sequence[int]) -> list[str] | None:
    """For each result its element type and its sizes, as text; ``None`` where the number of axes is not known.

    A type or a size that an operand has is the operand's: the position among ``given``, and the axis.
    """
    told = [_result(value, [step.inputs[at] for at in given]) for value in step.outputs]
    return None if any(each is None for each in told) else [each for each in told if each is not None]


def _result(value: Value | None, given: Sequence[Value | None]) -> str | None:
    if value is None:
        return "None"
    known = value.type
    if known is None or known.kind != "tensor" or known.shape is None or known.dtype not in COMPUTED:
        return None
    kinds = [None if each is None or each.type is None else each.type.dtype for each in given]
    kind = str(kinds.index(known.dtype)) if known.dtype in kinds else NAMES[known.dtype]
    dims = ", ".join(_dim(dim, given) for dim in known.shape)
    return f"({kind}, ({dims}{',' * (len(known.shape) == 1)}))"


def _dim(dim: int | str | None, given: Sequence[Value | None]) -> str:
    if isinstance(dim, str):
        for at, value in enumerate(given):
            shape = None if value is None or value.type is None else value.type.shape
            if shape is not None and dim in shape:
                return f"({at}, {shape.index(dim)})"
    return str(dim) if isinstance(dim, int) else "None"


def definition(
    op_type: str, kernel: Callable[..., Any], names: Sequence[str], told: Sequence[str], text: str
) -> tuple[str, str]:
    """The name of the operator, and its definition; one name always means the same, whatever else a file has."""
    stem = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", op_type).lower()
    rest = f"({', '.join(names)}):\n    return {text}"
    what = (entrepot.__version__, kernel.__module__, kernel.__qualname__, told, rest)
    mark = hashlib.sha256(repr(what).encode()).hexdigest()[:8]
    name = f"{stem}_{mark}"
    kinds = ", ".join(told)
    return name, f"@opaque([{kinds}])\ndef {name}{rest}"
