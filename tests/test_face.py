"""`import entrepot` costs next to nothing, loads no framework, and every name it promises is there."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import entrepot

HEAVY = ("torch", "tensorflow", "keras", "jax", "sklearn", "transformers", "onnx", "onnx_ir", "onnxruntime", "numpy")
ROOMS = ("cli", "exporters", "importers", "ir", "models_zoo", "parity", "runtime")


def _python(code: str) -> str:
    return subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True).stdout


def _cpu_seconds(code: str, rounds: int = 3) -> float:
    timed = "import time; start = time.process_time()\n{code}\nprint(time.process_time() - start)"
    return min(float(_python(timed.format(code=code))) for _ in range(rounds))


def test_importing_the_package_loads_no_framework():
    loaded = json.loads(_python("import entrepot, json, sys; print(json.dumps(sorted(sys.modules)))"))
    assert not {name.split(".")[0] for name in loaded} & set(HEAVY)


def test_rooms_are_only_reachable_under_the_package_name():
    loaded = json.loads(
        _python("import entrepot.runtime.session, entrepot.ir.model, json, sys; print(json.dumps(sorted(sys.modules)))")
    )
    assert not set(ROOMS) & set(loaded)


def test_importing_the_package_costs_less_than_importing_numpy():
    assert _cpu_seconds("import entrepot") < _cpu_seconds("import numpy")


@pytest.mark.parametrize("name", entrepot.__all__)
def test_public_name_resolves_and_is_documented(name):
    assert getattr(entrepot, name).__doc__


def test_type_checkers_and_the_lazy_table_know_the_same_names():
    assert set(entrepot._HOMES) == set(entrepot.__all__)


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'exprot'"):
        _ = entrepot.exprot
