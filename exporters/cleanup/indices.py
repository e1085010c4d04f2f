"""Indices of int32, which torch.onnx (2.13), for one, passes to operators that take only int64."""

from __future__ import annotations

import functools

import onnx
import onnx_ir

from entrepot.ir.passes.graphs import typed_graphs, version_of


def widen_indices(model: onnx_ir.Model) -> None:
    """Cast every int32 that is read where the schema allows only int64."""
    for graph, types in typed_graphs(model):
        for node in [node for node in graph if not node.domain]:
            for index in _int64_only(node.op_type, version_of(node, types.opsets)):
                value = node.inputs[index] if index < len(node.inputs) else None
                if value is not None and types.dtype(value) == onnx_ir.DataType.INT32:
                    _cast(node, index, value)


@functools.cache
def _int64_only(op_type: str, version: int) -> tuple[int, ...]:
    if not version:
        return ()
    known = onnx.defs.get_schema(op_type, version)
    return tuple(index for index, formal in enumerate(known.inputs) if formal.types == {"tensor(int64)"})


def _cast(node: onnx_ir.Node, index: int, value: onnx_ir.Value) -> None:
    cast = onnx_ir.node("Cast", [value], {"to": onnx_ir.DataType.INT64})
    wide = cast.outputs[0]
    wide.name, wide.shape, wide.type = f"{value.name}_wide", value.shape, onnx_ir.TensorType(onnx_ir.DataType.INT64)
    assert node.graph is not None
    node.graph.insert_before(node, cast)
    node.replace_input_with(index, wide)
