"""``ep.simplify``: fewer nodes, the same model."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest
from onnx.backend.test.loader import load_model_tests

import entrepot as ep
from entrepot.exporters import simplification
from entrepot.models_zoo import registry
from entrepot.parity.feeds import generate
from entrepot.parity.spelled import spelled_out

WASTEFUL = """<ir_version: 10, opset_import: ["": 20, "my": 1, "idle": 1]>
    net (float[n, 3] x) => (float[n, 3] y, float[n, 3] z) <float[3] w = {1, 2, 3}, float[3] idle = {1, 2, 3}> {
        a = Identity(x) b = Relu(a) c = Relu(x) d = Add(b, c) e = my.f(d) g = Exp(d) y = Mul(e, w) h = Neg(d)
        z = Identity(h) }
    <domain: "my", opset_import: ["": 20]> f (x) => (y) { h = Identity(x) y = Neg(h) }
    <domain: "my", opset_import: ["": 20]> unused (x) => (y) { y = Neg(x) }"""


def wasteful() -> ep.Model:
    return ep.load(onnx.parser.parse_model(WASTEFUL))


def run(proto: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(proto.SerializeToString(), options).run(None, feeds)


def test_what_is_not_needed_goes_and_the_rest_is_proved() -> None:
    source = wasteful()
    source.metadata["licence"] = "mine"
    before = source.to_proto()
    result = ep.simplify(source)
    assert result.report is not None
    assert result.report.ok
    assert [node.op_type for node in result.ir.graph] == ["Relu", "Add", "f", "Mul", "Neg"]
    assert set(result.ir.graph.initializers) == {"w"}
    assert result.ir.graph.initializers["w"].const_value is source.ir.graph.initializers["w"].const_value
    assert {key[1] for key in result.ir.functions} == {"f"}
    assert result.opsets == {"": 20, "my": 1}
    assert result.metadata == {"licence": "mine"}
    assert (result.inputs, result.outputs) == (source.inputs, source.outputs)
    assert source.to_proto() == before


def test_a_second_time_changes_nothing() -> None:
    once = ep.simplify(wasteful(), verify=False)
    assert ep.simplify(once, verify=False).to_proto() == once.to_proto()


def test_a_wrong_step_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = ep.load(onnx.parser.parse_model(WASTEFUL.replace("h = Neg(d)", "h = Abs(d)")))
    monkeypatch.setattr(simplification, "_simplified", lambda source, passes: wrong)
    with pytest.raises(ep.VerificationError, match="simplified") as caught:
        ep.simplify(wasteful())
    assert caught.value.report is not None


def test_a_model_that_nobody_runs_is_simplified_and_not_called_proved() -> None:
    text = """<ir_version: 10, opset_import: ["": 20, "acme": 1]> net (float[n] x) => (float[n] y) {
        a = Identity(x) y = acme.F(a) }"""
    result = ep.simplify(ep.load(onnx.parser.parse_model(text)))
    assert len(result.ir.graph) == 1
    assert result.report is not None
    assert not result.report.ok


@pytest.mark.parametrize(
    "graph",
    [
        "(float[1] x, int64[1099511627776] sizes) => (float[3] y) { y = Expand(x, sizes) }",
        "(float[1, 2] x) => (float[1, 8] y) <int64[2] by = {1, 72057594037927939}> { y = Tile(x, by) }",
    ],
    ids=["input", "result"],
)
def test_what_fits_into_no_memory_is_simplified_and_not_called_proved(graph: str) -> None:
    proto = onnx.parser.parse_model(f"""<ir_version: 10, opset_import: ["": 20]> net {graph}""")
    result = ep.optimize(ep.load(proto))
    assert result.report is not None
    assert "GiB allowed" in str(result.report)
    assert not result.report.ok


@pytest.mark.parametrize(
    "graph",
    [
        "(float[one, 3] a, float[other, 3] b) => (float[one, k] y) { y = Concat<axis = 1>(a, b) }",
        "(float[rows, columns] a) => (float y) { y = Det(a) }",
        """(float[n, 2] a) => (float[1, 2] y) <float most = {0.1}, int64[1] far = {999}> {
            s = Abs(a) r = ReduceMax(s) b = Greater(r, most)
            i = Cast<to = 7>(b) at = Mul(far, i) y = Gather(a, at) }""",
        "(float[1, 1, height, width] a) => (float[1, 1, k, m] y) { y = MaxPool<kernel_shape = [30, 30]>(a) }",
    ],
    ids=["one batch", "square", "neighbours", "large window"],
)
def test_sizes_that_go_together_are_found_where_no_feeds_are_given(graph: str) -> None:
    source = ep.load(onnx.parser.parse_model(f"""<ir_version: 10, opset_import: ["": 18]> net {graph}"""))
    for result in (ep.optimize(source), ep.to_torch(source)):
        assert result.report is not None
        assert result.report.ok, result.report


def test_nodes_that_only_a_later_opset_can_mean_are_refused() -> None:
    proto = onnx.parser.parse_model("""<ir_version: 10, opset_import: ["": 99]> net (float[2] x) => (float[2] y) {
        y = Add(x) }""")
    with pytest.raises(ep.ConversionError, match="cannot read the model"):
        ep.optimize(ep.load(proto), verify=False)


def test_a_model_that_takes_nothing_but_empty_inputs_is_proved_on_them() -> None:
    source = ep.load(
        onnx.parser.parse_model("""<ir_version: 10, opset_import: ["": 20]>
        net (float[0, 3] x) => (float[0, 3] y, float[1, 3] z) {
        a = Neg(x) y = Neg(a) axes = Constant<value_ints = [0]>() z = ReduceSum(y, axes) }
        """)
    )
    result = ep.optimize(source)
    assert result.report is not None
    assert result.report.ok
    assert {run.provider for run in result.report.runs if run.ok} == {"cpu"}


@pytest.mark.parametrize("name", ["mlp", "gru_classifier", "two_tower", "early_exit", "fixed_point", "gpt"])
@pytest.mark.parametrize("opset", [None, 13])
def test_exported_models_compute_the_same(name: str, opset: int | None) -> None:
    zoo = registry.build(name)
    sample = ep.Sample(kwargs=zoo.sample) if isinstance(zoo.sample, dict) else ep.Sample(args=zoo.sample)
    source = ep.export(zoo.module, sample, verify=False, opset=opset, dynamic=False)
    result = ep.simplify(source, verify=False)
    onnx.checker.check_model(result.to_proto(), full_check=True)
    assert len(result.ir.graph) <= len(source.ir.graph)
    parameters = {name for name, _ in zoo.module.named_parameters()} & set(source.ir.graph.initializers)
    assert parameters
    assert parameters <= set(result.ir.graph.initializers)
    feeds = generate(source)
    for expected, actual in zip(run(source.to_proto(), feeds), run(result.to_proto(), feeds), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max(initial=0))


def runnable(step: int) -> list[tuple[str, onnx.ModelProto, dict[str, Any], list[Any]]]:
    """Every so-many-th of onnx's own tests that onnxruntime runs the same way twice, with its inputs and results."""
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the tests compute at the edges of their types
        tests = [test for test in load_model_tests(kind="node") if test.model is not None]
    for test in tests[::step]:
        names = [value.name for value in test.model.graph.input]
        feeds = dict(zip(names, test.data_sets[0][0], strict=False))
        try:
            first, second = run(test.model, feeds), run(test.model, feeds)
        except Exception:  # noqa: BLE001 - whatever onnxruntime says: it is asked for an opinion
            continue
        if all(same(old, new) for old, new in zip(first, second, strict=True)):
            found.append((test.name, test.model, feeds, first))
    return found


def same(expected: Any, actual: Any) -> bool:
    if isinstance(expected, list):
        return len(expected) == len(actual) and all(map(same, expected, actual))
    if expected is None:
        return actual is None
    if expected.dtype != actual.dtype or expected.shape != actual.shape:
        return False
    if expected.dtype.kind != "f":
        return np.array_equal(expected, actual)
    # constants may be rounded once more or less, and a softmax carries that on
    rtol = 4 * np.finfo(expected.dtype).eps
    return np.allclose(
        actual, expected, rtol=rtol, atol=rtol * np.abs(expected[np.isfinite(expected)]).max(initial=0), equal_nan=True
    )


def test_onnx_s_own_tests_give_the_same_results() -> None:
    cases = runnable(step=6)
    assert len(cases) > 150
    fewer, wrong = 0, []
    for name, proto, feeds, expected in cases:
        result = ep.simplify(proto, verify=False).to_proto()
        fewer += len(result.graph.node) < len(proto.graph.node)
        if not all(map(same, expected, run(result, feeds))):
            wrong.append(name)
    assert wrong == []
    assert fewer > 20


MEANS = """<ir_version: 10, opset_import: ["": 20]> net (float[2, 3] x) => (float[2, 3] y, float[2, 3] z)
    <int64[1] at = {9}, int64[1] end = {99}, int64[1] first = {0}> {
        a = Identity(x) y = Neg(a) n = Slice(x, at, end) m = ReduceMean<keepdims = 0>(n, first) z = Add(y, m) }"""


def test_a_runtime_that_reads_the_standard_differently_does_so_in_the_original_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The mean of nothing is NaN by the standard and in our kernels, and 0 in onnxruntime 1.31."""
    source = ep.load(onnx.parser.parse_model(MEANS))
    report = ep.simplify(source).report
    assert report is not None
    assert report.ok, report
    assert {run.provider for run in report.noted} == {"cpu"}
    assert "on onnxruntime agree" in report.summary()
    assert "cpu does the same with the original" in report.summary()
    wrong = ep.load(onnx.parser.parse_model(MEANS.replace("y = Neg(a)", "y = Abs(a)")))
    monkeypatch.setattr(simplification, "_simplified", lambda source, passes: wrong)
    with pytest.raises(ep.VerificationError):
        ep.simplify(source)


def test_bodies_that_onnx_cannot_follow_are_another_reason_to_call_it_unproved(monkeypatch: pytest.MonkeyPatch) -> None:
    def unfollowed(*_: object, **__: object) -> None:
        raise onnx.shape_inference.InferenceError("[TypeInferenceError] no")

    monkeypatch.setattr("onnx.inliner.inline_selected_functions", unfollowed)
    with pytest.raises(ep.UnsupportedOpError, match=r"cannot spell out .*TypeInferenceError"):
        spelled_out(wasteful())
