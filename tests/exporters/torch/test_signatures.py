"""What is known about operators is found out once."""

from __future__ import annotations

import onnx_ir
import onnxscript
import torch
from torch import nn

from entrepot.exporters.torch.lowering import signatures
from entrepot.exporters.torch.lowering.signatures import functions_unparsed, signatures_once
from entrepot.exporters.torch.lowering.translate import NATURAL_OPSET, _registry, translate
from entrepot.exporters.torch.upstream import ONNXRegistry


def test_a_signature_is_made_of_a_schema_once(monkeypatch):
    made = []
    plain = onnx_ir.schemas.OpSignature.from_op_schema
    monkeypatch.setattr(signatures, "_KNOWN", {})
    monkeypatch.setattr(
        onnx_ir.schemas.OpSignature, "from_op_schema", lambda each: made.append(each.name) or plain(each)
    )
    network = nn.Sequential(*(nn.Softmax(-1) for _ in range(3)))
    model = translate(torch.export.export(network, (torch.ones(2, 3),)))
    assert [node.op_type for node in model.graph].count("Softmax") == 3
    assert made.count("Softmax") == 1


def test_nodes_with_one_signature_have_attributes_of_their_own():
    model = translate(torch.export.export(nn.Sequential(nn.Softmax(-1), nn.Softmax(-1)), (torch.ones(2, 3),)))
    first, second = (node.attributes["axis"] for node in model.graph if node.op_type == "Softmax")
    assert first is not second
    assert first.value == second.value == -1


def test_the_registry_is_as_it_is_with_functions_that_are_parsed(monkeypatch):
    def names(registry):
        return {
            target: [(each.onnx_function.__name__, each.is_complex) for each in found]
            for target, found in registry.functions.items()
        }

    parsed = names(ONNXRegistry().from_torchlib(opset_version=NATURAL_OPSET))
    with functions_unparsed():
        assert names(ONNXRegistry().from_torchlib(opset_version=NATURAL_OPSET)) == parsed
    assert parsed


def test_the_registry_is_made_without_parsing(monkeypatch):
    def refuse(function):
        raise AssertionError(f"{function} is parsed")

    monkeypatch.setattr(onnxscript.TracedOnnxFunction, "function_ir", property(refuse))
    _registry.cache_clear()
    assert _registry(()).functions


def test_the_libraries_are_left_as_they_were():
    def state():
        return onnx_ir.schemas.OpSignature.__dict__["from_op_schema"], onnxscript.TracedOnnxFunction.function_ir

    before = state()
    with signatures_once(), functions_unparsed():
        assert all(one is not other for one, other in zip(state(), before, strict=True))
    assert state() == before
