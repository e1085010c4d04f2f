from __future__ import annotations

import copy
import pickle
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import entrepot as ep
from entrepot.ir.errors import ExecutionError
from tests.judges.agreement import assert_as_expected
from tests.judges.bounds import expectations
from tests.op_cases.case import Case

MLP = """<ir_version: 10, opset_import: ["": 28]>
mlp (float[N, 2] x) => (float[N, 2] y, float[N, 2] hidden)
<float[2, 2] weight = {1.0, -1.0, 2.0, 0.5}, float[2] bias = {0.5, -0.5}>
{
    product = MatMul(x, weight)
    shifted = Add(product, bias)
    hidden = Relu(shifted)
    y = Mul(hidden, hidden)
}"""


def model(text: str) -> ep.Model:
    return ep.load(onnx.parser.parse_model(text))


def f32(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


def test_outputs_come_by_name_in_graph_order() -> None:
    outputs = ep.Session(model(MLP)).run({"x": f32(1, 2).reshape(1, 2)})
    assert list(outputs) == ["y", "hidden"]
    np.testing.assert_array_equal(outputs["hidden"], [[5.5, 0.0]])
    np.testing.assert_array_equal(outputs["y"], [[30.25, 0.0]])


def test_the_source_is_readable_and_deletes_what_is_dead() -> None:
    lines = [line.strip() for line in ep.Session(model(MLP)).source().splitlines()]
    assert lines[0] == "def run(x):"
    assert any(line.startswith("hidden = ") for line in lines)
    assert any(line.startswith("del ") and "x" in line for line in lines)
    assert lines[-1] == "return (y, hidden,)"


def test_only_what_the_asked_outputs_need_is_run() -> None:
    text = """<ir_version: 10, opset_import: ["": 28]>
    g (float[2] x, int64[1] shape) => (float[2] good, float[n] bad) { good = Relu(x)  bad = Reshape(x, shape) }"""
    session = ep.Session(model(text))
    feeds = {"x": f32(1, -1), "shape": np.array([3])}
    np.testing.assert_array_equal(session.run(feeds, ["good"])["good"], [1, 0])
    with pytest.raises(ExecutionError, match="Reshape"):
        session.run(feeds)


def test_a_value_inside_the_graph_can_be_asked_for() -> None:
    outputs = ep.Session(model(MLP)).run({"x": f32(1, 2).reshape(1, 2)}, ["product"])
    np.testing.assert_array_equal(outputs["product"], [[5.0, 0.0]])


def test_an_unknown_output_is_refused_with_those_there_are() -> None:
    with pytest.raises(ep.InputError, match=r"no output 'z'.*\['y', 'hidden'\]"):
        ep.Session(model(MLP)).run({"x": f32(1, 2).reshape(1, 2)}, ["z"])


def test_a_failing_kernel_names_its_node() -> None:
    text = """<ir_version: 10, opset_import: ["": 28]>
    g (float[N] x, float[M] y) => (float[K] z) { a = Relu(x)  [joining] z = Add(a, y) }"""
    with pytest.raises(ExecutionError, match=r"node 'joining' \(Add, opset 28\)"):
        ep.Session(model(text)).run({"x": f32(1, 2), "y": f32(1, 2, 3)})


def test_nodes_out_of_order_run() -> None:
    proto = onnx.parser.parse_model(MLP)
    nodes = list(proto.graph.node)[::-1]
    del proto.graph.node[:]
    proto.graph.node.extend(nodes)
    outputs = ep.Session(ep.load(proto)).run({"x": f32(1, 2).reshape(1, 2)})
    np.testing.assert_array_equal(outputs["y"], [[30.25, 0.0]])


def test_every_unsupported_node_is_named_at_once() -> None:
    text = """<ir_version: 10, opset_import: ["": 28, "ai.onnx.preview.training": 1]>
    g (float r, int64 t, float[2] x, float[2] d, float[2] v) => (float[2] z) {
        [first] a, b = ai.onnx.preview.training.Gradient<xs=["x"], y="d">(x, d)
        [second] c, e = ai.onnx.preview.training.Gradient<xs=["x"], y="d">(a, v)
        z = Add(c, e)
    }"""
    with pytest.raises(ep.UnsupportedOpError, match=r"(?s)'first'.*'second'"):
        ep.Session(model(text))


def test_overflow_in_a_kernel_is_no_warning() -> None:
    text = """<ir_version: 10, opset_import: ["": 28]> g (float[2] x) => (float[2] y) { y = Exp(x) }"""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isinf(ep.Session(model(text)).run({"x": f32(1000, 1000)})["y"]).all()


def test_results_are_the_callers_own() -> None:
    text = """<ir_version: 10, opset_import: ["": 28]>
    g (float[2] x) => (float[2] same, float[2] fixed, float[1, 2] view) <float[2] w = {1.0, 2.0}, int64[2] s = {1, 2}>
    { same = Identity(x)  fixed = Identity(w)  view = Reshape(x, s) }"""
    session = ep.Session(model(text))
    x = f32(1, 2)
    for value in session.run({"x": x}).values():
        np.add(value, 7, out=value)
    np.testing.assert_array_equal(x, [1, 2])
    np.testing.assert_array_equal(session.run({"x": x})["fixed"], [1, 2])


def test_results_lie_forwards_in_memory() -> None:
    text = """<ir_version: 10, opset_import: ["": 28]> g (float[2, n] x) => (float[2, n] y)
    <int64[1] last = {-1}, int64[1] before = {-9}, int64[1] axis = {1}, int64[1] back = {-1}>
    { z = Exp(x)  y = Slice(z, last, before, axis, back) }"""
    for length in (3, 1):
        x = np.arange(2 * length, dtype=np.float32).reshape(2, length)
        (found,) = ep.Session(model(text)).run({"x": x}).values()
        np.testing.assert_allclose(found, np.exp(x)[:, ::-1], rtol=1e-6)
        assert min(found.strides) > 0


def test_initializers_that_are_inputs_can_be_fed() -> None:
    text = """<ir_version: 10, opset_import: ["": 28]>
    g (float[2] x, float[2] w = {1.0, 2.0}) => (float[2] y) { y = Mul(x, w) }"""
    session = ep.Session(model(text))
    np.testing.assert_array_equal(session.run({"x": f32(3, 4)})["y"], [3, 8])
    np.testing.assert_array_equal(session.run({"x": f32(3, 4), "w": f32(5, 5)})["y"], [15, 20])
    np.testing.assert_array_equal(session.run({"x": f32(3, 4)})["y"], [3, 8])


def test_constants_are_folded_and_their_nodes_gone() -> None:
    text = """<ir_version: 10, opset_import: ["": 28]>
    g (float[2] x) => (float[2] y) <float[2] w = {1.0, 2.0}> { twice = Add(w, w)  y = Mul(x, twice) }"""
    session = ep.Session(model(text))
    assert "add" not in session.source()
    np.testing.assert_array_equal(session.run({"x": f32(1, 1)})["y"], [2, 4])


def test_random_operators_are_not_folded() -> None:
    text = """<ir_version: 10, opset_import: ["": 28]>
    g (float[1] x) => (float[64] y) <float[64] w> { y = RandomUniformLike(w) }"""
    text = text.replace("<float[64] w>", "").replace("RandomUniformLike(w)", "RandomUniform<shape=[64]>()")
    session = ep.Session(model(text))
    first, second = (session.run({"x": f32(1)})["y"] for _ in range(2))
    assert not np.array_equal(first, second)


def test_operators_without_a_kernel_run_by_their_function_body(monkeypatch: pytest.MonkeyPatch) -> None:
    from entrepot.runtime.binding import Kernels
    from entrepot.runtime.providers.cpu.table import KERNELS

    text = """<ir_version: 10, opset_import: ["": 28]>
    g (float[3] x) => (float[3] y, float[3] z) { y = Elu<alpha=2.0>(x)  z = Softmax(x) }"""
    x = f32(-1, 0, 2)
    known = KERNELS.is_known
    monkeypatch.setattr(Kernels, "is_known", lambda self, key: key.op_type not in ("Elu", "Softmax") and known(key))
    session = ep.Session(model(text))
    assert "elu(" not in session.source()
    assert "softmax(" not in session.source()
    bodies = session.run({"x": x})
    for name, case in (("y", Case("Elu", x, alpha=2.0)), ("z", Case("Softmax", x))):
        for oracle, (expected,) in expectations(case).items():
            assert_as_expected(bodies[name], expected, oracle)


def test_strings_in_the_file_are_text_like_those_that_are_fed() -> None:
    text = """<ir_version: 10, opset_import: ["": 28]>
    g (string[1] x) => (string[1] y, string[1] z) <string[1] w = {"é!"}> {
        y = StringConcat(x, w)  c = Constant<value = string[1] {"ü"}>()  z = StringConcat(c, x)
    }"""
    for provider in ("cpu", "reference", "onnxruntime"):
        results = ep.Session(model(text), providers=[provider]).run({"x": ["a"]})
        assert (results["y"].tolist(), results["z"].tolist()) == (["aé!"], ["üa"])


FUNCTIONS = """<ir_version: 10, opset_import: ["": 28, "local": 1]>
g (float[2] x) => (float[2] y) { y = local.twice<by=3.0>(x) }
<domain: "local", opset_import: ["": 28, "local": 1]>
twice <by> (a) => (b) { s = local.scale<factor: float = @by>(a)  b = Add(s, s) }
<domain: "local", opset_import: ["": 28]>
scale <factor> (a) => (b) { f = Constant<value_float: float = @factor>()  b = Mul(a, f) }
"""


@pytest.mark.parametrize("provider", ["cpu", "reference", "onnxruntime", "torch"])
def test_model_local_functions_are_inlined_with_their_attributes(provider: str) -> None:
    outputs = ep.Session(model(FUNCTIONS), providers=[provider]).run({"x": f32(1, -2)})
    np.testing.assert_array_equal(outputs["y"], [6, -12])


def test_a_chain_of_functions_that_explodes_is_refused() -> None:
    text = FUNCTIONS.replace("b = Add(s, s)", " ".join(f"b{i} = Add(s, s)" for i in range(50)) + " b = Add(s, s)")
    with pytest.raises(ep.ResourceLimitError, match="nodes"):
        ep.Session(model(text), limits=ep.Limits(expanded_nodes=20))


def test_a_model_below_the_hub_is_raised_first() -> None:
    text = """<ir_version: 8, opset_import: ["": 18]> g (float[2] x) => (float y) { y = ReduceSum<keepdims=0>(x) }"""
    assert ep.Session(model(text)).run({"x": f32(1, 2)})["y"] == 3


def test_sparse_initializers_are_weights_like_others() -> None:
    proto = onnx.parser.parse_model(
        """<ir_version: 10, opset_import: ["": 28]> g (float[4] x) => (float[4] y) { y = Mul(x, w) }"""
    )
    sparse = onnx.helper.make_sparse_tensor(
        onnx.helper.make_tensor("w", onnx.TensorProto.FLOAT, [2], [2.0, 3.0]),
        onnx.helper.make_tensor("w_indices", onnx.TensorProto.INT64, [2], [1, 3]),
        [4],
    )
    proto.graph.sparse_initializer.append(sparse)
    np.testing.assert_array_equal(ep.Session(ep.load(proto)).run({"x": f32(1, 1, 1, 1)})["y"], [0, 2, 0, 3])


def test_one_session_serves_many_threads() -> None:
    text = """<ir_version: 10, opset_import: ["": 28]>
    g (float[N, 2, 9, 9] x) => (float[N, 3, 9, 9] y)
    { c = Conv<pads = [1, 1, 1, 1]>(x, w)  r = Relu(c)  y = Add(r, r) }"""
    rng = np.random.default_rng(0)
    proto = onnx.parser.parse_model(text)
    weight = rng.standard_normal((3, 2, 3, 3)).astype(np.float32)
    proto.graph.initializer.append(onnx.numpy_helper.from_array(weight, "w"))
    session = ep.Session(ep.load(proto))
    feeds = [{"x": rng.standard_normal((n % 3 + 1, 2, 9, 9)).astype(np.float32)} for n in range(12)]
    expected = [session.run(each)["y"] for each in feeds]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(5):
            for wanted, found in zip(expected, pool.map(session.run, feeds), strict=True):
                np.testing.assert_array_equal(found["y"], wanted)


def test_a_session_may_run_inside_the_observer_of_another() -> None:
    inner = ep.Session(model(MLP))
    outer = ep.Session(model(MLP), providers=["reference"])
    seen: list[np.ndarray] = []
    feeds = {"x": f32(1, 2).reshape(1, 2)}
    outer.run(feeds, observe=lambda name, value: seen.append(inner.run(feeds)["y"]))
    assert len(seen) == 4
    np.testing.assert_array_equal(seen[0], [[30.25, 0.0]])


def test_one_provider_may_stand_for_itself_and_each_counts_once() -> None:
    assert ep.Session(model(MLP), providers="reference").providers == ("reference",)
    assert ep.Session(model(MLP), providers=["cpu", "reference", "cpu"]).providers == ("cpu", "reference")


@pytest.mark.parametrize("bad", [None, [], 3, ["cpu", 3], {"cpu"}, "gpu", ["cpu", "gpu"], "cpu,reference"])
def test_what_names_no_provider_is_refused_with_those_there_are(bad: Any) -> None:
    with pytest.raises(ep.InputError, match="provider"):
        ep.Session(model(MLP), providers=bad)


@pytest.mark.parametrize("threads", [2, "2", 2.0, np.int32(2)])
def test_threads_are_a_number_however_it_is_written(threads: Any) -> None:
    assert ep.Session(model(MLP), threads=threads).threads == 2


@pytest.mark.parametrize("threads", [0, -1, "two", 1.5, True, [2]])
def test_what_is_no_number_of_threads_is_refused(threads: Any) -> None:
    with pytest.raises(ep.InputError, match=r"threads is .*, expected a whole number of 1 or more"):
        ep.Session(model(MLP), threads=threads)


PAIR = """<ir_version: 10, opset_import: ["": 28]>
pair (float[2] a, float[2] b, float[2] w = {1.0, 2.0}) => (float[2] y, float[2] z) { y = Sub(a, b)  z = Mul(a, w) }"""

X = f32(1, 2).reshape(1, 2)


@pytest.mark.parametrize(
    "given",
    [
        (X,),
        ([X],),
        ((X,),),
        (X.tolist(),),
        ({"x": X},),
        (None, {"x": X}),
        ({"x": X}, None),
        (["y", "hidden"], {"x": X}),
    ],
)
def test_the_one_input_of_a_model_needs_no_name(given: tuple[Any, ...]) -> None:
    outputs = ep.Session(model(MLP)).run(*given)
    assert list(outputs) == ["y", "hidden"]
    np.testing.assert_array_equal(outputs["y"], [[30.25, 0.0]])


def test_outputs_may_come_first_as_onnxruntime_has_it() -> None:
    session = ep.Session(model(MLP))
    for given in ((["hidden"], {"x": X}), ("hidden", {"x": X}), ({"x": X}, "hidden"), (X, ("hidden",))):
        assert list(session.run(*given)) == ["hidden"]


def test_several_inputs_may_come_in_order() -> None:
    session = ep.Session(model(PAIR))
    for given in ([f32(5, 5), f32(1, 2)], (f32(5, 5), [1.0, 2.0])):
        np.testing.assert_array_equal(session.run(given)["y"], [4, 3])


@pytest.mark.parametrize("bad", [None, X, [X], "a", 3, [X, X, X], object()])
def test_feeds_of_another_form_are_refused_with_what_is_taken(bad: Any) -> None:
    with pytest.raises(
        ep.InputError, match=r"expected a dict of arrays by name \(hint: the model's inputs are \['a', 'b'\]"
    ):
        ep.Session(model(PAIR)).run(bad)


@pytest.mark.parametrize("bad", [None, object(), {1: X}, "a", ["x"]])
def test_one_input_takes_no_nonsense_either(bad: Any) -> None:
    with pytest.raises(ep.InputError):
        ep.Session(model(MLP)).run(bad)


@pytest.mark.parametrize("bad", [3, [3], [None], {"y": 1}, [["y"]], "z"])
def test_what_names_no_output_is_refused(bad: Any) -> None:
    with pytest.raises(ep.InputError, match=r"outputs is|no output"):
        ep.Session(model(MLP)).run({"x": X}, bad)


def test_a_list_fed_to_a_sequence_is_the_sequence() -> None:
    text = """<ir_version: 10, opset_import: ["": 20]>
    g (seq(float[N]) s) => (float[M] y) { y = ConcatFromSequence<axis = 0>(s) }"""
    session = ep.Session(model(text))
    np.testing.assert_array_equal(session.run([f32(1, 2)])["y"], [1, 2])
    np.testing.assert_array_equal(session.run([f32(1, 2), f32(3)])["y"], [1, 2, 3])


def test_a_session_is_called_like_the_function_it_is() -> None:
    session = ep.Session(model(PAIR))
    for y, z in (session(f32(5, 5), f32(1, 2)), session(f32(5, 5), b=f32(1, 2)), session(b=f32(1, 2), a=f32(5, 5))):
        np.testing.assert_array_equal(y, [4, 3])
        np.testing.assert_array_equal(z, [5, 10])
    np.testing.assert_array_equal(session(f32(5, 5), f32(1, 2), w=f32(2, 2))[1], [10, 10])
    text = """<ir_version: 10, opset_import: ["": 28]> g (float[2] x) => (float[2] y) { y = Relu(x) }"""
    np.testing.assert_array_equal(ep.Session(model(text))(f32(-1, 2)), [0, 2])


def test_a_call_that_does_not_fit_is_refused() -> None:
    session = ep.Session(model(PAIR))
    with pytest.raises(ep.InputError, match="3 arrays are more than there are inputs"):
        session(X, X, X)
    with pytest.raises(ep.InputError, match=r"given by position and by name: \['a'\]"):
        session(X, a=X)
    with pytest.raises(ep.InputError, match=r"missing \['b'\]"):
        session(f32(1, 2))


def test_a_session_tells_its_interface() -> None:
    session = ep.Session(model(MLP), threads=2)
    assert [str(spec) for spec in session.inputs] == ["x: float32[N, 2]"]
    assert session.outputs == session.model.outputs
    assert repr(session).splitlines() == [
        "entrepot.Session 'mlp' on cpu, 2 threads",
        "  in   x: float32[N, 2]",
        "  out  y: float32[N, 2]",
        "  out  hidden: float32[N, 2]",
    ]


def test_a_session_travels_with_its_model(tmp_path: Path) -> None:
    session = ep.Session(model(MLP), providers=["reference", "cpu"], threads=2, limits=ep.Limits(loop_iterations=3))
    for other in (pickle.loads(pickle.dumps(session)), copy.deepcopy(session), copy.copy(session)):
        assert (other.providers, other.threads) == (("reference", "cpu"), 2)
        np.testing.assert_array_equal(other.run(X)["y"], [[30.25, 0.0]])


def test_a_session_on_a_file_travels_by_its_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model(MLP).save(tmp_path / "net.onnx")
    monkeypatch.chdir(tmp_path)
    content = pickle.dumps(ep.Session("net.onnx", threads="1"))
    assert b"net.onnx" in content
    assert b"MatMul" not in content
    monkeypatch.chdir("/")
    np.testing.assert_array_equal(pickle.loads(content).run(X)["y"], [[30.25, 0.0]])
    (tmp_path / "net.onnx").unlink()
    with pytest.raises(ep.MissingFileError):
        pickle.loads(content)


@pytest.mark.parametrize("provider", ["cpu", "reference", "onnxruntime", "torch"])
def test_members_of_a_sequence_that_was_fed_come_back_as_copies(provider: str) -> None:
    text = """<ir_version: 10, opset_import: ["": 20]>
    g (seq(float[N]) s, float[N] x) => (seq(float[N]) t, float[M] first) <int64 zero = {0}>
    { t = SequenceInsert(s, x)  first = SequenceAt(s, zero) }"""
    session = ep.Session(model(text), providers=[provider])
    members, x = [f32(1, 2), f32(3)], f32(4, 5, 6)
    out = session.run({"s": members, "x": x})
    for value in [*out["t"], out["first"]]:
        np.add(value, 7, out=value)
    assert [list(member) for member in [*members, x]] == [[1, 2], [3], [4, 5, 6]]
