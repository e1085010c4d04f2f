"""Whether the types of a step's values are ones that its operator takes together."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence

import onnx
import onnx_ir as ir

from entrepot.ir.errors import ModelFormatError
from entrepot.ir.opset.schemas import schema
from entrepot.ir.table import OpKey
from entrepot.ir.traits import traits
from entrepot.runtime.planning.plan import Step, Value

_Formal = onnx.defs.OpSchema.FormalParameter
_Dtypes = tuple[ir.DataType | None, ...]

_NARROW_FLOAT = "narrow float"
_NARROW = 8
"""Bits of floats that are kept and converted, but not computed with."""


def check_types(step: Step) -> None:
    """Refuse a node whose operands are not what the standard lets stand together.

    What is said of a value is what the file declares, or else what follows from its operator. Of tensors alone, and
    only where a type is known. A kind of number that the operator takes at all is enough, whatever its width: kernels
    keep widths that the standard does not list.

    Raises:
        ModelFormatError: Types of the node's values do not go together; the message names them.
    """
    if step.schema is None:
        return
    if why := _against(step.key, _dtypes(step.inputs), _dtypes(step.outputs)):
        raise ModelFormatError(
            why, node=step.where, hint="put a Cast before it, or correct the types that the file states"
        )


def _dtypes(values: Sequence[Value | None]) -> _Dtypes:
    types = [None if value is None else value.type for value in values]
    return tuple(None if known is None or known.kind != "tensor" else known.dtype for known in types)


@functools.lru_cache(maxsize=4096)
def _against(key: OpKey, inputs: _Dtypes, outputs: _Dtypes) -> str:
    known = schema(key.domain, key.op_type, key.since)
    bound: dict[str, tuple[str, ir.DataType]] = {}
    for formal, dtype, what in (*_paired(known.inputs, inputs, "input"), *_paired(known.outputs, outputs, "output")):
        if not _takes(key, formal, _kind(dtype)):
            return f"its {what} is {dtype.name.lower()}, which {key.op_type} does not take there"
        first, other = bound.setdefault(formal.type_str, (what, dtype))
        if other is not dtype and formal.type_str not in formal.types:
            return (
                f"its {first} is {other.name.lower()} and its {what} {dtype.name.lower()}, where both are of one type"
            )
    return ""


def _takes(key: OpKey, formal: _Formal, kind: str) -> bool:
    """Whether a parameter takes a kind of number; what moves elements about need not compute with them."""
    is_moved = kind == _NARROW_FLOAT and traits(key.domain, key.op_type).moves
    return is_moved or kind in _kinds(frozenset(formal.types))


def _paired(formals: Sequence[_Formal], dtypes: _Dtypes, side: str) -> Iterator[tuple[_Formal, ir.DataType, str]]:
    """Each known type with its parameter, and words for it; those of any types beside each other are left out."""
    for at, dtype in enumerate(dtypes):
        formal = formals[min(at, len(formals) - 1)]
        if dtype is not None and formal.is_homogeneous:
            yield formal, dtype, f"{side} '{formal.name}'"


@functools.cache
def _kinds(types: frozenset[str]) -> frozenset[str]:
    names = (text.removeprefix("tensor(").removesuffix(")").upper() for text in types)
    return frozenset(_kind(ir.DataType[name]) for name in names if name in ir.DataType.__members__)


def _kind(dtype: ir.DataType) -> str:
    if dtype.is_floating_point():
        return "float" if dtype.bitwidth > _NARROW else _NARROW_FLOAT
    return "integer" if dtype.is_integer() else dtype.name
