"""The pytest plugin: options, the fixture ``parity``, and a few lines at the end of a run; it loads nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from entrepot.testing.parity import Parity

NOTE = "parity"
"""Under this name, tests note what they have written: with xdist, they run in other processes than the summary."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """What a run may be told about parity tests."""
    group = parser.getgroup("parity", "parity of exported models (entrepot)")
    group.addoption("--parity-update", action="store_true", help="write the golden files of parity.golden anew")
    group.addoption("--parity-report", metavar="DIR", help="folder for the HTML reports of parity tests that fail")


@pytest.fixture
def parity(request: pytest.FixtureRequest) -> Parity:
    """Tests that exported models compute what their sources do: ``export``, ``round_trip`` and ``golden``."""
    from entrepot.testing.parity import Parity

    return Parity(request)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Which files were written."""
    reports = [each for kind in ("passed", "failed") for each in terminalreporter.stats.get(kind, ())]
    notes = [text for each in reports for name, text in getattr(each, "user_properties", ()) if name == NOTE]
    if notes:
        terminalreporter.section("parity")
        for note in dict.fromkeys(notes):
            terminalreporter.line(note)
