"""The sweep's workers: what a case takes must not count against those after it."""

from __future__ import annotations

import argparse

import pytest

from benchmarks.export_sweep import _Worker
from tests.export_cases.case import Built, Case

CASE = Case("memory/large", "modules", lambda: Built(None, ()))


class Scripted(_Worker):
    """A worker whose outcomes are known beforehand."""

    def __init__(self, served: int, *outcomes: tuple[str, str]) -> None:
        super().__init__(argparse.Namespace())
        self._served, self.outcomes, self.processes = served, list(outcomes), 1

    def stop(self) -> None:
        self.processes += 1

    def _tried(self, _case: Case) -> dict[str, object]:
        verdict, why = self.outcomes.pop(0)
        return {"verdict": verdict, "why": why}


@pytest.mark.parametrize(
    "why", ["the process died (exit code -11)", "MemoryError: ", "RuntimeError: could not create a primitive"]
)
def test_what_fails_for_lack_of_memory_after_others_gets_a_process_of_its_own(why):
    worker = Scripted(7, ("crashed", why), ("passed", ""))
    assert worker.run(CASE)["verdict"] == "passed"
    assert worker.processes == 2


def test_what_fails_alone_or_by_itself_is_not_tried_again():
    assert Scripted(1, ("crashed", "MemoryError: ")).run(CASE)["verdict"] == "crashed"
    assert Scripted(7, ("wrong", "output differs")).run(CASE)["verdict"] == "wrong"
