"""The workflow that the guide offers, its steps run one after the other as GitHub would."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path
from typing import Any

import yaml

from tests.testing.test_plugin import PLUGIN, ROOT

FILE = re.compile(r"^<!-- file: (\S+) -->\n```\w+\n(.*?)^```", re.MULTILINE | re.DOTALL)
FILES = dict(FILE.findall((ROOT / "docs" / "testing.md").read_text()))
WORKFLOW: dict[str, Any] = yaml.safe_load(FILES[".github/workflows/parity.yml"])
STEPS: list[dict[str, Any]] = WORKFLOW["jobs"]["parity"]["steps"]


def bash(script: str, folder: Path) -> str:
    environment = {
        **os.environ,
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "PYTHONPATH": str(ROOT),
        "PYTEST_ADDOPTS": shlex.join(PLUGIN),
        "PYTEST_XDIST_AUTO_NUM_WORKERS": "1",
        "OMP_NUM_THREADS": "1",
    }
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{script}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def test_the_steps_of_the_workflow_run(tmp_path: Path) -> None:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    bash("pytest -q --parity-update -k stays", tmp_path)  # as the guide says, before the first commit
    runs = {step["name"]: step["run"] for step in STEPS if "run" in step}
    assert list(runs) == ["Install", "Test"]
    assert "2 passed" in bash(runs["Test"], tmp_path)


def test_what_the_workflow_installs_is_what_these_tests_run_with() -> None:
    (command,) = [step["run"] for step in STEPS if step.get("name") == "Install"]
    ours, *others = shlex.split(command.removeprefix("pip install "))
    name, extras = re.fullmatch(r"(\w+)\[(.+)\]", ours).groups()  # type: ignore[union-attr]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert name == project["name"]
    assert set(extras.split(",")) <= set(project["optional-dependencies"])
    for other in others:
        metadata.version(other)
