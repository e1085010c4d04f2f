"""Work spread over threads: the same results on any number of them, and BLAS left as it was found."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import onnx
import pytest

import entrepot as ep
from entrepot.runtime import threads
from entrepot.runtime.providers.cpu.native.activation import sigmoid
from entrepot.runtime.providers.cpu.products import dense, matmul, parts
from entrepot.runtime.threads import available, context, each, one_blas_thread
from tests.judges.agreement import assert_as_expected
from tests.judges.bounds import expectations
from tests.judges.convolution import WINOGRAD
from tests.judges.graphs import assert_computes
from tests.op_cases.case import Case
from tests.op_cases.normal import normal as f32

HEAD = '<ir_version: 10, opset_import: ["": 22]>\n'


MODELS = {
    "one large tile": (
        "g (float[1, 64, 14, 14] x) => (float[1, 128, 12, 12] y) { c = Conv(x, w, b)  y = Relu(c) }",
        {"w": f32(128, 64, 3, 3), "b": f32(128)},
        (1, 64, 14, 14),
    ),
    "many tiles": (
        "g (float[2, 16, 90, 90] x) => (float[2, 32, 45, 45] y) "
        "{ y = Conv<strides = [2, 2], pads = [2, 2, 2, 2]>(x, w, b) }",
        {"w": f32(32, 16, 5, 5), "b": f32(32)},
        (2, 16, 90, 90),
    ),
    "winograd": (
        "g (float[2, 32, 60, 60] x) => (float[2, 64, 60, 60] y) { y = Conv<pads = [1, 1, 1, 1]>(x, w, b) }",
        {"w": f32(64, 32, 3, 3), "b": f32(64)},
        (2, 32, 60, 60),
    ),
    "pointwise": (
        "g (float[1, 64, 40, 40] x) => (float[1, 256, 40, 40] y) { c = Conv(x, w, b)  y = Relu(c) }",
        {"w": f32(256, 64, 1, 1), "b": f32(256)},
        (1, 64, 40, 40),
    ),
    "linear": (
        "g (float[N, 300] x) => (float[N, 500] y) { m = MatMul(x, w)  h = Add(m, b)  y = Relu(h) }",
        {"w": f32(300, 500), "b": f32(500)},
        (200, 300),
    ),
    "gemm": (
        "g (float[N, 300] x) => (float[N, 500] y) { h = Gemm(x, w, b)  y = Relu(h) }",
        {"w": f32(300, 500), "b": f32(500)},
        (700, 300),
    ),
    "a stack": (
        "g (float[B, N, 150] x) => (float[B, N, N] y) { t = Transpose<perm = [0, 2, 1]>(x)  y = MatMul(x, t) }",
        {},
        (12, 140, 150),
    ),
}


@pytest.fixture
def everything_is_worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "WORTH", 0)


def parsed(text: str, weights: dict[str, np.ndarray]) -> onnx.ModelProto:
    proto = onnx.parser.parse_model(HEAD + text)
    proto.graph.initializer.extend(onnx.numpy_helper.from_array(value, name) for name, value in weights.items())
    return proto


def built(text: str, weights: dict[str, np.ndarray]) -> ep.Model:
    return ep.load(parsed(text, weights))


@pytest.mark.usefixtures("everything_is_worth_it")
@pytest.mark.parametrize(("text", "weights", "shape"), MODELS.values(), ids=MODELS)
def test_results_do_not_depend_on_the_number_of_threads(
    text: str, weights: dict[str, np.ndarray], shape: tuple[int, ...]
) -> None:
    model, x = built(text, weights), f32(*shape)
    one, two, four = (ep.Session(model, threads=count).run({"x": x})["y"] for count in (1, 2, 4))
    np.testing.assert_array_equal(one, two)
    np.testing.assert_array_equal(one, four)
    assert_computes(parsed(text, weights), {"x": x}, {"y": one}, times=WINOGRAD)


@pytest.mark.usefixtures("everything_is_worth_it")
@pytest.mark.parametrize("name", ["many tiles", "winograd", "linear"])
def test_one_session_serves_several_python_threads(name: str) -> None:
    text, weights, shape = MODELS[name]
    session = ep.Session(built(text, weights), threads=3)
    feeds = [f32(*shape, of=str(number)) for number in range(8)]
    expected = [session.run({"x": x})["y"] for x in feeds]
    with ThreadPoolExecutor(4) as callers:
        found = list(callers.map(lambda x: session.run({"x": x})["y"], feeds))
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.usefixtures("everything_is_worth_it")
def test_one_thread_is_the_callers_own() -> None:
    seen: set[int] = set()
    context(1).run(each, lambda _: seen.add(threading.get_ident()), range(50), 1.0)
    assert seen == {threading.get_ident()}


def test_several_threads_work_at_the_same_time() -> None:
    meeting = threading.Barrier(3, timeout=60)
    context(3).run(each, lambda _: meeting.wait(), range(3), float("inf"))


def test_a_part_is_not_spread_again() -> None:
    inner: list[set[int]] = []

    def part(_: int) -> None:
        seen: set[int] = set()
        each(lambda _: seen.add(threading.get_ident()), range(20), float("inf"))
        inner.append(seen)

    context(4).run(each, part, range(16), float("inf"))
    assert [len(seen) for seen in inner] == [1] * 16


def test_where_no_threads_can_be_had_the_caller_does_it_all(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = ThreadPoolExecutor(2)
    closed.shutdown()
    monkeypatch.setattr(threads, "_pool", lambda count: closed)
    done: list[int] = []
    context(3).run(each, done.append, range(20), float("inf"))
    assert done == list(range(20))


@pytest.mark.parametrize("count", [1, 3])
def test_an_error_of_a_part_is_the_callers(count: int) -> None:
    def part(number: int) -> None:
        if number == 5:
            raise ValueError("part 5")

    with pytest.raises(ValueError, match="part 5"):
        context(count).run(each, part, range(8), float("inf"))


def test_blas_gets_its_threads_back() -> None:
    switches = threads._blas_switches()
    before = [get() for get, _ in switches]
    try:
        for _, put in switches:
            put(2)
        with one_blas_thread:
            with one_blas_thread:
                assert all(get() == 1 for get, _ in switches)
            assert all(get() == 1 for get, _ in switches)
        assert all(get() == 2 for get, _ in switches)
    finally:
        for count, (_, put) in zip(before, switches, strict=True):
            put(count)


def test_the_blas_of_numpy_is_found() -> None:
    name = np.show_config("dicts")["Build Dependencies"]["blas"]["name"]
    assert threads._blas_switches() or not any(known in name for known in ("openblas", "mkl", "blis"))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes of this system do not fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_process_has_threads_of_its_own() -> None:
    session = ep.Session(built(*MODELS["linear"][:2]), threads=2)
    x = f32(2000, 300)
    expected = session.run({"x": x})["y"]
    with one_blas_thread:  # as if another thread were in the middle of something
        child = os.fork()
        if child == 0:
            os._exit(0 if np.array_equal(session.run({"x": x})["y"], expected) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_the_environment_bounds_the_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert available() == 1
    monkeypatch.delenv("OMP_NUM_THREADS")
    assert available() >= 1


def test_no_threads_at_all_are_refused() -> None:
    with pytest.raises(ep.InputError, match="1 or more"):
        ep.Session(built(*MODELS["linear"][:2]), threads=0)


@pytest.mark.parametrize("sizes", [(1, 1, 1), (128, 3072, 768), (3000, 64, 500), (7, 50000, 700)])
def test_parts_make_up_the_whole(sizes: tuple[int, int, int]) -> None:
    seen = np.zeros(sizes[:2], int)
    for part in parts(*sizes):
        seen[part] += 1
    assert (seen == 1).all()


@pytest.mark.parametrize(
    ("a", "b"),
    [((3, 4), (4, 5)), ((0, 4), (4, 5)), ((4,), (4,)), ((2, 3, 4), (4,)), ((5, 1, 300, 200), (2, 200, 100))],
)
def test_products_are_those_of_numpy(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    case = Case("MatMul", f32(*a), f32(*b, of="second"))
    assert_right(matmul(*case.inputs), case)


def test_what_follows_a_product_sees_every_part_once() -> None:
    x, y = f32(600, 500), f32(500, 400)

    def negate(tile: np.ndarray, part: Any) -> None:
        np.negative(tile, out=tile)

    assert_right(-dense(x, y, negate), Case("MatMul", x, y))


def test_blocks_of_a_formula_are_spread_and_the_same() -> None:
    x = f32(40, 30_000)
    one, three = (context(count).run(sigmoid, x) for count in (1, 3))
    np.testing.assert_array_equal(one, three)
    assert_right(one, Case("Sigmoid", x))


def assert_right(got: np.ndarray, case: Case) -> None:
    for oracle, (expected,) in expectations(case).items():
        assert_as_expected(got, expected, oracle)
