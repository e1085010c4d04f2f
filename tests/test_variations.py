"""The variations in which the tests run in turn."""

from __future__ import annotations

import datetime as dt
import os
import subprocess
import sys

import pytest

from tests.variations import main, name_for, variations


def test_every_variation_has_its_turn_once_in_as_many_days() -> None:
    names = list(variations())
    start = dt.date(2030, 2, 25)
    assert sorted(name_for(start + dt.timedelta(n), names) for n in range(len(names))) == sorted(names)


@pytest.mark.parametrize("name", variations())
def test_numpy_accepts_what_is_set(name: str) -> None:
    environment = {**os.environ, **variations()[name].environment}
    script = "import numpy, sys; numpy.ones((9, 9)) @ numpy.ones((9, 9))"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script], env=environment, capture_output=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_variation_that_is_not_here_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["vax"]) == 2
    assert "no variation 'vax' here; this machine has plain" in capsys.readouterr().err


def test_what_runs_and_how_to_repeat_it_is_printed() -> None:
    command = [sys.executable, "-m", "tests.variations", "seed-3", "--collect-only", "-q", "tests/test_variations.py"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert done.stdout.startswith("[test] variation seed-3: --randomly-seed=3; again by: make test VARIATION=seed-3\n")
