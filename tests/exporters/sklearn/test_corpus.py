"""A sample of the corpus of estimators; ``python -m benchmarks.export_sweep --corpus sklearn`` runs all of it."""

from __future__ import annotations

import pytest

from tests.export_cases import cases
from tests.sweeps.estimators import judge

SAMPLE = [case for case in cases("sklearn") if "FunctionTransformer" not in case.name][::9]


@pytest.mark.parametrize("case", SAMPLE, ids=lambda case: case.name)
def test_every_method_agrees_in_onnxruntime_or_the_export_is_refused(case):
    outcome = judge(case)
    assert outcome.verdict in ("passed", "refused"), outcome.why
