from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnx
import pytest

import entrepot as ep
from entrepot.ir.errors import ExecutionError
from entrepot.runtime.binding import Kernels
from entrepot.runtime.providers.cpu.table import KERNELS
from entrepot.runtime.providers.reference import provider as reference

TEXT = """<ir_version: 10, opset_import: ["": 28]>
g (float[2] x, int64 n) => (float[2] y) <float[2] w = {1.0, 2.0}> {
    w2 = Add(w, w)
    y = Loop(n, , x) <body = b (int64 i, bool c, float[2] a) => (bool c, float[2] a2) {
        half = Mul(a, w2)
        a2 = Add(half, x)
    }>
}"""


def session(text: str = TEXT) -> ep.Session:
    return ep.Session(ep.load(onnx.parser.parse_model(text)), providers=["reference"])


def test_every_value_is_observed_even_in_subgraphs_and_of_constants() -> None:
    seen: list[str] = []
    session().run({"x": np.ones(2, np.float32), "n": np.array(2)}, observe=lambda name, value: seen.append(name))
    assert seen == ["w2", "half", "a2", "half", "a2", "y"]


def test_observed_values_are_those_of_the_run() -> None:
    values: dict[str, np.ndarray] = {}
    out = session().run({"x": np.ones(2, np.float32), "n": np.array(1)}, observe=values.__setitem__)
    np.testing.assert_array_equal(values["y"], out["y"])
    np.testing.assert_array_equal(values["half"], [2, 4])


def test_the_observer_is_forgotten_after_its_run() -> None:
    calls: list[str] = []
    it = session()
    feeds = {"x": np.ones(2, np.float32), "n": np.array(1)}
    it.run(feeds, observe=lambda name, value: calls.append(name))
    count = len(calls)
    it.run(feeds)
    assert len(calls) == count


def test_the_cpu_provider_cannot_be_observed() -> None:
    it = ep.Session(ep.load(onnx.parser.parse_model(TEXT)))
    with pytest.raises(ep.InputError, match=r"'cpu' cannot be observed.*reference"):
        it.run({"x": np.ones(2, np.float32), "n": np.array(1)}, observe=print)


def test_a_result_of_the_wrong_type_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = KERNELS.bind_plain

    def wrong(self: Kernels, step: object) -> object:
        call = plain(step)
        return lambda *inputs: np.asarray(call(*inputs)).astype(np.float64)

    monkeypatch.setattr(Kernels, "bind_plain", wrong)
    text = """<ir_version: 10, opset_import: ["": 28]> g (float[2] x) => (float[2] y) { t = Relu(x)  y = Mul(t, t) }"""
    monkeypatch.setattr(reference, "became", lambda *_: {})
    with pytest.raises(ExecutionError, match=r"value 't': produced float64 where float32 is expected"):
        session(text).run({"x": np.ones(2, np.float32)})


def test_each_of_many_threads_on_one_session_observes_its_own_run() -> None:
    it = session()
    started = threading.Barrier(8)

    def run(number: int) -> None:
        seen: list[tuple[str, float]] = []
        started.wait()
        for _ in range(20):
            seen.clear()
            x = np.full(2, number, np.float32)
            out = it.run({"x": x, "n": np.array(3)}, observe=lambda name, value: seen.append((name, float(value[0]))))
            halves = [value for name, value in seen if name == "half"]
            assert halves == [2 * number, 6 * number, 14 * number]  # a -> 2a + x, from a = x
            assert [name for name, _ in seen] == ["w2", *["half", "a2"] * 3, "y"]
            assert out["y"][0] == 15 * number

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(run, range(1, 9)))


def test_threads_that_do_not_observe_are_not_observed() -> None:
    it = session()
    inside, seen = threading.Event(), []
    feeds = {"x": np.ones(2, np.float32), "n": np.array(1)}

    def observe(name: str, value: object) -> None:
        seen.append(name)
        if not inside.is_set():
            inside.set()
            with ThreadPoolExecutor(1) as pool:
                pool.submit(it.run, feeds).result()

    it.run(feeds, observe=observe)
    assert seen == ["w2", "half", "a2", "y"]


def test_an_error_in_one_thread_names_the_node_that_it_ran() -> None:
    text = """<ir_version: 10, opset_import: ["": 28]>
    g (float[N] x, float[M] y) => (float[K] z) { [first] a = Add(x, y)  [second] z = MatMul(a, x) }"""
    it = session(text)

    def run(sizes: tuple[int, int]) -> str:
        with pytest.raises(ExecutionError) as caught:
            it.run({"x": np.ones(sizes[0], np.float32), "y": np.ones(sizes[1], np.float32)})
        return str(caught.value)

    with ThreadPoolExecutor(4) as pool:
        told = list(pool.map(run, [(2, 3), (1, 3)] * 20))
    assert ["'first'" in text for text in told] == [True, False] * 20
    assert ["'second'" in text for text in told] == [False, True] * 20
