"""Models nested deeper than a file holds are refused, where they are made and where they are written."""

from __future__ import annotations

import onnx
import onnx_ir as ir
import pytest

import entrepot as ep
from entrepot.ir.nesting import DEEPEST, check_nesting


def nested(depth: int) -> ir.Model:
    """``y = x``, in so many branches."""
    c, x = (ir.val(name, dtype) for name, dtype in (("c", ir.DataType.BOOL), ("x", ir.DataType.FLOAT)))
    body = ir.node("Identity", [x])
    for _ in range(depth):
        inside = [ir.Graph([], [node.outputs[0]], nodes=[node]) for node in (body, ir.node("Neg", [x]))]
        for branch in inside:
            branch.outputs[0].dtype, branch.outputs[0].shape = ir.DataType.FLOAT, ir.Shape([2, 3])
        body = ir.node("If", [c], {"then_branch": inside[0], "else_branch": inside[1]})
    for value in (x, body.outputs[0]):
        value.dtype, value.shape = ir.DataType.FLOAT, ir.Shape([2, 3])
    c.shape = ir.Shape([])
    graph = ir.Graph([c, x], body.outputs, nodes=[body], opset_imports={"": 20}, name="g")
    return ir.Model(graph, ir_version=10)


def test_the_deepest_model_that_is_written_can_be_read() -> None:
    proto = ep.Model(nested(DEEPEST)).to_proto()
    assert onnx.load_from_string(proto.SerializeToString()).graph.node


def test_one_deeper_is_neither_taken_nor_written() -> None:
    deeper = nested(DEEPEST + 1)
    for refuse in (lambda: check_nesting(deeper), ep.Model(deeper).to_proto):
        with pytest.raises(ep.ConversionError, match=f"{DEEPEST + 1} deep"):
            refuse()
