"""What CONVENTIONS ask of every file and no other tool checks."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("cli", "exporters", "importers", "ir", "models_zoo", "parity", "runtime", "testing")
FILES = sorted(path for room in ROOMS for path in (ROOT / room).rglob("*.py"))
NAMELESS = {"utils", "util", "helpers", "helper", "common", "base", "misc", "manager", "handler", "processor"}


def test_no_file_is_named_for_nothing():
    assert [str(path.relative_to(ROOT)) for path in FILES if path.stem in NAMELESS] == []


def test_no_file_is_longer_than_500_lines():
    assert [
        str(path.relative_to(ROOT)) for path in FILES if len(path.read_text(encoding="utf-8").splitlines()) > 500
    ] == []


def test_nearly_all_functions_are_short():
    """Nine of ten within 30 lines, and none beyond 100, docstrings counted."""
    lengths = sorted(
        _length(node)
        for path in FILES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if _is_def(node)
    )
    assert lengths[len(lengths) * 9 // 10] <= 30
    assert lengths[-1] <= 100


@pytest.mark.parametrize("room", ROOMS)
def test_tests_mirror_the_rooms(room):
    """A folder of tests has a folder of code of the same name beside it."""
    folders = [path for path in (ROOT / "tests" / room).rglob("*") if path.is_dir() and path.name != "__pycache__"]
    tests = [path for path in folders if any(path.glob("test_*.py"))]
    assert [str(path) for path in tests if not (ROOT / path.relative_to(ROOT / "tests")).is_dir()] == []


MAY_IMPORT = {
    "op_cases": {"op_cases"},
    "judges": {"judges", "op_cases"},
    "export_cases": {"export_cases"},
    "sweeps": {"sweeps", "judges", "op_cases", "export_cases"},
    "benchmarks": {"benchmarks", "sweeps", "judges", "op_cases", "export_cases"},
}
"""The rooms that tests and benchmarks share; the judges depend on nothing that they judge."""


@pytest.mark.parametrize("room", MAY_IMPORT)
def test_what_tests_and_benchmarks_share_imports_neither(room):
    folder = ROOT / room if room == "benchmarks" else ROOT / "tests" / room
    assert {name for path in folder.rglob("*.py") for name in _rooms(path)} <= MAY_IMPORT[room]


def test_no_test_imports_a_benchmark():
    assert [str(path) for path in (ROOT / "tests").rglob("*.py") if "benchmarks" in _rooms(path)] == []


def _rooms(path: Path) -> set[str]:
    """The rooms of tests and benchmarks that a file imports from: ``judges`` of ``tests.judges.oracle``."""
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module:
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    parts = [name.split(".") for name in names]
    return {part[1] if part[0] == "tests" else part[0] for part in parts if part[0] in ("tests", "benchmarks")}


def _is_def(node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)


def _length(node: ast.AST) -> int:
    assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    assert node.end_lineno is not None
    return node.end_lineno - node.lineno + 1
