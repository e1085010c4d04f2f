"""Numbers of a kind that an operator does not take, which torch.onnx (2.13), for one, gives it: sums of truth values.

They are computed in a kind that holds them exactly, whole numbers up to 2^53 (2^24 where an operator has no doubles),
and kept in their own. So are those of a kind that onnxruntime has no kernel for: ``Where`` of truth values.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import onnx
import onnx_ir as ir

from entrepot.exporters.kernels import KINDS, wider
from entrepot.ir.passes.casting import cast_after, cast_before
from entrepot.ir.passes.graphs import typed_graphs, version_of
from entrepot.ir.typing.query import Types

_Formal = onnx.defs.OpSchema.FormalParameter
_MAIN = {"Where": 1}
"""Which operand says what an operator computes in, if it is not the first."""
_SCATTERING = ("ScatterElements", "ScatterND")
_NARROW = tuple(ir.DataType[name] for name in ("BOOL", "INT8", "UINT8", "INT16", "UINT16", "INT32", "UINT32"))
"""Types all of whose values the next wider one has, so that a result brought back is what it would have been."""
_OF_TRUTHS = ir.DataType.INT32, ir.DataType.FLOAT
_OF_INTEGERS = ir.DataType.DOUBLE, ir.DataType.FLOAT


def use_kinds_taken(model: ir.Model) -> None:
    """Cast truth values and whole numbers on their way into operators that take none, and results back.

    Before: ``Add(bool, bool)``. After: ``Cast(Add(Cast(bool), Cast(bool)))``. The same for halves that ``ScatterND``
    adds up.
    """
    for graph, types in typed_graphs(model):
        for node in [node for node in graph if not node.domain]:
            version = version_of(node, types.opsets)
            if version:
                _settle(graph, node, onnx.defs.get_schema(node.op_type, version), types)


def _settle(graph: ir.Graph, node: ir.Node, known: onnx.defs.OpSchema, types: Types) -> None:
    main = known.inputs[_MAIN.get(node.op_type, 0)].type_str if known.inputs else ""
    instead = {
        formal.type_str: (dtype, wide)
        for formal, _, value in _paired(known.inputs, node.inputs)
        if (dtype := types.dtype(value)) is not None
        and (wide := _wider(formal, dtype) or (_run_in(node, dtype) if formal.type_str == main else None)) is not None
    }
    for formal, at, value in [*_paired(known.inputs, node.inputs)]:
        if formal.type_str in instead and types.dtype(value) == instead[formal.type_str][0]:
            node.replace_input_with(at, cast_before(graph, node, value, instead[formal.type_str][1]))
    for formal, _, value in _paired(known.outputs, node.outputs):
        if formal.type_str in instead:
            dtype, wide = instead[formal.type_str]
            cast_after(graph, node, value, wide, dtype)


def _paired(formals: Sequence[_Formal], values: Sequence[ir.Value | None]) -> Iterator[tuple[_Formal, int, ir.Value]]:
    """Each value that is there with its parameter and its place, where values of a parameter are of one type."""
    for at, value in enumerate(values):
        formal = formals[min(at, len(formals) - 1)]
        if value is not None and formal.is_homogeneous:
            yield formal, at, value


def _wider(formal: _Formal, dtype: ir.DataType) -> ir.DataType | None:
    """What stands in for a type of a kind that a parameter does not take; ``None`` if it is taken, or nothing does."""
    truth = dtype is ir.DataType.BOOL
    if not (truth or dtype.is_integer()) or f"tensor({dtype.name.lower()})" in formal.types:
        return None
    taken = {ir.DataType[name] for name in map(_name, formal.types) if name in ir.DataType.__members__}
    if formal.type_str in formal.types or (
        not truth and any(each.is_integer() and each.bitwidth >= dtype.bitwidth for each in taken)
    ):
        return None
    return next((each for each in (_OF_TRUTHS if truth else _OF_INTEGERS) if each in taken), None)


def _run_in(node: ir.Node, dtype: ir.DataType) -> ir.DataType | None:
    """What onnxruntime runs an operator in, where it has no kernel for a type that the operator takes."""
    if node.op_type in _SCATTERING:
        added_up = node.attributes.get_string("reduction", "none") != "none"
        return wider(dtype, KINDS[node.op_type]) if added_up and dtype in (*_NARROW, ir.DataType.FLOAT16) else None
    if node.op_type == "NonZero":
        return None if dtype in KINDS["NonZero"] else ir.DataType.BOOL
    found = wider(dtype, KINDS.get(node.op_type)) if dtype in _NARROW else dtype
    return None if found is dtype else found


def _name(text: str) -> str:
    return text.removeprefix("tensor(").removesuffix(")").upper()
