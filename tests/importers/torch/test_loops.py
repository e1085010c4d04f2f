"""Loop and Scan: Python's own loops when a module is called, one operator each where a graph is captured."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
import pytest
import torch

import entrepot as ep
from tests.importers.torch.networks import model, results

F32 = np.float32


class Case(NamedTuple):
    """A graph, what it is fed with, and the operators that its loop is in a captured graph; none for Python's loop."""

    graph: str
    feeds: dict[str, np.ndarray]
    operator: str


X = np.array([[1, 2, 3], [4, 5, 6], [7, 8, 9], [-1, 0, 1]], F32)

CASES = {
    "turns counted": Case(
        """g (float[B, 3] x, int64 n) => (float[B, 3] y) {
            y = Loop(n, , x) <body = b (int64 i, bool go, float[B, 3] a) => (bool on, float[B, 3] c) {
                on = Constant<value = bool {1}>()  f = Cast<to = 1>(i)  s = Add(a, f)  c = Add(s, x)
            }>
        }""",
        {"x": X, "n": np.array(4)},
        "while_loop",
    ),
    "a condition": Case(
        """g (float[B, 3] x) => (float[B, 3] y, int64 k) <float limit = {1000.0}, int64 one = {1}, int64 zero = {0}> {
            y, k = Loop(, , x, zero) <body = b (int64 i, bool go, float[B, 3] a, int64 m)
                    => (bool on, float[B, 3] c, int64 l) {
                c = Add(a, a)  l = Add(m, one)  s = ReduceMax<keepdims = 0>(c)  on = Less(s, limit)
            }>
        }""",
        {"x": X},
        "while_loop",
    ),
    "a count and a condition from outside": Case(
        """g (float[B, 3] x, int64 n, bool c) => (float[B, 3] y) <float limit = {30.0}> {
            y = Loop(n, c, x) <body = b (int64 i, bool go, float[B, 3] a) => (bool on, float[B, 3] d) {
                d = Add(a, x)  s = ReduceMax<keepdims = 0>(d)  on = Less(s, limit)
            }>
        }""",
        {"x": X, "n": np.array(9), "c": np.array(True)},
        "while_loop",
    ),
    "values that swap and one that stays": Case(
        """g (float[B, 3] x, int64 n) => (float[B, 3] y, float[B, 3] z, float[B, 3] w) {
            h = Neg(x)
            y, z, w = Loop(n, , x, h, x) <body = b (int64 i, bool go, float[B, 3] a, float[B, 3] d, float[B, 3] e)
                    => (bool on, float[B, 3] p, float[B, 3] q, float[B, 3] e2) {
                on = Constant<value = bool {1}>()  p = Identity(d)  q = Identity(a)  e2 = Identity(e)
            }>
        }""",
        {"x": X, "n": np.array(3)},
        "while_loop",
    ),
    "a loop and a branch in a loop": Case(
        """g (float[B, 3] x, int64 n) => (float[B, 3] y) <int64 two = {2}, float nought = {0.0}> {
            y = Loop(n, , x) <body = b (int64 i, bool go, float[B, 3] a) => (bool on, float[B, 3] c) {
                on = Constant<value = bool {1}>()
                d = Loop(two, , a) <body = e (int64 j, bool go2, float[B, 3] f) => (bool on2, float[B, 3] k) {
                    on2 = Constant<value = bool {1}>()  k = Add(f, x)
                }>
                s = ReduceSum<keepdims = 0>(d)  p = Greater(s, nought)
                c = If(p) <then_branch = t () => (float[B, 3] u) { u = Neg(d) },
                           else_branch = r () => (float[B, 3] v) { v = Identity(d) }>
            }>
        }""",
        {"x": X, "n": np.array(3)},
        "while_loop",
    ),
    "a slice from each turn": Case(
        """g (float[B, 3] x) => (float[3] y, float[B, 3] z) <int64[1] zero = {0}, float[3] start = {0, 0, 0}> {
            shape = Shape<start = 0, end = 1>(x)  n = Squeeze(shape)
            y, z = Loop(n, , start) <body = b (int64 i, bool go, float[3] a) => (bool on, float[3] c, float[3] d) {
                on = Constant<value = bool {1}>()  row = Gather(x, i)  c = Add(a, row)  d = Identity(c)
            }>
        }""",
        {"x": X},
        "scan",
    ),
    "slices until a condition, at most nine": Case(
        """g (float[B, 3] x) => (float[B, 3] y, float[K, 3] z)
        <int64 most = {9}, float limit = {50.0}, int64[1] ax = {0}> {
            y, z = Loop(most, , x) <body = b (int64 i, bool go, float[B, 3] a) => (bool on, float[B, 3] c, float[3] d) {
                c = Add(a, a)  d = ReduceMax<keepdims = 0>(c, ax)  s = ReduceMax<keepdims = 0>(c)  on = Less(s, limit)
            }>
        }""",
        {"x": X},
        "while_loop",
    ),
    "slices of as many turns as are fed": Case(
        """g (float[B, 3] x, int64 n) => (float[B, 3] y, float[K, B, 3] z) {
            y, z = Loop(n, , x) <body = b (int64 i, bool go, float[B, 3] a) => (bool on, float[B, 3] c, float[B, 3] d) {
                on = Constant<value = bool {1}>()  c = Add(a, x)  d = Neg(c)
            }>
        }""",
        {"x": X, "n": np.array(3)},
        "while_loop",
    ),
    "a scan": Case(
        """g (float[B, 3] x) => (float[3] y, float[B, 3] z) <float[3] start = {0, 0, 0}> {
            y, z = Scan(start, x) <num_scan_inputs = 1, body = b (float[3] a, float[3] r) => (float[3] c, float[3] d) {
                c = Add(a, r)  d = Neg(c)
            }>
        }""",
        {"x": X},
        "scan",
    ),
    "a scan along other axes, backwards": Case(
        """g (float[B, 3] x, float[3, B] w) => (float[B] y, float[B, 3] z) {
            zero = ReduceSum(x, axes)  s = Sub(zero, zero)  t = Squeeze(s, axes)
            y, z = Scan(t, x, w) <num_scan_inputs = 2, scan_input_axes = [1, 0], scan_input_directions = [1, 0],
                        scan_output_axes = [1], scan_output_directions = [1],
                body = b (float[B] a, float[B] r, float[B] q) => (float[B] c, float[B] d) {
                m = Mul(a, q)  c = Add(m, r)  d = Neg(c)
            }>
        }""".replace("{\n            zero", "<int64[1] axes = {1}> {\n            zero"),
        {"x": X, "w": X.T.copy()},
        "scan",
    ),
    "a scan that carries nothing": Case(
        """g (float[B, 3] x) => (float[B, 3] z) {
            z = Scan(x) <num_scan_inputs = 1, body = b (float[3] r) => (float[3] d) { d = Exp(r) }>
        }""",
        {"x": X},
        "scan",
    ),
    "sizes that are named anew": Case(
        """g (float[B, 3] x, int64 n) => (float[C, 3] y) <float limit = {1000.0}, float[3] add = {1, 2, 3}> {
            y = Loop(n, , x) <body = b (int64 i, bool go, float[D, 3] a) => (bool on, float[E, 3] c) {
                d = MatMul(a, w)  c = Add(d, add)  s = ReduceMax<keepdims = 0>(c)  on = Less(s, limit)
            }>
        }""".replace("float[3] add", "float[3, 3] w = {1, 0, 1, 2, 1, 0, 1, 0, 1}, float[3] add"),
        {"x": X, "n": np.array(2)},
        "while_loop",
    ),
    "values that widen by what is added": Case(
        """g (float[B, 3] x, int64 n) => (float[C, 3] y) <int64[1] ax = {0}> {
            r = ReduceMax(x, ax)
            y = Loop(n, , r) <body = b (int64 i, bool go, float[D, 3] a) => (bool on, float[E, 3] c) {
                on = Constant<value = bool {1}>()  c = Add(a, x)
            }>
        }""",
        {"x": X, "n": np.array(2)},
        "",
    ),
    "values that grow": Case(
        """g (float[B, 3] x, int64 n) => (float[C, 3] y) {
            y = Loop(n, , x) <body = b (int64 i, bool go, float[D, 3] a) => (bool on, float[E, 3] c) {
                on = Constant<value = bool {1}>()  c = Concat<axis = 0>(a, x)
            }>
        }""",
        {"x": X, "n": np.array(2)},
        "",
    ),
    "slices until a condition": Case(
        """g (float[B, 3] x) => (float[K, 3] z) <float limit = {50.0}> {
            y, z = Loop(, , x) <body = b (int64 i, bool go, float[B, 3] a) => (bool on, float[B, 3] c, float[3] d) {
                c = Add(a, x)  d = ReduceMax<keepdims = 0>(c, ax)  s = ReduceMax<keepdims = 0>(c)  on = Less(s, limit)
            }>
        }""".replace("limit = {50.0}", "limit = {50.0}, int64[1] ax = {0}"),
        {"x": X},
        "while_loop while_loop",  # the first one counts
    ),
}
CAPTURED = [name for name, case in CASES.items() if case.operator]


def _given(case: Case, rows: int = 4) -> list[torch.Tensor]:
    cut = {name: array[:rows] if array.shape[:1] == (4,) else array[..., :rows] if array.ndim else array
           for name, array in case.feeds.items()}  # fmt: skip
    return [torch.from_numpy(np.array(array)) for array in cut.values()]


def _expected(case: Case, given: list[torch.Tensor]) -> list[torch.Tensor]:
    """What onnxruntime computes."""
    feeds = {name: tensor.numpy() for name, tensor in zip(case.feeds, given, strict=True)}
    made = ep.Session(model(case.graph), providers=["onnxruntime"]).run(feeds)
    return [torch.from_numpy(np.array(array)) for array in made.values()]


def _agree(made: list[torch.Tensor], expected: list[torch.Tensor]) -> None:
    for left, right in zip(made, expected, strict=True):
        torch.testing.assert_close(left, right)


@pytest.mark.parametrize("name", CASES)
def test_a_loop_computes_what_the_graph_does(name: str) -> None:
    case = CASES[name]
    net = ep.to_torch(model(case.graph), verify=False)
    for rows in (4, 2):
        given = _given(case, rows)
        _agree(results(net, given), _expected(case, given))


@pytest.mark.parametrize("name", CAPTURED)
def test_a_loop_stays_a_loop_in_a_captured_graph(name: str) -> None:
    case = CASES[name]
    net = ep.to_torch(model(case.graph), verify=False)
    given = _given(case)
    free = tuple(
        {axis: torch.export.Dim.DYNAMIC for axis, size in enumerate(each.shape) if size == 4} for each in given
    )
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's own loop operators warn of each other
        program = torch.export.export(net, tuple(given), dynamic_shapes=free, strict=False)
    calls = [str(node.target) for node in program.graph.nodes if node.op == "call_function"]
    assert [call for call in calls if call in ("while_loop", "scan")] == case.operator.split()
    for rows in (4, 2):
        given = _given(case, rows)
        with torch.no_grad():
            _agree(results(program.module(), given), _expected(case, given))


@pytest.mark.parametrize(
    "name",
    [
        "a condition",
        "a loop and a branch in a loop",
        "a slice from each turn",
        "a scan",
        "slices until a condition, at most nine",
    ],
)
def test_a_loop_compiles_with_what_is_around_it(name: str) -> None:
    case = CASES[name]
    compiled = torch.compile(ep.to_torch(model(case.graph), verify=False), fullgraph=True, backend="eager")
    given = _given(case)
    with torch.no_grad():  # scan has no gradients for integers beside others
        _agree(results(compiled, given), _expected(case, given))


def test_a_loop_is_captured_with_open_sizes_after_one_with_fixed_ones() -> None:
    """Torch keeps what it has compiled of a loop, and would take the sizes from there."""
    case = CASES["slices of as many turns as are fed"]
    net = ep.to_torch(model(case.graph), verify=False)
    given = tuple(_given(case))
    with torch.no_grad():
        torch.export.export(net, given, strict=False)
        program = torch.export.export(net, given, dynamic_shapes=({0: torch.export.Dim("rows")}, None), strict=False)
        smaller = _given(case, 2)
        _agree(results(program.module(), smaller), _expected(case, smaller))


def test_a_loop_that_draws_and_collects_without_a_bound_is_never_run_twice() -> None:
    graph = """g (float[3] x) => (float[3] y, float[K, 3] z) <float limit = {2.0}> {
        y, z = Loop(, , x) <body = b (int64 i, bool go, float[3] a) => (bool on, float[3] c, float[3] d) {
            r = RandomUniformLike(a)  c = Add(a, r)  d = Identity(r)
            s = ReduceMax<keepdims = 0>(c)  on = Less(s, limit)
        }> }"""
    net = ep.to_torch(model(graph), verify=False)
    assert "while " in net.source()
    y, z = net(torch.zeros(3))
    torch.testing.assert_close(y, z.sum(0))
    with pytest.raises(torch.fx.experimental.symbolic_shapes.GuardOnDataDependentSymNode):
        torch.export.export(net, (torch.zeros(3),), strict=False)


@pytest.mark.parametrize("name", ["turns counted", "a slice from each turn", "a scan"])
def test_gradients_flow_through_loops(name: str) -> None:
    case = CASES[name]
    net = ep.to_torch(model(case.graph), verify=False)
    given = [each.double().requires_grad_() if each.is_floating_point() else each for each in _given(case)]
    first = next(at for at, each in enumerate(given) if each.is_floating_point())
    assert torch.autograd.gradcheck(lambda x: results(net, [*given[:first], x, *given[first + 1 :]])[0], given[first])


def test_a_loop_that_goes_on_without_a_condition_is_exported_again() -> None:
    graph = """g (float[N] x) => (float[N] y) <int64 n = {2}, bool going = {1}> {
        y = Loop(n, going, x) <body = b (int64 i, bool go, float[N] a) => (bool on, float[N] c) {
            on = Identity(go)  c = Add(a, a) }> }"""
    again = ep.export(ep.to_torch(model(graph)), torch.ones(3), progress=False)
    assert [node.op_type for node in again.ir.graph] == ["Loop"]
    made = ep.Session(again, providers=["onnxruntime"]).run({again.inputs[0].name: np.ones(3, F32)})
    np.testing.assert_array_equal(next(iter(made.values())), [4, 4, 4])


@pytest.mark.parametrize("start", [2, 1, 4])
def test_a_loop_that_ends_by_what_it_computes_and_keeps_each_turn_is_exported_again(start: int) -> None:
    graph = """g (float[V, V] w, int64 s) => (int64 last, int64[K] ys)
            <bool going = {1}, int64 n = {6}, int64 e = {0}> {
        last, ys = Loop(n, going, s) <body = b (int64 i, bool go, int64 p) => (bool on, int64 q, int64 o) {
            r = Gather(w, p)  q = ArgMax<keepdims = 0>(r)  o = Identity(q)  z = Equal(q, e)  on = Not(z) }> }"""
    net = ep.to_torch(model(graph), verify=False)
    weights = torch.eye(5).roll(1, 0)
    again = ep.export(net, (weights, torch.tensor(2)), progress=False)
    feeds = dict(zip(again.ir.graph.inputs, (weights.numpy(), np.array(start)), strict=True))
    made = ep.Session(again, providers=["onnxruntime"]).run({value.name: array for value, array in feeds.items()})
    wanted = ep.Session(model(graph), providers=["onnxruntime"]).run({"w": weights.numpy(), "s": np.array(start)})
    for left, right in zip(made.values(), wanted.values(), strict=True):
        np.testing.assert_array_equal(left, right)
