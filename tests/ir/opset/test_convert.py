from __future__ import annotations

import onnx_ir as ir
import pytest

from entrepot.ir.errors import ConversionError
from entrepot.ir.model import Model
from entrepot.ir.opset import OPSET
from entrepot.ir.opset.convert import can_convert, convert_opset, raise_to_hub


def parse(body: str, opset: int, signature: str = "float[N,4] x) => (float[N,4] y", extra: str = "") -> Model:
    return Model(
        ir.from_onnx_text(f'<ir_version: 8, opset_import: ["": {opset}]> g ({signature}) {{ {body} }} {extra}')
    )


def op_types(model: Model) -> list[str]:
    return [node.op_type for node in model.ir.graph]


def test_a_model_at_the_hub_is_returned_as_it_is() -> None:
    model = raise_to_hub(parse("y = Relu(x)", 18))
    assert model.opset == OPSET
    assert raise_to_hub(model) is model


def test_the_argument_is_not_changed() -> None:
    model = parse("y = Softmax<axis = 0>(x)", 11)
    convert_opset(model, 13)
    assert model.opset == 11
    assert op_types(model) == ["Softmax"]


def test_all_blocking_nodes_are_listed_in_one_error() -> None:
    model = parse("a = Det(m) b = Unique(x) y = Relu(x)", 13, "float[2,2] m, float[N,4] x) => (float[N,4] y")
    with pytest.raises(ConversionError) as caught:
        convert_opset(model, 9)
    assert len(caught.value.blockers) == 2
    assert [str(blocker) for blocker in can_convert(model, 9)] == [str(blocker) for blocker in caught.value.blockers]


def test_a_newer_opset_than_the_hub_is_refused_with_that_reason() -> None:
    blockers = can_convert(parse("y = Relu(x)", OPSET + 1), 20)
    assert "knows versions up to" in str(blockers[0])
