"""Two providers in one session, one of them on a device: who runs what, what crosses, and that nothing else does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st

import entrepot as ep
from entrepot.runtime.providers.torch.provider import TorchProvider
from tests.judges.graphs import assert_computes
from tests.runtime import toy_device
from tests.runtime.opaque import Opaque, bare
from tests.runtime.test_random_graphs import graphs

HEAD = '<ir_version: 10, opset_import: ["": 28]>\n'
MIXED = ["toy", "cpu"]


def model(text: str) -> ep.Model:
    return ep.load(onnx.parser.parse_model(HEAD + text))


def f32(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


@pytest.fixture
def parted() -> Iterator[Counter[str]]:
    """The toy runs no ``Neg``; however small, islands stay."""
    with toy_device.installed(["Neg"], islands=False) as crossings:
        yield crossings


def planned(session: ep.Session) -> Counter[str]:
    """How often something crosses in one run, as the plan tells it."""
    return Counter("to host" if copy.target == "cpu" else "to device" for copy in session.plan().copies)


def providers(session: ep.Session) -> list[str]:
    return [row.provider for row in session.plan().placements]


TWO_TURNS = """g (float[2] x) => (float[2] y, float[2] a) {
    a = Exp(x)  b = Neg(a)  y = Add(b, x)
}"""


def test_parts_of_two_providers_exchange_what_they_need(parted: Counter[str]) -> None:
    session = ep.Session(model(TWO_TURNS), providers=MIXED)
    assert providers(session) == ["toy", "cpu", "toy"]
    parted.clear()
    x = f32(2)
    results = session.run({"x": x})
    np.testing.assert_allclose(results["y"], x - np.exp(x), rtol=1e-6)
    assert parted == planned(session) == {"to device": 2, "to host": 2}  # x, b; a, which is a result as well, and y


def test_the_plan_prints_what_is_copied(parted: Counter[str]) -> None:
    lines = str(ep.Session(model(TWO_TURNS), providers=MIXED).plan()).splitlines()
    assert (
        " ".join(lines[2].split()) == "unnamed node making 'b' (Neg, opset 28) Neg cpu native toy: not among the toys"
    )
    assert [" ".join(line.split()) for line in lines[5:] if not line.startswith("note:")] == [
        "copy of from to bytes when",
        "'x' cpu toy:0 8 each run",
        "'a' toy:0 cpu 8 each run",
        "'b' cpu toy:0 8 each run",
        "'y' toy:0 cpu 8 each run",
        "4 copies, 32 bytes in each run",
    ]


def test_bytes_that_depend_on_the_feeds_are_told_as_a_product(parted: Counter[str]) -> None:
    text = "g (float[N, 3] x) => (float[N, 3] y) { a = Exp(x)  y = Neg(a) }"
    plan = ep.Session(model(text), providers=MIXED).plan()
    assert [(copy.nbytes, copy.size) for copy in plan.copies] == [(None, "12 * N")] * 2
    assert "2 copies, 0 bytes and what depends on the feeds in each run" in str(plan)


def test_nodes_of_one_provider_run_together_wherever_the_file_has_them(parted: Counter[str]) -> None:
    text = """g (float[2] x) => (float[2] y) {
        a = Exp(x)  m = Neg(x)  b = Exp(a)  n = Neg(m)  c = Exp(b)  o = Neg(n)  y = Add(c, o)
    }"""
    session = ep.Session(model(text), providers=MIXED)
    assert providers(session) == ["cpu"] * 3 + ["toy"] * 4
    x = f32(2)
    np.testing.assert_allclose(session.run({"x": x})["y"], np.exp(np.exp(np.exp(x))) - x, rtol=1e-5)


def test_a_value_is_copied_once_whoever_reads_it(parted: Counter[str]) -> None:
    text = """g (float[2] x) => (float[2] u, float[2] v, float[2] w) {
        a = Exp(x)  b = Neg(a)  c = Add(b, a)  d = Neg(c)  u = Add(d, b)  v = Mul(d, b)  e = Neg(a)  w = Add(e, x)
    }"""
    session = ep.Session(model(text), providers=MIXED)
    parted.clear()
    session.run({"x": f32(2)})
    names = [(copy.value, copy.target) for copy in session.plan().copies]
    assert len(set(names)) == len(names)
    assert parted == planned(session)


def test_a_constant_is_placed_where_it_is_read_and_never_copied(parted: Counter[str]) -> None:
    text = """g (float[2] x) => (float[2] y, float[2] z) <float[2] w = {1, 2}> {
        two = Constant<value = float {2}>()  v = Mul(w, two)
        a = Mul(x, v)  b = Neg(a)  y = Add(b, v)  m = Neg(y)  z = Add(m, v)
    }"""
    session = ep.Session(model(text), providers=MIXED)
    assert {copy.value for copy in session.plan().copies} == {"x", "a", "b", "y", "m", "z"}
    assert len(session.plan().placements) == 7
    parted.clear()
    x = f32(2)
    results = session.run({"x": x})
    w = 2 * np.array([1, 2], np.float32)
    np.testing.assert_array_equal(results["y"], w - x * w)
    np.testing.assert_array_equal(results["z"], w - results["y"])
    assert parted == planned(session)


def test_a_weight_that_is_a_result_as_well_is_handed_over(parted: Counter[str]) -> None:
    text = "g (float[2] x) => (float[2] y, float[2] w, float[2] x) <float[2] w = {1, 2}> { a = Exp(x)  y = Neg(a) }"
    results = ep.Session(model(text), providers=MIXED).run({"x": f32(2)})
    np.testing.assert_array_equal(results["w"], [1, 2])
    np.testing.assert_array_equal(results["x"], f32(2))


SHAPES = """g (float[N, 4] x) => (float[N, 4] y) <int64[1] rest = {-1}> {
    s = Shape(x)  a = Exp(x)  flat = Reshape(a, rest)  b = Neg(flat)  y = Reshape(b, s)
}"""


def test_a_shape_crosses_between_parts_on_the_host(parted: Counter[str]) -> None:
    session = ep.Session(model(SHAPES), providers=MIXED)
    assert providers(session) == ["toy", "toy", "toy", "cpu", "toy"]
    assert [copy.value for copy in session.plan().copies] == ["x", "flat", "b", "y"]
    parted.clear()
    x = f32(3, 4)
    np.testing.assert_allclose(session.run({"x": x})["y"], -np.exp(x), rtol=1e-6)
    assert parted == planned(session)


def test_what_is_asked_for_its_shape_alone_stays_where_it_is(parted: Counter[str]) -> None:
    text = """g (float[N, 4] x, float[4] z) => (float[N, 4] y) {
        u = Exp(z)  m = Neg(x)  s = Shape(m)  y = Expand(u, s)
    }"""
    session = ep.Session(model(text), providers=MIXED)
    assert [copy.value for copy in session.plan().copies] == ["z", "y"]
    parted.clear()
    np.testing.assert_allclose(session.run({"x": f32(3, 4), "z": f32(4)})["y"][2], np.exp(f32(4)), rtol=1e-6)
    assert parted == planned(session)


@pytest.mark.parametrize("first", ["toy", "cpu"])
def test_a_feed_may_be_on_the_device_whoever_reads_it_first(parted: Counter[str], first: str) -> None:
    text = "g (float[2] x) => (float[2] y) { a = Exp(x)  y = Neg(a) }"
    if first == "cpu":
        text = "g (float[2] x) => (float[2] y) { a = Neg(x)  y = Exp(a) }"
    x = f32(2)
    y = ep.Session(model(text), providers=MIXED).run({"x": Opaque(x)})["y"]
    assert isinstance(y, Opaque)
    np.testing.assert_allclose(bare(y), np.exp(-x) if first == "cpu" else -np.exp(x), rtol=1e-6)


def test_a_feed_on_one_device_is_asked_for_its_shape_on_another(parted: Counter[str]) -> None:
    text = "g (float[N] x, float z) => (float[M] y) { s = Shape(x)  y = Expand(z, s) }"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(toy_device.ToyProvider, "refused", frozenset(["Shape", "Expand"]))
        session = ep.Session(model(text), providers=["toy", "torch"])
    assert providers(session) == ["torch", "torch"]
    y = session.run({"x": Opaque(f32(3)), "z": np.float32(2)})["y"]
    np.testing.assert_array_equal(bare(y), [2, 2, 2])


def test_values_are_let_go_after_their_last_use(parted: Counter[str]) -> None:
    session = ep.Session(model(TWO_TURNS), providers=MIXED)
    stages = session._default.flow._stages
    used = {slot for stage in stages for slot in (*stage.takes, *stage.makes)}
    assert len(used - {slot for stage in stages for slot in stage.done}) == 3  # y, and a in both places


LOOP = """g (float[N] x, int64 n) => (float[N] y) <float[1] two = {2}> {
    far = Exp(x)  near = Neg(x)
    y = Loop(n, , x) <
        body = b (int64 i, bool c, float[N] a) => (bool go, float[N] a2) {
        go = Constant<value = bool {1}>()  p = Mul(far, two)  q = Add(p, near)  a2 = Add(a, q)
    }>
}"""


def test_copies_are_made_outside_of_loops(parted: Counter[str]) -> None:
    session = ep.Session(model(LOOP), providers=MIXED)
    assert providers(session).count("cpu") == 1
    x = f32(3)
    for turns in (0, 1, 5):
        parted.clear()
        y = session.run({"x": x, "n": np.array(turns)})["y"]
        np.testing.assert_allclose(y, x + turns * (2 * np.exp(x) - x), rtol=1e-5)
        assert parted == planned(session)
    assert all(not copy.when for copy in session.plan().copies)


def test_a_copy_that_a_loop_needs_in_each_turn_is_told_as_such(parted: Counter[str]) -> None:
    text = """g (float[N] x, int64 n) => (float[N] y) {
        [turns] y = Loop(n, , x) <
            body = b (int64 i, bool c, float[N] a) => (bool go, float[N] a2) {
            s = ReduceMax<keepdims = 0>(a)  one = Constant<value = float {1000}>()  go = Less(s, one)  a2 = Add(a, a)
        }>
    }"""
    session = ep.Session(model(text), providers=MIXED)
    (often,) = [copy for copy in session.plan().copies if copy.when]
    assert (often.value, often.target, often.nbytes) == ("go", "cpu", 1)
    assert often.when == "each turn of node 'turns' (Loop, opset 28)"
    parted.clear()
    session.run({"x": f32(3), "n": np.array(4)})
    assert parted["to host"] == 4 + 1


# what small nodes cost ------------------------------------------------------------------------------------------------


@pytest.fixture
def costly() -> Iterator[Counter[str]]:
    with toy_device.installed(["Neg"]) as crossings:
        yield crossings


def test_a_small_island_is_given_up_and_the_plan_says_why(costly: Counter[str]) -> None:
    text = """g (float[64, 64] x, float[2] z) => (float[64, 64] y, float[2] v) <float[64, 64] w> {
        p = MatMul(x, x)  y = Exp(p)  a = Neg(z)  b = Exp(a)  v = Neg(b)
    }"""
    text = text.replace(" <float[64, 64] w>", "").replace("64, 64", "1024, 1024")
    plan = ep.Session(model(text), providers=MIXED).plan()
    rows = {row.node.split("'")[1]: row for row in plan.placements}
    assert {name: row.provider for name, row in rows.items()} == {
        "p": "toy", "y": "toy", "a": "cpu", "b": "cpu", "v": "cpu"
    }  # fmt: skip
    assert rows["b"].declined == {"toy": "2 copies would cost more than it saves to run this node there"}
    assert rows["a"].declined == {"toy": "not among the toys"}


def test_islands_that_hang_together_go_one_after_the_other(costly: Counter[str]) -> None:
    text = """g (float[2] z) => (float[2] v) {
        a = Neg(z)  b = Exp(a)  c = Neg(b)  d = Exp(c)  e = Exp(d)  v = Neg(e)
    }"""
    plan = ep.Session(model(text), providers=MIXED).plan()
    assert not plan.copies
    reasons = [row.declined.get("toy", "") for row in plan.placements]
    assert reasons[3] == "2 copies would cost more than it saves to run this and 1 other node there"


def test_what_a_device_runs_alone_is_never_given_up(costly: Counter[str]) -> None:
    session = ep.Session(model("g (float[2] x) => (float[2] y) { y = Exp(x) }"), providers=MIXED)
    assert providers(session) == ["toy"]


@pytest.mark.parametrize(("size", "kept"), [("N", True), ("4", False)])
def test_of_unknown_sizes_it_is_assumed_that_they_may_be_large(costly: Counter[str], size: str, kept: bool) -> None:
    text = f"""g (float[{size}, 512] x) => (float[{size}, 512] y) {{
        a = Neg(x)  b = Exp(a)  c = Exp(b)  d = Exp(c)  y = Neg(d)
    }}"""
    assert ("toy" in providers(ep.Session(model(text), providers=MIXED))) is kept


def test_large_work_between_nodes_of_the_host_stays_on_the_device(costly: Counter[str]) -> None:
    text = "g (float[1024, 1024] x) => (float[1024, 1024] y) { a = Neg(x)  b = MatMul(a, a)  y = Neg(b) }"
    assert providers(ep.Session(model(text), providers=MIXED)) == ["cpu", "toy", "cpu"]


def test_work_that_nobody_can_estimate_is_not_given_up(costly: Counter[str]) -> None:
    text = """g (float[2] x, int64 n) => (float[2] y) {
        a = Neg(x)
        b = Loop(n, , a) <body = b (int64 i, bool c, float[2] s) => (bool c, float[2] t) { t = Exp(s) }>
        y = Neg(b)
    }"""
    assert providers(ep.Session(model(text), providers=MIXED)) == ["cpu", "toy", "cpu"]


# random graphs, parted at random --------------------------------------------------------------------------------------


@given(proto=graphs(), data=st.data())
def test_a_graph_parted_at_random_computes_the_same(proto: onnx.ModelProto, data: st.DataObject) -> None:
    for position, node in enumerate(proto.graph.node):
        node.name = f"n{position}"
    refused = data.draw(st.sets(st.sampled_from([node.name for node in proto.graph.node])))
    rng = np.random.default_rng(1)
    feeds = {name: rng.standard_normal((4, 4)).astype(np.float32) for name in ("x", "z")}
    with toy_device.installed(refused, islands=data.draw(st.booleans())) as crossings:
        session = ep.Session(ep.load(proto), providers=MIXED)
        _run_as_planned(session, feeds, crossings, lambda results: assert_computes(proto, feeds, results))


def test_one_copy_serves_all_providers_on_the_host(parted: Counter[str], monkeypatch: pytest.MonkeyPatch) -> None:
    text = """g (float[2] x) => (float[2] y, float[2] z) {
        a = Exp(x)  y = Neg(a)  b = Sign(a)  c = Neg(b)  z = Add(c, b)
    }"""
    refusing = toy_device.ToyProvider.refused | {"Sign"}
    monkeypatch.setattr(toy_device.ToyProvider, "refused", refusing)
    monkeypatch.setattr(TorchProvider, "supports", lambda self, node: "no" if node.op_type == "Neg" else "")
    session = ep.Session(model(text), providers=["toy", "torch", "cpu"])
    assert {row.provider for row in session.plan().placements} == {"toy", "torch", "cpu"}
    assert [(copy.value, copy.target) for copy in session.plan().copies].count(("a", "cpu")) == 1
    parted.clear()
    x = f32(2)
    results = session.run({"x": x})
    np.testing.assert_allclose(results["y"], -np.exp(x), rtol=1e-6)
    np.testing.assert_array_equal(results["z"], [0, 0])
    assert parted == planned(session)


def _run_as_planned(session: ep.Session, feeds: Any, crossings: Counter[str], judge: Any) -> None:
    for _ in range(2):
        crossings.clear()
        toy_device.DEVICE.bytes = 0
        judge(session.run(feeds))
        copies = session.plan().copies
        assert crossings == planned(session), str(session.plan())
        assert toy_device.DEVICE.bytes == sum(copy.nbytes for copy in copies)
        assert len({(copy.value, copy.target) for copy in copies}) == len(copies)


STAGES = [
    "{y} = Relu({x})",
    "{y} = Add({x}, {z})",
    "{y} = Mul({x}, two)",
    "{y}s = Shape({x})  {y}f = Reshape({x}, rest)  {y}n = Neg({y}f)  {y} = Reshape({y}n, {y}s)",
    "{y}s = Shape({x})  {y}z = Shape({z})  {y}m = Max({y}s, {y}z)  {y}e = Expand(two, {y}m)  {y} = Add({x}, {y}e)",
    """{y}c = ReduceSum<keepdims = 0>({x})  {y}b = Cast<to = 9>({y}c)
    {y} = If({y}b) <then_branch = t () => (float[3, 2] {y}p) {{ {y}p = Add({x}, {z}) }},
                    else_branch = e () => (float[3, 2] {y}q) {{ {y}q = Sub({x}, {z}) }}>""",
    """{y}, {y}r = Loop(three, , {x}) <body = b (int64 {y}i, bool {y}c, float[3, 2] {y}a)
        => (bool {y}d, float[3, 2] {y}o, float[2] {y}t) {{
        {y}d = Identity({y}c)  {y}t = Gather<axis = 0>({z}, {y}i)  {y}o = Add({y}a, {y}t)
    }}>""",
    """{y}l, {y} = Scan<num_scan_inputs = 1, body = b (float[2] {y}a, float[2] {y}v)
        => (float[2] {y}o, float[2] {y}u) {{
        {y}o = Max({y}a, {y}v)  {y}u = Sub({y}v, {y}o)
    }}>(start, {z})""",
]


@st.composite
def staged(draw: st.DrawFn) -> tuple[onnx.ModelProto, set[str]]:
    """Stages of which each makes a float[3, 2] of two such, and the names of nodes that the toy refuses."""
    names, texts = ["x", "z"], []
    for at in range(draw(st.integers(1, 7))):
        x, z = (draw(st.sampled_from(names[-3:])) for _ in range(2))
        texts.append(draw(st.sampled_from(STAGES)).format(x=x, z=z, y=f"v{at}"))
        names.append(f"v{at}")
    text = f"""g (float[3, 2] x, float[3, 2] z) => (float[3, 2] {names[-1]}, float[3, 2] {names[-2]})
    <float two = {{2}}, int64[1] rest = {{-1}}, int64 three = {{3}}, float[2] start = {{0, 0}}> {{
        {" ".join(texts)}
    }}"""
    proto = onnx.parser.parse_model(HEAD.replace("28", "22") + text)
    for at, node in enumerate(proto.graph.node):
        node.name = f"n{at}"
    return proto, draw(st.sets(st.sampled_from([node.name for node in proto.graph.node])))


def _small_numbers() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(2)
    return {name: rng.integers(-3, 4, (3, 2)).astype(np.float32) for name in ("x", "z")}


@given(case=staged(), islands=st.booleans())
def test_branches_loops_and_shapes_parted_at_random_compute_the_same(case: Any, islands: bool) -> None:
    """All values are small whole numbers, so every order of summation is exact."""
    proto, refused = case
    feeds = _small_numbers()
    expected = ep.Session(ep.load(proto), providers=["onnxruntime"]).run(feeds)
    with toy_device.installed(refused, islands) as crossings:
        session = ep.Session(ep.load(proto), providers=MIXED)
        for _ in range(2):
            crossings.clear()
            results = session.run(feeds)
            for name, value in expected.items():
                np.testing.assert_array_equal(results[name], value)
            copies = [copy for copy in session.plan().copies if not copy.when]
            if len(copies) == len(session.plan().copies):
                assert crossings == planned(session), str(session.plan())
            assert len({(copy.value, copy.target) for copy in copies}) == len(copies), str(session.plan())


@given(case=staged())
def test_torch_takes_its_share_of_a_graph_without_copies(case: Any) -> None:
    """Its tensors lie in the host's memory: nothing crosses, and no island costs anything."""
    proto, refused = case
    feeds = _small_numbers()
    expected = ep.Session(ep.load(proto), providers=["onnxruntime"]).run(feeds)
    with pytest.MonkeyPatch.context() as patch:
        supports = TorchProvider.supports
        patch.setattr(
            TorchProvider, "supports", lambda self, node: "no" if node.name in refused else supports(self, node)
        )
        session = ep.Session(ep.load(proto), providers=["torch", "cpu"])
        for _ in range(2):
            results = session.run(feeds)
            for name, value in expected.items():
                np.testing.assert_array_equal(results[name], value)
        rows = session.plan().placements
        assert not session.plan().copies
        assert all("copies" not in reason for row in rows for reason in row.declined.values())
