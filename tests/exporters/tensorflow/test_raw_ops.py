"""A sample of the operators of ``tf.raw_ops``; ``benchmarks.export_sweep --corpus raw_ops`` judges all of them."""

from __future__ import annotations

import pytest

from tests.export_cases.raw_ops import catalogue
from tests.export_cases.raw_ops.case import RawCase
from tests.sweeps.raw_ops import coverage, judge

EVERY = 11


@pytest.mark.parametrize("case", catalogue()[::EVERY], ids=lambda case: case.name)
def test_an_operator_computes_what_tensorflow_computes(case: RawCase) -> None:
    outcome = judge(case)
    assert outcome.verdict in ("passed", "static", "refused", "invalid"), outcome.why


def test_most_cases_pass() -> None:
    verdicts = [judge(case).verdict for case in catalogue()[5::97]]
    valid = [verdict for verdict in verdicts if verdict != "invalid"]
    assert sum(verdict in ("passed", "static") for verdict in valid) >= 0.95 * len(valid)


def test_operators_with_a_kernel_are_covered() -> None:
    translated, missing = coverage()
    assert len(translated) >= 494
    assert not {"AddV2", "Conv2D", "GatherV2", "StridedSlice", "ResizeBilinear", "Erfc"} & set(missing)
