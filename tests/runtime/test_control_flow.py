from __future__ import annotations

import numpy as np
import onnx
import pytest

import entrepot as ep

PROVIDERS = ["cpu", "reference", "torch"]
HEAD = '<ir_version: 10, opset_import: ["": 28]>\n'


def run(text: str, provider: str = "cpu", **feeds: object) -> dict[str, np.ndarray]:
    session = ep.Session(ep.load(onnx.parser.parse_model(HEAD + text)), providers=[provider])
    return session.run({name: np.asarray(value) for name, value in feeds.items()})


def f32(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


@pytest.mark.parametrize("opset", [11, 28])
@pytest.mark.parametrize("provider", PROVIDERS[::2])
def test_the_number_of_the_turn_may_be_a_vector_of_one(provider: str, opset: int) -> None:
    proto = onnx.parser.parse_model(f"""<ir_version: 10, opset_import: ["": {opset}]>
    g (float[4] x, int64 n, bool on) => (int64[t, 1] turns, float[t, k] parts) {{
        turns, parts = Loop(n, on) <body = b (int64[1] i, bool c) => (bool c2, int64[1] i, float[k] part) {{
            c2 = Identity(c) two = Constant<value = int64[1] {{2}}>() most = Add(i, two) part = Slice(x, i, most)
        }}> }}""")
    feeds = {"x": f32(1, 2, 3, 4), "n": np.array(3), "on": np.array(True)}
    model = ep.load(proto)
    outputs = ep.Session(model, providers=[provider]).run(feeds)
    assert outputs["turns"].tolist() == [[0], [1], [2]]
    assert outputs["parts"].tolist() == [[1, 2], [2, 3], [3, 4]]
    assert model.to_proto().graph.node[0].attribute[0].g.input[0].type.tensor_type.shape.dim[0].dim_value == 1
    assert ep.to_torch(model, sample=feeds).report.ok


NESTED = """
g (float[N] x, int64 n, float[K, N] xs) => (float[N] last, float[T, N] each, float[N] state, float[K, N] ys) {
    last, each = Loop(n, , x) <body = outer (int64 i, bool going, float[N] a) => (bool more, float[N] a2, float[N] e) {
        three = Constant<value_int = 3>()
        more = Less(i, three)
        e = If(more) <
            then_branch = yes () => (float[N] e1) { e1 = Add(a, x) },
            else_branch = no () => (float[N] e2) { e2 = Mul(a, x) }
        >
        a2 = Add(e, x)
    }>
    state, ys = Scan<num_scan_inputs = 1, body = scan (float[N] p, float[N] q) => (float[N] p2, float[N] r) {
        p2 = Add(p, q)
        r = Loop(n, , q) <body = inner (int64 j, bool c, float[N] u) => (bool c, float[N] u2) { u2 = Mul(u, last) }>
    }>(last, xs)
}"""


@pytest.mark.parametrize("provider", PROVIDERS)
def test_if_in_loop_in_scan_with_captured_values(provider: str) -> None:
    out = run(NESTED, provider, x=f32(2, 2), n=6, xs=np.ones((3, 2), np.float32))
    # trips 0..2 add twice, trip 3 multiplies and then stops: 2 -> 6 -> 10 -> 14 -> 28 + 2
    np.testing.assert_array_equal(out["each"][:, 0], [4, 8, 12, 28])
    np.testing.assert_array_equal(out["last"], [30, 30])
    np.testing.assert_array_equal(out["state"], [33, 33])
    np.testing.assert_array_equal(out["ys"], np.full((3, 2), np.float32(30) ** 6))


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_loop_without_trips_gives_its_initial_state_and_empty_scans(provider: str) -> None:
    out = run(NESTED, provider, x=f32(2, 2), n=0, xs=np.ones((1, 2), np.float32))
    np.testing.assert_array_equal(out["last"], [2, 2])
    assert out["each"].dtype == np.float32
    assert out["each"].shape[0] == 0
    assert out["each"].ndim == 2
    np.testing.assert_array_equal(out["ys"], [[1, 1]])


COUNTER = """
g (int64 limit) => (int64 count, int64[T] seen) {
    start = Constant<value_int = 0>()
    one = Constant<value_int = 1>()
    first = Less(start, limit)
    count, seen = Loop(MAX, first, start) <body = b (int64 i, bool c, int64 k) => (bool again, int64 k2, int64 k3) {
        k2 = Add(k, one)
        k3 = Mul(k2, k2)
        again = Less(k2, limit)
    }>
}"""


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("limit", [0, 1, 4])
def test_a_while_loop_has_no_trip_count(provider: str, limit: int) -> None:
    out = run(COUNTER.replace("MAX", ""), provider, limit=limit)
    assert out["count"] == limit
    np.testing.assert_array_equal(out["seen"], [(k + 1) ** 2 for k in range(limit)])


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_loop_that_does_not_end_meets_the_limit(provider: str) -> None:
    text = COUNTER.replace("MAX", "").replace("again = Less(k2, limit)", "again = Less(start, one)")
    proto = onnx.parser.parse_model(HEAD + text)
    session = ep.Session(ep.load(proto), providers=[provider], limits=ep.Limits(loop_iterations=100))
    with pytest.raises(ep.ResourceLimitError, match="100 iterations"):
        session.run({"limit": 1})


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_huge_trip_count_is_fine_when_the_condition_ends_the_loop(provider: str) -> None:
    text = COUNTER.replace("MAX", "huge").replace("one =", f"huge = Constant<value_int = {2**63 - 1}>()\n one =")
    assert run(text, provider, limit=3)["count"] == 3


@pytest.mark.parametrize("provider", PROVIDERS)
def test_carried_values_may_change_shape_and_swap_places(provider: str) -> None:
    text = """
    g (float[N] x, float[M] y, int64 n) => (float[P] a, float[Q] b) {
        a, b = Loop(n, , x, y) <body = body (int64 i, bool c, float[S] p, float[T] q)
                                => (bool c, float[U] q, float[V] r) {
            r = Concat<axis = 0>(p, q)
        }>
    }"""
    out = run(text, provider, x=f32(1), y=f32(2), n=3)
    np.testing.assert_array_equal(out["a"], [2, 1, 2])
    np.testing.assert_array_equal(out["b"], [1, 2, 2, 1, 2])


@pytest.mark.parametrize("provider", PROVIDERS)
def test_unused_outputs_of_control_flow_are_allowed(provider: str) -> None:
    session = ep.Session(ep.load(onnx.parser.parse_model(HEAD + NESTED)), providers=[provider])
    feeds = {"x": f32(2, 2), "n": np.array(6), "xs": np.ones((3, 2), np.float32)}
    np.testing.assert_array_equal(session.run(feeds, ["last"])["last"], [30, 30])
    np.testing.assert_array_equal(session.run(feeds, ["each"])["each"][:, 0], [4, 8, 12, 28])


@pytest.mark.parametrize("provider", PROVIDERS)
def test_scan_walks_other_axes_backwards(provider: str) -> None:
    text = """
    g (float[2, 3] x) => (float[2] total, float[2, 3] partial) {
        zero = Constant<value_floats = [0.0, 0.0]>()
        total, partial = Scan<num_scan_inputs = 1, scan_input_axes = [1], scan_input_directions = [1],
                              scan_output_axes = [1], scan_output_directions = [1],
            body = b (float[2] s, float[2] v) => (float[2] t, float[2] o) { t = Add(s, v)  o = Mul(t, t) }>(zero, x)
    }"""
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    out = run(text, provider, x=x)
    sums = np.cumsum(x[:, ::-1], axis=1)
    np.testing.assert_array_equal(out["total"], x.sum(axis=1))
    np.testing.assert_array_equal(out["partial"], (sums * sums)[:, ::-1])


@pytest.mark.parametrize("provider", PROVIDERS)
def test_scanned_inputs_of_different_lengths_are_refused(provider: str) -> None:
    text = """
    g (float[N] x, float[M] y) => (float[K] z) {
        z = Scan<num_scan_inputs = 2, body = b (float p, float q) => (float r) { r = Add(p, q) }>(x, y)
    }"""
    with pytest.raises(ep.EntrepotError, match=r"Scan.*different lengths: \[2, 3\]"):
        run(text, provider, x=f32(1, 2), y=f32(1, 2, 3))


def test_an_if_that_is_decided_when_the_graph_is_made_leaves_no_branch() -> None:
    text = """
    g (float[2] x) => (float[2] y) {
        yes = Constant<value = bool {1}>()
        y = If(yes) <then_branch = t () => (float[2] a) { a = Add(x, x) },
                     else_branch = e () => (float[2] b) { b = Mul(x, x) }>
    }"""
    session = ep.Session(ep.load(onnx.parser.parse_model(HEAD + text)))
    assert "if " not in session.source()
    np.testing.assert_array_equal(session.run({"x": f32(3, 4)})["y"], [6, 8])


@pytest.mark.parametrize("provider", PROVIDERS)
def test_branches_may_return_what_they_capture(provider: str) -> None:
    text = """
    g (bool c, float[2] x, float[2] w) => (float[2] y, float[2] z) {
        y, z = If(c) <
            then_branch = t () => (float[2] x1, float[2] w1) { x1 = Identity(x)  w1 = Identity(w) },
            else_branch = e () => (float[2] b, float[2] x2) { b = Mul(x, x)  x2 = Identity(x) }
        >
    }"""
    for condition, expected in ((True, ([3, 4], [5, 6])), (False, ([9, 16], [3, 4]))):
        out = run(text, provider, c=condition, x=f32(3, 4), w=f32(5, 6))
        np.testing.assert_array_equal(out["y"], expected[0])
        np.testing.assert_array_equal(out["z"], expected[1])


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_sequence_map_may_pass_its_members_on(provider: str) -> None:
    text = """
    g (seq(float[N]) s, float[1] w) => (seq(float[N]) t, seq(float[N]) u) {
        t, u = SequenceMap<body = b (float[M] m, float[1] v) => (float[M] same, float[M] more) {
            same = Identity(m)
            more = Add(m, v)
        }>(s, w)
    }"""
    session = ep.Session(ep.load(onnx.parser.parse_model(HEAD + text)), providers=[provider])
    out = session.run({"s": [f32(1, 2), f32(3)], "w": f32(10)})
    assert [list(member) for member in out["t"]] == [[1, 2], [3]]
    assert [list(member) for member in out["u"]] == [[11, 12], [13]]


def test_what_nothing_needs_inside_a_body_is_not_run() -> None:
    text = """
    g (float[2] x, bool c) => (float[2] y) {
        y = If(c) <then_branch = t () => (float[2] a) { unused = Exp(x)  a = Add(x, x) },
                   else_branch = e () => (float[2] b) { b = Mul(x, x) }>
    }"""
    assert "exp" not in ep.Session(ep.load(onnx.parser.parse_model(HEAD + text))).source()
