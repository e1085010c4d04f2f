"""The examples of the guide run, in order; here, where JAX has a process of its own."""

from __future__ import annotations

import re
from pathlib import Path

GUIDE = Path(__file__).resolve().parents[3] / "docs" / "jax.md"


def test_examples_of_the_guide_run():
    names: dict[str, object] = {}
    blocks = re.findall(r"^```py\n(.*?)^```", GUIDE.read_text(), re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 4
    for block in blocks:
        exec(compile(block, str(GUIDE), "exec"), names)
