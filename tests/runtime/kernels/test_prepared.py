"""Kernels that are bound to a node whose inputs after the first are constant: run after run, shape after shape."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from entrepot.runtime.node_view import InputView, NodeView
from entrepot.runtime.providers.cpu.table import prepared
from tests.judges.agreement import assert_as_expected
from tests.judges.bounds import expectations
from tests.op_cases import all_cases
from tests.op_cases.case import Case


def bind(case: Case) -> Any:
    inputs = tuple(
        None if value is None else InputView(f"i{n}", value if n else None, value.dtype, value.shape)
        for n, value in enumerate(case.inputs)
    )
    attributes = {name: tuple(value) if isinstance(value, list) else value for name, value in case.attributes.items()}
    view = NodeView(case.op_type, inputs, case.domain, case.since, attributes=attributes, n_outputs=case.output_count)
    return prepared.get(case.domain, case.op_type, case.since).function(view)


PREPARABLE = [case for case in all_cases() if prepared.find(case.domain, case.op_type, case.since)]
CASES = [case for case in PREPARABLE if bind(case) is not None]
"""What a kernel takes when it is bound; ``test_cases`` counts those that it leaves to the plain one."""


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_bound_kernel_agrees_with_every_oracle_run_after_run(case: Case) -> None:
    bound = bind(case)
    for _ in range(2):
        with np.errstate(all="ignore"):
            assert_right(outputs(bound(*case.inputs)), case)


@pytest.mark.parametrize("op_type", ["Conv", "Gemm", "MatMul", "LSTM", "GRU", "RNN"])
def test_some_case_is_bound(op_type: str) -> None:
    assert any(case.op_type == op_type for case in CASES)


@pytest.mark.parametrize("op_type", ["Conv", "LSTM"])
def test_results_survive_the_next_run(op_type: str) -> None:
    case = next(case for case in CASES if case.op_type == op_type)
    bound = bind(case)
    first = outputs(bound(*case.inputs))
    kept = [value.copy() for value in first]
    bound(case.inputs[0] * 2, *case.inputs[1:])
    for value, copy in zip(first, kept, strict=True):
        np.testing.assert_array_equal(value, copy)


def test_a_convolution_follows_changing_shapes_and_threads() -> None:
    padded = [case for case in CASES if case.op_type == "Conv" and "pads" in case.attributes]
    case = next(case for case in padded if case.inputs[0].dtype == np.float32)
    bound = bind(case)
    rng = np.random.default_rng(0)
    feeds = [rng.standard_normal((n, *case.inputs[0].shape[1:-1], 9 + n)).astype(np.float32) for n in (1, 3, 2) * 8]
    fed = [case.feeding({0: feed}) for feed in feeds]
    assert all(expectations(each) for each in fed)  # asked here, so that threads only compare
    failures: list[BaseException] = []

    def work() -> None:
        try:
            for each in fed:
                assert_right(outputs(bound(*each.inputs)), each)
        except AssertionError as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def outputs(result: Any) -> list[np.ndarray]:
    return [np.asarray(value) for value in (result if isinstance(result, tuple) else (result,))]


def assert_right(got: list[np.ndarray], case: Case) -> None:
    for oracle, expected in expectations(case).items():
        assert len(got) >= len(expected)
        for value, wanted in zip(got, expected, strict=False):
            assert_as_expected(value, wanted, oracle)
