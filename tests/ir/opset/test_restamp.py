"""Files of which no node changes get another number, and are otherwise as they were."""

from __future__ import annotations

import io

import onnx
import onnx.parser
import pytest
from onnx.backend.test.case.node import collect_testcases

import entrepot as ep
from entrepot.ir.io import survey
from entrepot.ir.opset.convert import convert_opset
from tests.ir.io.test_roundtrip import normal

TARGETS = (18, 21, 25)


@pytest.fixture(autouse=True)
def every_file_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(survey, "LONG", 0)


def saved(model: ep.Model) -> onnx.ModelProto:
    file = io.BytesIO()
    model.save(file)
    return normal(onnx.ModelProto.FromString(file.getvalue()))


def converted(model: ep.Model, target: int) -> ep.Model | str:
    try:
        return convert_opset(model, target)
    except ep.ConversionError as error:
        return str(error)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # onnx computes its cases with overflows
def test_conversions_without_a_graph_give_the_same_files_as_with_one() -> None:
    cases = [case.model for case in collect_testcases(None) if case.model is not None]
    moved = 0
    for proto in cases[::12]:
        plain, full = ep.load(proto.SerializeToString()), ep.load(proto)
        for target in TARGETS:
            result, expected = converted(plain, target), converted(full, target)
            if isinstance(result, str) or isinstance(expected, str):
                assert result == expected
                continue
            moved += result.parsed is not None
            assert (result is plain) == (expected is full)
            assert saved(result) == saved(expected)
            assert result.to_proto() == expected.to_proto()
    assert moved > 100


def model(nodes: str, *, opset: int = 18, ir_version: int = 8, stored: str = "") -> ep.Model:
    """A short file that is read as long ones are."""
    proto = onnx.parser.parse_model(
        f'<ir_version: {ir_version}, opset_import: ["": {opset}, "other": 3]> net (float[2, 3] x) => (float[2, 3] y)'
        f" <{stored}> {{{nodes}}}"
    )
    found = ep.load(proto.SerializeToString())
    assert found.parsed is not None
    return found


def test_a_conversion_makes_no_graph_where_no_node_changes() -> None:
    original = model("a = Softmax <axis = 0> (x) b = other.Thing(a) y = Add(b, x)")
    result = convert_opset(original, 25)
    assert (original.opsets, result.opsets) == ({"": 18, "other": 3}, {"": 25, "other": 3})
    assert result.parsed is not None
    assert original.parsed is not None
    assert result.ir.ir_version == convert_opset(ep.load(original.to_proto()), 25).ir.ir_version


def test_a_model_that_is_there_already_is_itself() -> None:
    original = model("y = Relu(x)")
    assert convert_opset(original, {"": 18, "ai.onnx.ml": 3}) is original


@pytest.mark.parametrize(
    "nodes",
    [
        "y = GroupNormalization <num_groups = 3> (x, w, w)",
        'y = GridSample <mode = "bilinear"> (x, x)',
        "y = Nothing(x)",
    ],
    ids=["rewritten", "an attribute of another name", "no operator"],
)
def test_a_node_that_changes_or_is_unknown_takes_a_graph(nodes: str) -> None:
    original = model(nodes, stored="float[3] w = {1, 1, 1}")
    result = converted(original, 25)
    assert result == converted(ep.load(original.to_proto()), 25) if isinstance(result, str) else result.parsed is None


def test_the_way_down_takes_a_graph() -> None:
    original = model("y = Softmax <axis = 0> (x)")
    assert convert_opset(original, 13).parsed is None
    assert original.parsed is not None


@pytest.mark.parametrize(
    "nodes", ["c = Cast <to = 22> (x) y = Cast <to = 1> (c)", "y = Relu(x)"], ids=["cast", "weight"]
)
def test_the_format_is_new_enough_for_every_element_type(nodes: str) -> None:
    int4 = onnx.helper.make_tensor("q", onnx.TensorProto.INT4, [2], [1, 2])
    proto = model(nodes, opset=18).to_proto()
    if "22" not in nodes:
        proto.graph.initializer.append(int4)
    result = convert_opset(ep.load(proto.SerializeToString()), 20)
    assert result.ir.ir_version == 10


def test_another_domain_that_is_too_new_is_still_in_the_way() -> None:
    proto = model("y = Relu(x)").to_proto()
    proto.opset_import.add(domain="ai.onnx.ml", version=99)
    with pytest.raises(ep.ConversionError, match=r"it is written for ai\.onnx\.ml 99"):
        convert_opset(ep.load(proto.SerializeToString()), 25)


def test_a_model_is_raised_to_the_hub_without_a_graph() -> None:
    original = model("y = Softmax(x)")
    assert original.at_hub().parsed is not None
    assert original.parsed is not None
