"""Kernels that are bound to a node whose inputs after the first are constant: run after run, shape after shape."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
import torch

from entrepot.ir.table import OpKey
from entrepot.ir.traits import host_operands
from entrepot.runtime.node_view import InputView, NodeView
from entrepot.runtime.providers.torch.convolutions.convolution import conv_with
from entrepot.runtime.providers.torch.dtypes import TORCH as TYPES
from entrepot.runtime.providers.torch.dtypes import array_of_tensor, tensor_of
from entrepot.runtime.providers.torch.product import gemm_with, matmul_with
from entrepot.runtime.providers.torch.table import prepared
from tests.judges.agreement import assert_as_expected
from tests.judges.bounds import expectations
from tests.op_cases import all_cases
from tests.op_cases.case import Case


def bind(case: Case, *, declared: bool = True) -> Any:
    inputs = tuple(
        None if value is None else InputView(f"i{n}", value if n else None, value.dtype, _declared(value, declared))
        for n, value in enumerate(case.inputs)
    )
    attributes = {name: tuple(value) if isinstance(value, list) else value for name, value in case.attributes.items()}
    view = NodeView(case.op_type, inputs, case.domain, case.since, attributes=attributes, n_outputs=case.output_count)
    if case.op_type in PACKED:
        return PACKED[case.op_type](view)
    return prepared.get(case.domain, case.op_type, case.since).function(view)


PACKED = {
    "Conv": lambda view: conv_with(view, None),
    "Gemm": lambda view: gemm_with(view, None),
    "MatMul": lambda view: matmul_with(view, None, None),
}
"""What is packed on the host alone, where rules join it with what follows."""


def _declared(value: np.ndarray, declared: bool) -> tuple[Any, ...]:
    return tuple(value.shape) if declared else tuple(f"n{axis}" for axis in range(value.ndim))


def _lacks(case: Case) -> bool:
    """Whether torch has no tensor for a value of a case."""
    return any(isinstance(value, list) or (value is not None and value.dtype not in TYPES) for value in case.inputs)


BOUND = [
    pytest.param(case, declared, id=f"{case}-{'sizes known' if declared else 'sizes unknown'}")
    for case in all_cases()
    for declared in (True, False)
    if (case.op_type in PACKED or prepared.find(case.domain, case.op_type, case.since))
    and not _lacks(case)
    and bind(case, declared=declared) is not None
]
CASES = [each.values[0] for each in BOUND if each.values[1]]


def run(bound: Any, case: Case, arrange: Any = lambda tensor: tensor) -> list[np.ndarray]:
    host = host_operands(OpKey(case.domain, case.op_type, case.since))
    given = [
        value if value is None or position in host else tensor_of(value) for position, value in enumerate(case.inputs)
    ]
    with torch.inference_mode():
        result = bound(arrange(given[0]), *given[1:])
    return [array_of_tensor(each) for each in (result if isinstance(result, tuple) else (result,))]


def assert_right(got: list[np.ndarray], case: Case) -> None:
    for oracle, expected in expectations(case).items():
        assert len(got) >= len(expected)
        for value, wanted in zip(got, expected, strict=False):
            assert_as_expected(value, wanted, oracle)


@pytest.mark.parametrize(("case", "declared"), BOUND)
def test_a_bound_kernel_agrees_with_every_oracle_run_after_run(case: Case, declared: bool) -> None:
    bound = bind(case, declared=declared)
    for _ in range(2):
        assert_right(run(bound, case), case)


def _strided(tensor: torch.Tensor) -> torch.Tensor:
    """The same values, two apart from each other in memory along the last axis and with the axes in another order."""
    if not tensor.ndim:
        return tensor
    wide = torch.stack((tensor, tensor.new_zeros(tensor.shape)), -1).flip(0).flip(0)
    turned = wide.permute(*range(wide.ndim)[::-1]).contiguous().permute(*range(wide.ndim)[::-1])
    return turned[..., 0]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_layout_of_the_input_does_not_matter(case: Case) -> None:
    assert_right(run(bind(case), case, _strided), case)


@pytest.mark.parametrize("op_type", ["Conv", "Gather", "Gemm", "GRU", "LSTM", "MatMul", "Resize"])
def test_some_case_is_bound(op_type: str) -> None:
    assert any(case.op_type == op_type for case in CASES)


@pytest.mark.parametrize("op_type", ["Conv", "LSTM", "MatMul"])
def test_results_survive_the_next_run_and_inputs_are_left_alone(op_type: str) -> None:
    case = next(case for case in CASES if case.op_type == op_type)
    bound, before = bind(case), [None if value is None else value.copy() for value in case.inputs]
    first = run(bound, case)
    kept = [value.copy() for value in first]
    run(bound, case.feeding({0: case.inputs[0] * 2}))
    for value, copy in zip(first, kept, strict=True):
        np.testing.assert_array_equal(value, copy)
    for value, copy in zip(case.inputs, before, strict=True):
        np.testing.assert_array_equal(value, copy)


def test_a_convolution_follows_changing_shapes_and_threads() -> None:
    padded = [case for case in CASES if case.op_type == "Conv" and "pads" in case.attributes]
    case = next(case for case in padded if case.inputs[0].ndim == 4)
    bound = bind(case)
    rng = np.random.default_rng(0)
    feeds = [rng.standard_normal((n, *case.inputs[0].shape[1:-1], 9 + n)).astype(np.float32) for n in (1, 3, 2) * 8]
    fed = [case.feeding({0: feed}) for feed in feeds]
    assert all(expectations(each) for each in fed)  # asked here, so that threads only compare
    failures: list[BaseException] = []

    def work() -> None:
        try:
            for each in fed:
                assert_right(run(bound, each), each)
        except AssertionError as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
