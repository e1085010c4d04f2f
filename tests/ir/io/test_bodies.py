"""Models that cannot have a meaning are refused when they are read."""

from __future__ import annotations

import onnx
import pytest

import entrepot as ep

HEAD = '<ir_version: 10, opset_import: ["": 23]>\n'
IF = """g (bool c, float[N] x) => (float[N] y) {{
    y = If(c) <then_branch = t () => ({}) {{ {} }}, else_branch = e () => ({}) {{ {} }}>
}}"""
LOOP = "g (float[N] x, int64 n) => (float[N] y) {{ y = Loop(n, , x) <body = b (int64 i, bool c{}) => ({}) {{ {} }}> }}"
SCAN = "g (float[N, 2] x) => (float[N, 2] y) {{ y = Scan<{}, body = b ({}) => (float[2] r) {{ r = Neg(a) }}>(x) }}"
NEG, ABS, CAST = "a = Neg(x)", "b = Abs(x)", "b = Cast<to = 7>(x)"
GOES_ON = "d = Identity(c) r = Neg(x)"

REFUSED = {
    "more results than the node has": (
        IF.format("float[N] a, float[N] z", NEG + " z = Neg(a)", "float[N] b", ABS),
        "2 outputs"),
    "branches of different types": (
        IF.format("float[N] a", NEG, "int64[N] b", CAST),
        "of different types: FLOAT and INT64"),
    "too few inputs of a loop": (LOOP.format("", "bool d, float[N] r", GOES_ON), "2 inputs, but the node needs 3"),
    "too few results of a loop": (
        LOOP.format(", float[N] a", "bool d", "d = Identity(c)"),
        "1 outputs, but the node needs 2"),
    "a condition that is no truth": (
        LOOP.format(", float[N] a", "float[N] d, float[N] r", "d = Neg(a) r = Neg(a)"),
        "the condition"),
    "a carried value that changes its type": (
        LOOP.format(", float[N] a", "bool d, int64[N] r", "d = Identity(c) r = Cast<to = 7>(a)"),
        "takes 'a' as FLOAT and returns it as INT64",
    ),
    "more scanned than given": (SCAN.format("num_scan_inputs = 2", "float[2] a"), "num_scan_inputs is 2"),
    "nothing scanned": (SCAN.format("num_scan_inputs = 0", "float[2] a"), "num_scan_inputs is 0"),
    "a scan body of other inputs": (SCAN.format("num_scan_inputs = 1", "float[2] a, float[2] z"), "2 inputs"),
    "axes for others": (SCAN.format("num_scan_inputs = 1, scan_input_axes = [0, 0]", "float[2] a"), "has 2 entries"),
    "a third direction": (SCAN.format("num_scan_inputs = 1, scan_output_directions = [2]", "float[2] a"), "0 or 1"),
    "no outputs": ("g (float[N] x) => () { y = Neg(x) }", "no outputs"),
    "a batch counted backwards": (
        "g (float[3,4] x, int64[2,2] i) => (float[N] y) { y = GatherND<batch_dims = -99>(x, i) }",
        "'batch_dims' is -99",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_models_without_a_meaning_are_refused(name: str) -> None:
    text, words = REFUSED[name]
    with pytest.raises(ep.ModelFormatError, match="graph 'g'") as caught:
        ep.load(onnx.parser.parse_model(HEAD + text))
    assert words in str(caught.value)


def test_the_format_version_is_required() -> None:
    proto = onnx.parser.parse_model(HEAD + "g (float[N] x) => (float[N] y) { y = Neg(x) }")
    proto.ClearField("ir_version")
    with pytest.raises(ep.ModelFormatError, match="ir_version"):
        ep.load(proto)


@pytest.mark.parametrize("version", [1 << 31, 1 << 62])
def test_opsets_that_onnx_cannot_look_up_are_refused(version: int) -> None:
    proto = onnx.parser.parse_model(HEAD + "g (float[N] x) => (float[N] y) { y = Neg(x) }")
    proto.opset_import[0].version = version
    with pytest.raises(ep.ModelFormatError, match="opset import"):
        ep.load(proto)


@pytest.mark.parametrize("opset", [5, 6, 8])
@pytest.mark.parametrize(("name", "dtype"), [("FLOAT16", "float16"), ("int64", "int64"), ("Double", "float64")])
def test_casts_of_early_files_name_their_type(name: str, dtype: str, opset: int) -> None:
    proto = onnx.parser.parse_model(
        f'<ir_version: 3, opset_import: ["": {opset}]> g (float[2] x) => (y) {{ y = Cast(x) }}'
    )
    proto.graph.node[0].attribute.append(onnx.helper.make_attribute("to", name))
    assert str(ep.Session(proto).run({"x": [1.0, 2.0]})["y"].dtype) == dtype


def test_casts_to_no_type_are_refused() -> None:
    proto = onnx.parser.parse_model('<ir_version: 3, opset_import: ["": 7]> g (float[2] x) => (y) { y = Cast(x) }')
    proto.graph.node[0].attribute.append(onnx.helper.make_attribute("to", "FLOAT17"))
    with pytest.raises(ep.ModelFormatError, match="must be INT"):
        ep.load(proto)
