"""A provider on a device of its own: what crosses to it and back, and what never does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
import pytest

import entrepot as ep
from entrepot.runtime.planning import lanes
from tests.judges.agreement import assert_as_expected
from tests.judges.bounds import expectations
from tests.op_cases import all_cases
from tests.runtime import toy_device
from tests.runtime.opaque import Opaque, bare

HEAD = '<ir_version: 10, opset_import: ["": 28]>\n'


@pytest.fixture
def crossings() -> Iterator[Counter[str]]:
    with toy_device.installed() as counts:
        yield counts


def model(text: str) -> ep.Model:
    return ep.load(onnx.parser.parse_model(HEAD + text))


def f32(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


FLATTENED = """g (float[N, 2, 3] x) => (float[N, M] y) <int64[1] rest = {-1}, float[6] w = {1, 2, 3, 4, 5, 6}> {
    s = Shape(x)  zero = Constant<value = int64[1] {0}>()  n = Gather(s, zero)
    two = Concat<axis = 0>(n, rest)  flat = Reshape(x, two)  y = Mul(flat, w)
}"""


def test_shapes_are_computed_on_the_host_and_nothing_waits_for_the_device(crossings: Counter[str]) -> None:
    session = ep.Session(model(FLATTENED), providers=["toy"])
    crossings.clear()
    x = f32(4, 2, 3)
    np.testing.assert_array_equal(session.run({"x": x})["y"], x.reshape(4, 6) * np.arange(1, 7, dtype=np.float32))
    assert crossings == {"to device": 1, "to host": 1}  # the feed and the result


def test_the_plan_says_what_runs_on_the_host(crossings: Counter[str]) -> None:
    rows = {row.op_type: row.how for row in ep.Session(model(FLATTENED), providers=["toy"]).plan().placements}
    assert rows == {"Shape": "host", "Constant": "constant", "Gather": "host", "Concat": "host", "Reshape": "shared",
                    "Mul": "shared"}  # fmt: skip


def test_a_feed_on_the_device_stays_there_and_so_does_the_result(crossings: Counter[str]) -> None:
    session = ep.Session(model(FLATTENED), providers=["toy"])
    crossings.clear()
    for _ in range(2):
        y = session.run({"x": Opaque(f32(4, 2, 3))})["y"]
        assert isinstance(y, Opaque)
        assert crossings == {}


def test_a_fed_array_is_not_handed_back_as_the_result(crossings: Counter[str]) -> None:
    x = Opaque(f32(2))
    y = ep.Session(model("g (float[2] x) => (float[2] y) { y = Identity(x) }"), providers=["toy"]).run({"x": x})["y"]
    assert y is not x
    np.testing.assert_array_equal(bare(y), bare(x))


def test_a_constant_result_belongs_to_the_caller(crossings: Counter[str]) -> None:
    text = "g (float[2] x) => (float[2] y, float[2] z) <float[2] y = {1, 2}> { z = Neg(x) }"
    session = ep.Session(model(text), providers=["toy"])
    first = session.run({"x": f32(2)})["y"]
    first += 1
    np.testing.assert_array_equal(session.run({"x": f32(2)})["y"], [1, 2])
    assert isinstance(session.run({"x": Opaque(f32(2))})["y"], Opaque)


@pytest.mark.parametrize(
    ("feed", "message"),
    [
        (np.zeros((4, 2, 3)), "expected float64|expected float32, got float64"),
        (np.zeros((4, 2, 4), np.float32), "axis 2 is 4, expected 3"),
        (np.zeros((4, 2), np.float32), "expected rank 3"),
    ],
)
@pytest.mark.parametrize("far", [False, True])
def test_a_wrong_feed_is_refused_wherever_it_is(crossings: Counter[str], feed: Any, message: str, far: bool) -> None:
    session = ep.Session(model(FLATTENED), providers=["toy"])
    with pytest.raises(ep.InputError, match=message):
        session.run({"x": Opaque(feed) if far else feed})


def test_each_weight_is_placed_once_for_all_choices_of_outputs(crossings: Counter[str]) -> None:
    text = """g (float[2, 2] x) => (float[2, 2] a, float[2, 2] b) <float[2, 2] w = {1, 2, 3, 4}> {
        a = MatMul(x, w)  c = MatMul(a, w)  b = Add(c, w)
    }"""
    session = ep.Session(model(text), providers=["toy"])
    assert crossings == {"to device": 1}
    x = f32(2, 2)
    crossings.clear()
    for outputs in ("a", "b", ["a", "b"]):
        session.run({"x": x}, outputs)
    assert crossings["to device"] == 3  # the feeds


def test_a_size_that_depends_on_data_is_copied_once(crossings: Counter[str]) -> None:
    text = """g (float[N] x, int64[1] far) => (float[M] y, float[M] z) <int64[1] one = {1}> {
        i = Cast<to = 7>(x)  k = ReduceMax(i)  shape = Reshape(k, one)  y = Expand(x, shape)  z = Tile(x, shape)
    }"""
    text = text.replace(", int64[1] far", "")
    session = ep.Session(model(text), providers=["toy"])
    crossings.clear()
    results = session.run({"x": np.array([3], np.float32)})
    np.testing.assert_array_equal(results["y"], [3, 3, 3])
    assert crossings == {"to device": 1, "to host": 1 + 2}


def test_sizes_that_are_fed_stay_on_the_host(crossings: Counter[str]) -> None:
    text = "g (float[N] x, int64[1] s) => (float[M] y, int64[1] t) { y = Expand(x, s)  t = Add(s, s) }"
    session = ep.Session(model(text), providers=["toy"])
    crossings.clear()
    results = session.run({"x": np.ones(1, np.float32), "s": np.array([3])})
    assert results["y"].shape == (3,)
    assert results["t"] == 6
    assert crossings["to host"] <= 2


def test_strings_never_cross(crossings: Counter[str]) -> None:
    text = """g (string[N] x, float[N] f) => (float[N] y, string[N] z) {
        n = Cast<to = 1>(x)  y = Add(n, f)  z = Cast<to = 8>(y)
    }"""
    out = ep.Session(model(text), providers=["toy"]).run({"x": ["1", "2.5"], "f": np.ones(2, np.float32)})
    np.testing.assert_array_equal(out["y"], [2, 3.5])
    assert out["z"].tolist() == ["2.0", "3.5"]


def test_what_the_device_has_no_kernel_for_runs_on_the_host_where_it_belongs(crossings: Counter[str]) -> None:
    text = """g (float[9, 4] x) => (float[9, 8] y) {
        bins = Constant<value = int64 {8}>()  size = Constant<value = int64 {6}>()
        rate = Constant<value = int64 {8192}>()
        low = Constant<value = float {0}>()  high = Shape(x)  f = Cast<to = 1>(high)  top = ReduceMax<keepdims = 0>(f)
        m = MelWeightMatrix(bins, size, rate, low, top)  y = MatMul(x, m)
    }"""
    session = ep.Session(model(text), providers=["toy"])
    rows = {row.op_type: row.how for row in session.plan().placements}
    assert (rows["MelWeightMatrix"], rows["MatMul"]) == ("host", "shared")
    x = f32(9, 4)
    expected = ep.Session(model(text), providers=["cpu"]).run({"x": x})["y"]
    np.testing.assert_allclose(session.run({"x": x})["y"], expected, rtol=1e-6)


LOOP = """g (float[N] x, int64 n) => (float[N] y, float[K, 1] s, int64 m) <int64[1] one = {1}, int64[1] axis = {0}> {
    m, y, s = Loop(n, , n, x) <
        body = b (int64 i, bool c, int64 k, float[N] a) => (bool go, int64 k2, float[N] a2, float[1] p) {
        go = Constant<value = bool {1}>()
        start = Unsqueeze(i, axis)  stop = Add(start, one)  p = Slice(x, start, stop, axis)
        a2 = Add(a, p)  k2 = Sub(k, i)
    }>
}"""


def test_a_loop_slices_by_the_number_of_its_iteration(crossings: Counter[str]) -> None:
    session = ep.Session(model(LOOP), providers=["toy"])
    x = f32(3)
    crossings.clear()
    out = session.run({"x": x, "n": np.array(3)})
    assert crossings["to host"] == 2  # y and s; m never left the host, and no iteration waits
    expected = ep.Session(model(LOOP), providers=["onnxruntime"]).run({"x": x, "n": np.array(3)})
    for name in expected:
        np.testing.assert_allclose(out[name], expected[name], rtol=1e-6)


WINDOWS = """g (float[N] x, int64 n) => (float[2] y, int64[1] last) <int64[1] one = {1}, int64[1] two = {2}> {
    s = Shape(x)  first = Sub(s, two)  zero = Sub(one, one)  start = Slice(x, zero, two)
    last, y = Loop(n, , first, start) <
        body = b (int64 i, bool c, int64[1] at, float[2] a) => (bool go, int64[1] before, float[2] a2) {
        go = Constant<value = bool {1}>()  stop = Add(at, two)  p = Slice(x, at, stop)
        a2 = Add(a, p)  before = Sub(at, one)
    }>
}"""


def test_a_size_that_a_loop_carries_stays_on_the_host(crossings: Counter[str]) -> None:
    session = ep.Session(model(WINDOWS), providers=["toy"])
    x = np.arange(6, dtype=np.float32)
    crossings.clear()
    out = session.run({"x": x, "n": np.array(3)})
    assert crossings == {"to device": 1, "to host": 1}  # x and y: no turn waits
    np.testing.assert_array_equal(out["y"], [0 + 4 + 3 + 2, 1 + 5 + 4 + 3])
    assert out["last"] == 1


def test_a_size_that_depends_on_what_the_loop_computes_is_copied_in_each_turn(crossings: Counter[str]) -> None:
    text = WINDOWS.replace(
        "before = Sub(at, one)", "m = ReduceMin<keepdims = 1>(p)  k = Cast<to = 7>(m) before = Sub(k, one)"
    )
    session = ep.Session(model(text), providers=["toy"])
    crossings.clear()
    out = session.run({"x": np.arange(6, dtype=np.float32), "n": np.array(3)})
    np.testing.assert_array_equal(out["y"], [0 + 4 + 3 + 2, 1 + 5 + 4 + 3])
    assert crossings["to host"] > 3


def test_a_shape_that_a_branch_chooses_stays_on_the_host(crossings: Counter[str]) -> None:
    text = """g (float[N, 2] x, float[M] z, bool c) => (float[K, L] y) {
        s = If(c) <then_branch = t () => (int64[K] p) { p = Shape(x) },
                   else_branch = e () => (int64[K] r) { q = Shape(z)  r = Concat<axis = 0>(q, q) }>
        one = Constant<value = float {1}>()  m = ReduceSum<keepdims = 0>(x)  y = Expand(m, s)
    }"""
    session = ep.Session(model(text), providers=["toy"])
    for taken, shape in ((True, (5, 2)), (False, (3, 3))):
        crossings.clear()
        y = session.run({"x": np.ones((5, 2), np.float32), "z": np.ones(3, np.float32), "c": np.array(taken)})["y"]
        np.testing.assert_array_equal(y, np.full(shape, 10))
        assert crossings["to host"] == 1


def test_nested_loops_take_no_longer_than_they_are_deep(
    crossings: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each level drops what it carries: beginning anew inside each time would double the work with every level."""
    asked: list[Any] = []
    size_ports = lanes.size_ports
    monkeypatch.setattr(lanes, "size_ports", lambda step: asked.append(step) or size_ports(step))
    body = "k0 = Identity(a)  "
    for level in range(1, 15):
        inner = f"bool d{level}, int64[1] p{level}" if level else ""
        body = f"""k{level} = Loop(two, , a) <body = b{level} (int64 i{level}, bool c{level}, int64[1] q{level})
            => ({inner}) {{ d{level} = Identity(c{level})  {body} w{level} = Cast<to = 1>(q{level})
            v{level} = ReduceMax<keepdims = 1>(x)  u{level} = Cast<to = 7>(v{level})
            p{level} = Add(u{level}, k{level - 1}) }}>  """
    text = f"""g (float[N] x, int64[1] a) => (float[K] y) <int64 two = {{2}}> {{ {body} y = Expand(x, k14) }}"""
    ep.Session(model(text), providers=["toy"])
    assert len(asked) == 14


def test_a_provider_that_is_not_available_says_why(crossings: Counter[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toy_device.ToyProvider, "missing", "needs a toy in the first slot")
    with pytest.raises(ep.MissingDependencyError, match="provider 'toy' needs a toy in the first slot"):
        ep.Session(model(FLATTENED), providers=["toy", "cpu"])


CASES = [
    case
    for case in all_cases()
    if not case.is_drawn and all(not isinstance(value, list) or value for value in case.inputs)
]


@pytest.mark.parametrize("case", CASES[::7], ids=str)
def test_an_operator_case_as_a_session(crossings: Counter[str], case: Any) -> None:
    """Every input fed, nothing constant: host operands arrive as they are, or are copied by the plan."""
    session = ep.Session(ep.load(case.model()), providers=["toy"])
    results = list(session.run(case.feeds()).values())
    for oracle, expected in expectations(case).items():
        for position, (got, wanted) in enumerate(zip(results, expected, strict=False)):
            assert_as_expected(got, wanted, f"{oracle}, output {position}")
