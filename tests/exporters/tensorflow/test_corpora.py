"""A sample of the corpora of functions and files; ``make export-sweep`` runs all of them."""

from __future__ import annotations

import pytest

from tests.export_cases import cases, judge_of
from tests.export_cases.case import Case

pytestmark = pytest.mark.filterwarnings("ignore:.*tf.lite.*:UserWarning", "ignore:Statistics for quantized:UserWarning")

EVERY = {"tensorflow": 12, "files": 11}
CHOSEN = [case for corpus, step in EVERY.items() for case in cases(corpus)[::step]]


@pytest.mark.parametrize("case", CHOSEN, ids=lambda case: case.name)
def test_what_is_exported_computes_what_tensorflow_does(case: Case) -> None:
    outcome = judge_of(case.corpus)(case)
    assert outcome.verdict == "passed", outcome.why
