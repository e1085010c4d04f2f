"""Every version of every operator of ai.onnx.ml, on the operator cases, up and down."""

from __future__ import annotations

import pytest

from entrepot.ir.io.read import load
from entrepot.ir.opset import ML_OPSET
from entrepot.ir.opset.rules import declared
from entrepot.ir.opset.schemas import histories
from tests.judges.settle import settle
from tests.judges.verdict import judge, opinion
from tests.op_cases import ML, other_cases
from tests.op_cases.case import Case
from tests.sweeps.coverage import Rows, unreached
from tests.sweeps.rows import BAD, judged

CASES = [case for case in other_cases() if case.domain == ML]
NEVER = {
    "TreeEnsembleClassifier 5 -> 3": "deprecated",
    "TreeEnsembleRegressor 5 -> 3": "deprecated",
}


def test_every_operator_has_a_case() -> None:
    assert {case.op_type for case in CASES} == {op_type for domain, op_type in histories() if domain == ML}


@pytest.mark.parametrize("op_type", sorted({case.op_type for case in CASES}))
def test_the_oracles_agree_about_every_case(op_type: str) -> None:
    unsettled = [case for case in CASES if case.op_type == op_type and settle(case) is None and case.oracles]
    assert unsettled == []


def test_every_step_that_is_not_impossible_goes_right_and_none_goes_wrong() -> None:
    rows = Rows()
    bad = []
    for case in CASES:
        for step, verdict, why in judged(case):
            rows.add(step, verdict, why)
            bad += [(step, why)] if verdict in BAD else []
    assert bad == []
    missing = {f"{s.op_type} {s.start} -> {s.stop}": rows.why_not(s) for s in declared() if s.domain == ML}
    missing = {step: why for step, why in missing.items() if why is not None}
    assert missing.keys() == NEVER.keys()
    assert all(NEVER[step] in str(why) for step, why in missing.items())
    assert "TreeEnsembleClassifier 5 -> 3: declared impossible" in unreached(rows, "TreeEnsemble")


def _unchanged(case: Case) -> bool:
    return len(histories()[ML, case.op_type]) == 1 and case.op_type != "TreeEnsemble" and case.expected is None


@pytest.mark.parametrize("case", [case for case in CASES if _unchanged(case)][::3], ids=str)
def test_what_never_changed_is_the_same_at_every_version(case: Case) -> None:
    sample = opinion(case)
    assert sample is not None
    model = load(sample.model)
    for version in range(1, ML_OPSET):
        assert judge(sample, model, version) == ("right", "")
