from __future__ import annotations

import gc
import sys

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx.numpy_helper import from_array

import entrepot as ep

ADD = """<ir_version: 10, opset_import: ["": OPSET]>
g (float[N] x) => (float[N] y) <float[1] w = {2.0}> { a = Mul(x, w)  y = Relu(a) }"""


def model(text: str) -> ep.Model:
    return ep.load(onnx.parser.parse_model(text))


def f32(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


@pytest.mark.parametrize("opset", [13, 20, 28])
def test_models_of_any_opset_run(opset: int) -> None:
    session = ep.Session(model(ADD.replace("OPSET", str(opset))), providers=["onnxruntime"])
    np.testing.assert_array_equal(session.run({"x": f32(-1, 3)})["y"], [0, 6])


def test_the_plan_says_that_the_whole_model_went_there() -> None:
    plan = ep.Session(model(ADD.replace("OPSET", "20")), providers=["onnxruntime", "cpu"]).plan()
    assert [row.provider for row in plan.placements] == ["onnxruntime", "onnxruntime"]
    assert "onnxruntime" in str(plan)


MIXED = """<ir_version: 10, opset_import: ["": 28]>
g (float[N] x, int16[N] s) => (float[N] y, int16[N] t)
<float[1] w = {2.0}> { a = Mul(x, w)  b = Relu(a)  t = Min(s, s)  y = Add(b, w) }"""


def test_what_it_declines_runs_at_the_next_provider() -> None:
    session = ep.Session(model(MIXED), providers=["onnxruntime", "cpu"])
    rows = {row.op_type: row for row in session.plan().placements}
    assert [rows[kind].provider for kind in ("Mul", "Relu", "Min", "Add")] == [
        "onnxruntime", "onnxruntime", "cpu", "onnxruntime",
    ]  # fmt: skip
    assert "onnxruntime" in rows["Min"].declined
    out = session.run({"x": f32(-1, 3), "s": np.array([8, 1], np.int16)})
    np.testing.assert_array_equal(out["y"], [2, 8])
    np.testing.assert_array_equal(out["t"], [8, 1])


CONSTANTS = """<ir_version: 10, opset_import: ["": 28]>
g (float[N] x, int16[N] s) => (float[N, 1] y, int16[N] t)
{ shape = Constant <value = int64[2] {-1, 1}> ()  y = Reshape(x, shape)  t = Min(s, s) }"""


def test_a_node_that_reads_a_constant_is_not_taken_for_one_that_it_declines() -> None:
    session = ep.Session(model(CONSTANTS), providers=["onnxruntime", "cpu"])
    rows = {row.op_type: row for row in session.plan().placements}
    assert (rows["Reshape"].provider, rows["Reshape"].declined) == ("onnxruntime", {})
    out = session.run({"x": f32(-1, 3), "s": np.array([8, 1], np.int16)})
    np.testing.assert_array_equal(out["y"], [[-1], [3]])


def test_alone_it_names_what_it_declines() -> None:
    with pytest.raises(ep.UnsupportedOpError, match=r"no provider among onnxruntime runs:\n.*Min"):
        ep.Session(model(MIXED), providers=["onnxruntime"])


def test_outputs_can_be_chosen() -> None:
    chosen = ep.Session(model(ADD.replace("OPSET", "20")), providers=["onnxruntime"])
    np.testing.assert_array_equal(chosen.run({"x": f32(-1, 3)}, ["a"])["a"], [-2, 6])


def test_bfloat16_goes_in_and_out() -> None:
    text = """<ir_version: 10, opset_import: ["": 20]> g (bfloat16[2] x) => (bfloat16[2] y) { y = Identity(x) }"""
    x = np.array([1.5, -2], ml_dtypes.bfloat16)
    y = ep.Session(model(text), providers=["onnxruntime"]).run({"x": x})["y"]
    assert y.dtype == x.dtype
    np.testing.assert_array_equal(y, x)


def test_its_failures_are_ours() -> None:
    text = """<ir_version: 10, opset_import: ["": 20]> g (float[N] x, float[M] y) => (float[K] z) { z = Add(x, y) }"""
    session = ep.Session(model(text), providers=["onnxruntime"])
    with pytest.raises(ep.EntrepotError, match="onnxruntime"):
        session.run({"x": f32(1, 2), "y": f32(1, 2, 3)})


def test_without_the_package_it_is_an_error_not_a_fallback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(ep.MissingDependencyError, match="pip install"):
        ep.Session(model(ADD.replace("OPSET", "20")), providers=["onnxruntime", "cpu"])


def test_an_unknown_provider_is_refused_with_those_there_are() -> None:
    with pytest.raises(ep.InputError, match=r"unknown provider 'rocm'.*cpu, reference, onnxruntime"):
        ep.Session(model(ADD.replace("OPSET", "20")), providers=["rocm"])


def test_what_is_too_large_for_a_protobuf_goes_by_file(monkeypatch: pytest.MonkeyPatch) -> None:
    from entrepot.runtime.providers.onnxruntime import weights

    monkeypatch.setattr(weights, "INLINE_BYTES", 0)
    session = ep.Session(model(ADD.replace("OPSET", "20")), providers=["onnxruntime"], threads=1)
    np.testing.assert_array_equal(session.run({"x": f32(-1, 3)})["y"], [0, 6])


SCALED = """<ir_version: 10, opset_import: ["": 20]>
g (float[N, 3000] x, float[3000] offset) => (float[N, 3000] y) { a = Mul(x, weight)  y = Add(a, offset) }"""


def test_weights_are_read_where_they_are_and_outlive_their_model(monkeypatch: pytest.MonkeyPatch) -> None:
    import onnxruntime

    made = onnx.parser.parse_model(SCALED)
    weight, offset = np.arange(3000, dtype=np.float32), np.full(3000, 2, np.float32)
    made.graph.initializer.extend([from_array(weight, "weight"), from_array(offset, "offset")])
    given: list[int] = []
    give = onnxruntime.OrtValue.ortvalue_from_numpy
    monkeypatch.setattr(onnxruntime.OrtValue, "ortvalue_from_numpy", lambda x: (given.append(x.nbytes), give(x))[1])
    session = ep.Session(ep.load(made), providers=["onnxruntime"])
    assert given == [12000]
    del made
    gc.collect()
    x = np.ones((2, 3000), np.float32)
    np.testing.assert_array_equal(session.run({"x": x})["y"], x * weight + offset)
    np.testing.assert_array_equal(session.run({"x": x, "offset": weight})["y"], x * weight + weight)


@pytest.fixture
def shifted(monkeypatch: pytest.MonkeyPatch) -> ep.Model:
    """``(x + offset) * 2`` with a weight that is not small, in a process where each is large."""
    from entrepot.runtime.providers.onnxruntime import weights

    monkeypatch.setattr(weights, "_COPIED_BYTES", 0)
    made = onnx.parser.parse_model(ADD.replace("OPSET", "20").replace("Relu(a)", "Add(a, offset)"))
    made.graph.initializer.append(from_array(np.arange(3000, dtype=np.float32), "offset"))
    return ep.load(made)


def test_no_thread_waits_busily_for_a_few_runs(shifted: ep.Model) -> None:
    from entrepot.runtime.providers.onnxruntime.engine import Engine

    options = Engine(shifted, ["x"], ["y"], None, frugal=True)._session.get_session_options()
    assert options.get_session_config_entry("session.intra_op.allow_spinning") == "0"


@pytest.mark.parametrize("frugal", [True, False])
def test_large_weights_are_read_where_they_are_for_a_few_runs(frugal: bool, shifted: ep.Model) -> None:
    from entrepot.runtime.providers.onnxruntime.engine import Engine

    made = Engine(shifted, ["x"], ["y"], 1, frugal=frugal)
    assert list(made._fed) == (["offset"] if frugal else [])
    if frugal:
        assert np.shares_memory(made._fed["offset"], shifted.ir.graph.initializers["offset"].const_value.numpy())
    x = np.ones(3000, np.float32)
    np.testing.assert_array_equal(made.run(x)[0], x * 2 + np.arange(3000, dtype=np.float32))


def test_sessions_that_pass_read_large_weights_where_they_are(
    shifted: ep.Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    from entrepot.runtime.providers.onnxruntime import weights

    given: list[object] = []
    give = weights._give
    monkeypatch.setattr(weights, "_give", lambda *of: (given.append(of), give(*of))[1])
    with weights.passing():
        session = ep.Session(shifted, providers=["onnxruntime"])
    assert not given
    x = np.ones(3000, np.float32)
    np.testing.assert_array_equal(session.run({"x": x})["y"], x * 2 + np.arange(3000, dtype=np.float32))
    ep.Session(shifted, providers=["onnxruntime"])
    assert len(given) == 1


def test_initializers_that_are_inputs_can_be_fed() -> None:
    text = """<ir_version: 10, opset_import: ["": 20]>
    g (float[2] x, float[2] w = {1.0, 2.0}) => (float[2] y) { y = Mul(x, w) }"""
    session = ep.Session(model(text), providers=["onnxruntime"])
    np.testing.assert_array_equal(session.run({"x": f32(3, 4)})["y"], [3, 8])
    np.testing.assert_array_equal(session.run({"x": f32(3, 4), "w": f32(5, 5)})["y"], [15, 20])


GATED = """<ir_version: 10, opset_import: ["": 20]>
g (float[T, N, 3] x, bool outside) => (float[T, A, N, B] y) {
    y = If(outside) <
        then_branch = one () => (float[T, A, N, B] a) { w = Cast<to = 1>(weights)  a = OP<hidden_size = 5>(x, w, r) },
        else_branch = other () => (float[T, A, N, B] b) { b = OP<hidden_size = 5>(x, weights, r) }
    >
}"""


@pytest.mark.parametrize(
    ("op_type", "gates", "sizes"), [("GRU", 3, (0, 2)), ("GRU", 3, (4, 0)), ("LSTM", 4, (4, 0))], ids=str
)
def test_recurrent_layers_of_nothing_are_an_error_that_can_be_caught(
    op_type: str, gates: int, sizes: tuple[int, int]
) -> None:
    made = onnx.parser.parse_model(GATED.replace("OP", op_type))
    for name, width in (("weights", 3), ("r", 5)):
        made.graph.initializer.append(from_array(np.full((1, gates * 5, width), 0.1, np.float32), name))
    session, cpu = (ep.Session(ep.load(made), providers=[name]) for name in ("onnxruntime", "cpu"))
    outside, x = np.array(op_type == "GRU"), np.ones((4, 2, 3), np.float32)
    feeds = {"x": x, "outside": outside}
    assert session.run(feeds)["y"].shape == cpu.run(feeds)["y"].shape == (4, 1, 2, 5)
    with pytest.raises(ep.ExecutionError, match=f"{op_type} .* of nothing"):
        session.run({"x": np.ones((*sizes, 3), np.float32), "outside": outside})
