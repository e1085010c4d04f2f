"""What spellings compute is what onnxruntime's own kernels compute."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from entrepot.ir.io.read import load
from entrepot.runtime.session import Session
from tests.judges.oracle import run_onnxruntime
from tests.op_cases.contributed import CONTRIBUTED, Contributed


def assert_near(got: Any, expected: np.ndarray, case: Contributed) -> None:
    """Sums as long as the longest axis, in another order; quantised numbers may be rounded to the other side."""
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
    if case.compared is not None and expected.ndim == 4:
        got, expected = got[:, :, : case.compared], expected[:, :, : case.compared]
    if expected.dtype.kind in "iu":
        step = 1 if case.op_type.startswith("Q") else 0
        assert np.abs(got.astype(np.int64) - expected.astype(np.int64)).max() <= step
        return
    terms = max(max(value.shape, default=1) for value in case.inputs if value is not None)
    near = 16 * terms * float(np.finfo(expected.dtype).eps) * float(np.abs(expected).max())
    np.testing.assert_allclose(got.astype(np.float64), expected.astype(np.float64), rtol=0, atol=near)


@pytest.mark.parametrize("case", CONTRIBUTED, ids=str)
@pytest.mark.parametrize("provider", ["cpu", "torch"])
def test_a_session_computes_what_onnxruntime_does(case: Contributed, provider: str) -> None:
    if provider == "torch":
        pytest.importorskip("torch")
    expected = run_onnxruntime(case.model(), case.feeds())
    found = Session(load(case.model()), providers=[provider]).run(case.feeds())
    for got, want in zip(found.values(), expected, strict=True):
        assert_near(got, want, case)


@pytest.mark.parametrize("case", CONTRIBUTED, ids=str)
def test_sizes_need_not_be_known(case: Contributed) -> None:
    loose = replace(case, told=False)
    expected = run_onnxruntime(case.model(), case.feeds())
    found = Session(load(loose.model()), providers=["cpu"]).run(case.feeds())
    for got, want in zip(found.values(), expected, strict=True):
        assert_near(got, want, case)
