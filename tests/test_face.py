"""`import entrepot` costs next to nothing, loads no framework, and every name it promises is there."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

import entrepot

FRAMEWORKS = ("torch", "tensorflow", "keras", "jax", "sklearn", "transformers", "onnxscript", "onnxruntime")
HEAVY = (*FRAMEWORKS, "onnx", "onnx_ir", "numpy", "scipy", "ml_dtypes", "rich", "click")
ROOMS = ("cli", "exporters", "importers", "ir", "models_zoo", "parity", "runtime", "testing")


def _python(code: str) -> str:
    return subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True).stdout


def _loaded(code: str) -> set[str]:
    return set(json.loads(_python(f"{code}; import json, sys; print(json.dumps(sorted(sys.modules)))")))


def _cpu_seconds(*arguments: str, rounds: int = 5) -> float:
    """Processor time of a whole interpreter, the least of several: a busy machine only ever adds to it."""
    times = []
    for _ in range(rounds):
        with subprocess.Popen([sys.executable, "-P", *arguments], stdout=subprocess.DEVNULL) as process:
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0
        times.append(usage.ru_utime + usage.ru_stime)
    return min(times)


def test_importing_the_package_loads_no_framework():
    assert not {name.split(".")[0] for name in _loaded("import entrepot")} & set(HEAVY)


@pytest.mark.parametrize("home", sorted({*entrepot._HOMES.values(), "entrepot.cli", "entrepot.models_zoo"}))
def test_no_public_module_loads_a_framework_by_being_imported(home):
    assert not {name.split(".")[0] for name in _loaded(f"import {home}")} & set(FRAMEWORKS)


def test_rooms_are_only_reachable_under_the_package_name():
    assert not set(ROOMS) & _loaded("import entrepot.runtime.session, entrepot.ir.model")


def test_importing_the_package_costs_less_than_importing_numpy():
    bare = _cpu_seconds("-c", "pass")
    assert _cpu_seconds("-c", "import entrepot") - bare < _cpu_seconds("-c", "import numpy") - bare


def test_help_of_the_command_line_costs_little_more_than_click():
    """The aim is 0.15 s; by ratio, so that it holds on any machine."""
    assert _cpu_seconds("-m", "entrepot", "--help") < 2 * _cpu_seconds("-c", "import click")


@pytest.mark.parametrize("name", entrepot.__all__)
def test_public_name_resolves_and_is_documented(name):
    assert getattr(entrepot, name).__doc__


def test_type_checkers_and_the_lazy_table_know_the_same_names():
    assert set(entrepot._HOMES) == set(entrepot.__all__)


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'exprot'"):
        _ = entrepot.exprot
