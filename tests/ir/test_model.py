from __future__ import annotations

import subprocess
import sys

import onnx.parser
import pytest

import entrepot as ep
from entrepot.ir.model import ValueSpec
from entrepot.ir.opset import OPSET


def model() -> ep.Model:
    proto = onnx.parser.parse_model("""
        <ir_version: 10, opset_import: ["": 18, "com.x": 2]>
        net (float[N, 3] x, int64 n, seq(float[2]) s, float[3] w, bfloat16[] b) => (float[N, ?] y)
        <float[3] w = {1, 2, 3}>
        { y = Add(x, w) }
    """)
    proto.metadata_props.add(key="author", value="somebody")
    return ep.load(proto)


def test_inputs_are_those_that_must_be_fed() -> None:
    assert [str(spec) for spec in model().inputs] == [
        "x: float32[N, 3]",
        "n: int64[]",
        "s: float32[2] (sequence)",
        "b: bfloat16[?]",
    ]
    assert model().inputs[0] == ValueSpec("x", "float32", ("N", 3))


def test_outputs_print_unknown_sizes_as_question_marks() -> None:
    assert [str(spec) for spec in model().outputs] == ["y: float32[N, ?]"]
    assert str(ValueSpec("y", None, None)) == "y: ?[?]"


def test_opsets_and_metadata_are_those_of_the_file() -> None:
    assert model().opset == 18
    assert model().opsets == {"": 18, "com.x": 2}
    assert model().metadata == {"author": "somebody"}


def test_a_model_prints_its_interface() -> None:
    lines = repr(model()).splitlines()
    assert lines[0] == "entrepot.Model 'net', opset ai.onnx 18, com.x 2, 1 node, 1 weight (12 B)"
    assert lines[1:] == ["  in   x: float32[N, 3]", "  in   n: int64[]", "  in   s: float32[2] (sequence)",
                         "  in   b: bfloat16[?]", "  out  y: float32[N, ?]"]  # fmt: skip


def test_names_cannot_inject_markup_into_the_html_form() -> None:
    source = model().to_proto()
    source.graph.name = "<script>alert(1)</script>"
    for node in source.graph.node:
        node.output[0] = "<b>"
    source.graph.output[0].name = "<b>"
    text = ep.load(source)._repr_html_()
    assert "<script>" not in text
    assert "<b>" not in text
    assert text.startswith("<table>")
    assert "&lt;b&gt;: float32[N, ?]" in text


def test_the_hub_form_is_made_once() -> None:
    source = ep.load(onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["": 18]> g (float[N] x) => (float[N] y) { y = Relu(x) }'
    ))  # fmt: skip
    hub = source.at_hub()
    assert hub is source.at_hub()
    assert hub.opset == OPSET
    assert source.opset == 18


def test_a_model_converts_to_a_proto_that_is_its_own() -> None:
    source = model()
    proto = source.to_proto()
    proto.graph.node[0].op_type = "Sub"
    assert source.to_proto().graph.node[0].op_type == "Add"


@pytest.mark.parametrize(
    "module", ["entrepot.ir.model", "entrepot.ir.errors", "entrepot.ir.limits", "entrepot.ir.table"]
)
def test_the_foundations_do_not_load_onnx(module: str) -> None:
    script = f"import sys, {module}; print([name for name in ('onnx', 'onnx_ir', 'numpy') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
