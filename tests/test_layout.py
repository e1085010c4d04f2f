"""What CONVENTIONS ask of every file and no other tool checks."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("cli", "exporters", "importers", "ir", "models_zoo", "parity", "runtime")
FILES = sorted(path for room in ROOMS for path in (ROOT / room).rglob("*.py"))
NAMELESS = {"utils", "util", "helpers", "helper", "common", "base", "misc", "manager", "handler", "processor"}


def test_no_file_is_named_for_nothing():
    assert [str(path.relative_to(ROOT)) for path in FILES if path.stem in NAMELESS] == []


def test_no_file_is_longer_than_500_lines():
    assert [str(path.relative_to(ROOT)) for path in FILES if len(path.read_text().splitlines()) > 500] == []


def test_nearly_all_functions_are_short():
    """Nine of ten within 30 lines, and none beyond 100, docstrings counted."""
    lengths = sorted(_length(node) for path in FILES for node in ast.walk(ast.parse(path.read_text())) if _is_def(node))
    assert lengths[len(lengths) * 9 // 10] <= 30
    assert lengths[-1] <= 100


@pytest.mark.parametrize("room", ROOMS)
def test_tests_mirror_the_rooms(room):
    """A folder of tests has a folder of code of the same name beside it."""
    folders = [path for path in (ROOT / "tests" / room).rglob("*") if path.is_dir() and path.name != "__pycache__"]
    tests = [path for path in folders if any(path.glob("test_*.py"))]
    assert [str(path) for path in tests if not (ROOT / path.relative_to(ROOT / "tests")).is_dir()] == []


def _is_def(node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)


def _length(node: ast.AST) -> int:
    assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    assert node.end_lineno is not None
    return node.end_lineno - node.lineno + 1
