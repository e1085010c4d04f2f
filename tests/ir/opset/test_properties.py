"""Laws of conversion, over the operator cases: down and up again computes the same; what is not concerned stays."""

from __future__ import annotations

from typing import Any

import onnx
import onnx_ir as ir
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from entrepot.ir.errors import ConversionError
from entrepot.ir.model import Model
from entrepot.ir.opset import OPSET
from entrepot.ir.opset.convert import can_convert, convert_opset
from entrepot.ir.opset.schemas import since
from entrepot.parity.compare import Tolerance, compare
from entrepot.runtime.session import Session
from tests.ir.opset.evaluate import parse
from tests.op_cases import all_cases
from tests.op_cases.case import Case

RANDOM = (
    "Bernoulli",
    "Dropout",
    "Multinomial",
    "RandomNormal",
    "RandomNormalLike",
    "RandomUniform",
    "RandomUniformLike",
)
OTHERWISE_ROUNDED = {
    "DynamicQuantizeLinear": "of zeros: the schema's body, unlike runtimes, divides by a range of 0",
    "Sign": "of NaN, which the specification leaves open, below opset 9",
    "Shrink": "of NaN below opset 9, which cannot select: NaN instead of 0",
}
CASES = [case for case in all_cases() if not case.domain and case.op_type not in {*RANDOM, *OTHERWISE_ROUNDED}]


def _model(case: Case) -> Model:
    return Model(ir.serde.deserialize_model(case.model()))


def _is_valid(proto: onnx.ModelProto) -> bool:
    try:
        onnx.checker.check_model(proto, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError):
        return False
    return True


@settings(max_examples=1000)
@given(st.sampled_from(CASES), st.integers(7, OPSET - 1))
def test_down_and_up_again_computes_the_same(case: Case, target: int) -> None:
    model = _model(case)
    if blockers := can_convert(model, target):
        with pytest.raises(ConversionError) as refusal:
            convert_opset(model, target)
        assert list(map(str, refusal.value.blockers)) == list(map(str, blockers))
        return
    down = convert_opset(model, target)
    assert down.opset == target
    if _is_valid(case.model()):
        onnx.checker.check_model(ir.serde.serialize_model(down.ir), full_check=True)
    back = convert_opset(down, OPSET)
    want, have = (Session(each).run(case.feeds()) for each in (model, back))
    coarse = Tolerance(1e-5, 2e-3, scaled=True)
    assert compare(want, have).ok or compare(want, have, coarse).ok, compare(want, have).problems


@given(st.sampled_from(CASES))
def test_the_same_opset_is_the_model_itself(case: Case) -> None:
    model = _model(case)
    assert convert_opset(model, OPSET) is model


BYSTANDERS = (
    "{y} = Relu({x})",
    "{y} = MatMul({x}, w)",
    "{y} = Transpose<perm = [1, 0]>({x})",
    '{y} = com.example.Own<gain = 2.5, names = ["a", "b"]>({x}, w)',
    "{y} = Softmax<axis = 0>({x})",
    "{y} = LayerNormalization({x}, v)",
    "{y} = Gelu({x})",
    "{y} = Clip({x}, , top)",
)
STORED = "float[4,4] w = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1}, float[4] v = {1, 2, 3, 4}, float top = {2}"


@st.composite
def _chains(draw: Any) -> Model:
    chosen = draw(st.lists(st.sampled_from(BYSTANDERS), min_size=2, max_size=8))
    lines = [line.format(x=f"x{at}", y=f"x{at + 1}") for at, line in enumerate(chosen)]
    signature = f"float[4,4] x0) => (float[4,4] x{len(chosen)}"
    model = parse("\n".join(lines), 20, signature, stored=STORED, imports=', "com.example": 3')
    for at, node in enumerate(model.ir.graph):
        node.name, node.doc_string = f"n{at}", f"the {at}th"
        node.metadata_props["origin"] = f"line {at}"
        node.outputs[0].type, node.outputs[0].shape = ir.TensorType(ir.DataType.FLOAT), ir.Shape([4, 4])
    for value in [*model.ir.graph.inputs, *(output for node in model.ir.graph for output in node.outputs)]:
        value.metadata_props["of"] = value.name or ""
        value.doc_string = f"about {value.name}"
    return model


@given(_chains(), st.integers(7, 28))
def test_what_a_step_does_not_concern_comes_out_equal_in_every_field(model: Model, target: int) -> None:
    before = ir.serde.serialize_model(model.ir)
    after = convert_opset(model, target)
    assert ir.serde.serialize_model(model.ir) == before, "the argument was changed"
    nodes = {node.name: node for node in after.ir.graph}
    for node in model.ir.graph:
        if node.domain or since("", node.op_type, 20) == since("", node.op_type, target):
            assert ir.serde.serialize_node(nodes[node.name]) == ir.serde.serialize_node(node)
    made = {output.name: output for node in after.ir.graph for output in node.outputs}
    for node in model.ir.graph:
        for output in node.outputs:
            same = made[output.name]
            assert (same.type, same.shape, same.doc_string) == (output.type, output.shape, output.doc_string)
            assert same.metadata_props == output.metadata_props
    weights = after.ir.graph.initializers
    for name, value in model.ir.graph.initializers.items():
        if name in weights:
            assert weights[name].const_value is value.const_value
        else:  # as bounds of Clip, which became attributes
            assert all(since("", use.node.op_type, 20) != since("", use.node.op_type, target) for use in value.uses())
