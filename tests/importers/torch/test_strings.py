"""Strings, and element types that torch lacks, are NumPy arrays in a module."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import entrepot as ep
from entrepot.importers.torch.proof import ModuleSource
from tests.importers.torch.networks import model


class Case(NamedTuple):
    """A graph, what it is fed with, and what it makes."""

    graph: str
    feeds: dict[str, Any]
    expected: list[Any]


def s(*texts: str) -> np.ndarray[Any, Any]:
    return np.array(texts, object)


GOING = "on = Constant<value = bool {1}>()"
CASES = {
    "a constant beside": Case(
        'g (string[N] x) => (string[N] y) <string[1] w = {"q\\"\'"}> { y = StringConcat(x, w) }',
        {"x": s("p", "", "ü")},
        [s("pq\"'", "q\"'", "üq\"'")],
    ),
    "branches": Case(
        """g (string[N] x, bool c) => (string[N] y) <string[1] w = {"q"}> { y = If(c) <
            then_branch = t () => (string[N] a) { a = StringConcat(x, w) },
            else_branch = e () => (string[N] b) { b = StringConcat(w, x) }> }""",
        {"x": s("p", "o"), "c": np.array(False)},
        [s("qp", "qo")],
    ),
    "branches that read them": Case(
        """g (string[N] x, float[N] f, bool c) => (float[N] y) <string[1] w = {"p"}> { y = If(c) <
            then_branch = t () => (float[N] a) { e = Equal(x, w) k = Cast<to = 1>(e) a = Mul(k, f) },
            else_branch = e () => (float[N] b) { b = Neg(f) }> }""",
        {"x": s("p", "q"), "f": np.full(2, 3, np.float32), "c": np.array(True)},
        [np.array([3, 0], np.float32)],
    ),
    "constants that branches return": Case(
        """g (bool c) => (string[2, 2] y) <string[2, 2] w = {"a", "b", "c", "d"}, string[2, 2] v = {"", "", "", ""}> {
            y = If(c) <then_branch = t () => (string[2, 2] a) { a = Identity(w) },
                       else_branch = e () => (string[2, 2] b) { b = Identity(v) }> }""",
        {"c": np.array(True)},
        [s("a", "b", "c", "d").reshape(2, 2)],
    ),
    "a loop": Case(
        f"""g (string[2] x, int64 n) => (string[2] y, string[K, 2] z) <string[1] w = {{"a"}}> {{
            y, z = Loop(n, , x) <body = b (int64 i, bool go, string[2] a) => (bool on, string[2] c, string[2] d) {{
                {GOING} c = StringConcat(a, w) d = Identity(c) }}> }}""",
        {"x": s("p", "q"), "n": np.array(2)},
        [s("paa", "qaa"), s("pa", "qa", "paa", "qaa").reshape(2, 2)],
    ),
    "a loop of no turns": Case(
        f"""g (string[2] x, int64 n) => (string[K, 2] z) {{
            y, z = Loop(n, , x) <body = b (int64 i, bool go, string[2] a) => (bool on, string[2] c, string[2] d) {{
                {GOING} c = StringConcat(a, a) d = Identity(c) }}> }}""",
        {"x": s("p", "q"), "n": np.array(0)},
        [np.zeros((0, 2), object)],
    ),
    "a scan": Case(
        """g (string[N] x) => (string[N] z) <string w = {"a"}> {
            z = Scan(x) <num_scan_inputs = 1, body = b (string r) => (string d) { d = StringConcat(r, w) }> }""",
        {"x": s("p", "q")},
        [s("pa", "qa")],
    ),
    "a scan of integers of four bits": Case(
        """g (float[3, 2] x) => (float[3, 2] y) <float one = {0.5}, int4 zero = {0}> {
            q = QuantizeLinear(x, one, zero)
            z = Scan(q) <num_scan_inputs = 1, body = b (int4[2] r) => (int4[2] d) { d = Identity(r) }>
            y = DequantizeLinear(z, one, zero) }""",
        {"x": np.arange(6, dtype=np.float32).reshape(3, 2)},
        [np.array([[0, 1], [2, 3], [3.5, 3.5]], np.float32)],
    ),
    "a sequence": Case(
        """g (seq(string[N]) x) => (seq(string[N]) y) <string[1] w = {"q"}> {
            y = SequenceMap(x) <body = b (string[N] a) => (string[N] c) { c = StringConcat(a, w) }> }""",
        {"x": [s("a"), s("b", "c")]},
        [[s("aq"), s("bq", "cq")]],
    ),
    "sizes": Case(
        """g (string[N, 2] x) => (string[K] y, int64[2] s, int64 n) <int64[1] m = {-1}> {
            y = Reshape(x, m)  s = Shape(x)  n = Size(x) }""",
        {"x": s("a", "b", "c", "d").reshape(2, 2)},
        [s("a", "b", "c", "d"), np.array([2, 2]), np.array(4)],
    ),
    "numbers": Case(
        "g (string[N] x) => (float[N] y, string[N] z) { y = Cast<to = 1>(x)  z = Cast<to = 8>(y) }",
        {"x": s("1.5", "-2.5")},
        [np.array([1.5, -2.5], np.float32), s("1.5", "-2.5")],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_torch_cannot_hold_is_held_by_numpy(name: str) -> None:
    case = CASES[name]
    loaded = model(case.graph)
    net = ep.to_torch(loaded, sample=case.feeds)
    for run in (ModuleSource(net, loaded).run, ep.Session(loaded).run):
        for found, expected in zip(run(case.feeds).values(), case.expected, strict=True):
            assert ep.compare(expected, found)


def test_a_folder_reads_strings_with_numpy(tmp_path: Path) -> None:
    ep.to_torch(model(CASES["a constant beside"].graph), source=tmp_path)
    assert "numpy" in (tmp_path / "requirements.txt").read_text().split()
    code = "import numpy as np; from model import load; print(load()(np.array(['a'], object)).tolist())"
    told = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "['aq\"\\'']"
