"""ONNX's own node tests as modules: nothing wrong, and never fewer passed than before."""

from __future__ import annotations

from collections import Counter

from tests.sweeps.backend_suite import outcomes

FLOOR = 1869
"""Of 1884. Not passed: 6 Bernoulli (one draw of NumPy's generator), and 9 images that are decoded."""


def test_the_node_tests_of_onnx_pass() -> None:
    found = list(outcomes("to_torch", ["node"]))
    assert [f"{each.name}: {each.reason}" for each in found if each.status in ("wrong", "failed")] == []
    assert Counter(each.status for each in found)["passed"] >= FLOOR
