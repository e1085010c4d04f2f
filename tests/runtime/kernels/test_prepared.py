"""Every operator case whose inputs after the first are constant, on the kernel bound to that node."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from entrepot.runtime.kernels.table import shared
from entrepot.runtime.node_view import InputView, NodeView
from entrepot.runtime.providers.cpu.backend import NUMPY
from entrepot.runtime.providers.cpu.table import native, prepared
from tests.op_cases import all_cases
from tests.op_cases.case import Case

CASES = [case for case in all_cases() if prepared.find(case.domain, case.op_type, case.since)]
FEW = {np.dtype(np.float64): 1e-12, np.dtype(np.float32): 1e-5, np.dtype(np.float16): 5e-3}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_bound_kernel_agrees_with_the_plain_one_run_after_run(case: Case) -> None:
    bound = bind(case)
    if bound is None:
        return  # the kernel declined this node, and the plain one runs it
    expected = plain(case, case.inputs)
    for _ in range(2):
        with np.errstate(all="ignore"):
            got = outputs(bound(*case.inputs))
        assert_same(got, expected)


@pytest.mark.parametrize("op_type", ["Conv", "Gemm", "MatMul", "LSTM", "GRU", "RNN"])
def test_some_case_is_bound(op_type: str) -> None:
    assert any(bind(case) is not None for case in CASES if case.op_type == op_type)


@pytest.mark.parametrize("op_type", ["Conv", "LSTM"])
def test_results_survive_the_next_run(op_type: str) -> None:
    case = next(case for case in CASES if case.op_type == op_type and bind(case) is not None)
    bound = bind(case)
    first = outputs(bound(*case.inputs))
    kept = [value.copy() for value in first]
    bound(case.inputs[0] * 2, *case.inputs[1:])
    assert_same(first, kept)


def test_a_convolution_follows_changing_shapes_and_threads() -> None:
    padded = [case for case in CASES if case.op_type == "Conv" and "pads" in case.attributes]
    case = next(case for case in padded if case.inputs[0].dtype == np.float32)
    bound = bind(case)
    rng = np.random.default_rng(0)
    feeds = [rng.standard_normal((n, *case.inputs[0].shape[1:-1], 9 + n)).astype(np.float32) for n in (1, 3, 2) * 8]
    expected = [plain(case, (feed, *case.inputs[1:])) for feed in feeds]
    failures: list[BaseException] = []

    def work() -> None:
        try:
            for feed, wanted in zip(feeds, expected, strict=True):
                assert_same(outputs(bound(feed, *case.inputs[1:])), wanted)
        except AssertionError as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def bind(case: Case) -> Any:
    inputs = tuple(
        None if value is None else InputView(f"i{n}", value if n else None, value.dtype, value.shape)
        for n, value in enumerate(case.inputs)
    )
    view = NodeView(
        case.op_type, inputs, case.domain, case.since, attributes=case.attributes, n_outputs=case.output_count
    )
    return prepared.get(case.domain, case.op_type, case.since).function(view)


def plain(case: Case, inputs: Any) -> list[np.ndarray]:
    entry = native.find(case.domain, case.op_type, case.since)
    leading = () if entry else (NUMPY,)
    entry = entry or shared.get(case.domain, case.op_type, case.since)
    with np.errstate(all="ignore"):
        return outputs(entry.function(*leading, *inputs, **case.attributes))


def outputs(result: Any) -> list[np.ndarray]:
    return [np.asarray(value) for value in (result if isinstance(result, tuple) else (result,))]


def assert_same(got: list[np.ndarray], wanted: list[np.ndarray]) -> None:
    assert len(got) == len(wanted)
    for g, w in zip(got, wanted, strict=True):
        assert (g.dtype, g.shape) == (w.dtype, w.shape)
        if w.dtype.kind == "O":
            assert g.tolist() == w.tolist()
        else:
            close = FEW.get(w.dtype, 1e-2)
            np.testing.assert_allclose(g.astype(w.dtype), w, rtol=close, atol=close)
