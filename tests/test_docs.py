"""Every Python example in the documents runs, in order, one process state per document."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from docs import generate_opset_table
from docs.generate_support_matrix import page
from entrepot.cli.group import VERBS

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
ALONE = ("tensorflow", "keras", "jax", "sklearn")
"""Documents about frameworks that fight with torch over threads: a process for each."""
WITH_EXAMPLES = [path for path in DOCUMENTS if BLOCK.search(path.read_text())]


def test_the_documents_have_examples():
    assert len(WITH_EXAMPLES) >= 5


@pytest.mark.parametrize("document", WITH_EXAMPLES, ids=lambda path: path.stem)
def test_examples_run(document, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if document.stem in ALONE:
        code = "\n".join(BLOCK.findall(document.read_text()))
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        subprocess.run([sys.executable, "-c", code], check=True, env=environment)
        return
    names: dict[str, object] = {"__name__": document.stem}
    text = document.read_text()
    for block in BLOCK.finditer(text):
        line = text.count("\n", 0, block.start(1))
        code = compile("\n" * line + block.group(1), str(document), "exec")
        exec(code, names)


def test_documents_build_without_a_warning(tmp_path):
    command = [sys.executable, "-m", "sphinx", "-W", "-q", "-b", "html", "-d", tmp_path / "doctrees"]
    result = subprocess.run([*command, ROOT / "docs", tmp_path / "html"], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr[-3000:]


@pytest.mark.parametrize("fragment", sorted((ROOT / "changelog.d").glob("*.md")), ids=lambda path: path.stem)
def test_a_fragment_of_the_changelog_is_sentences(fragment):
    text = fragment.read_text().strip()
    assert re.fullmatch(r"[A-Z`].*\.", text, re.DOTALL)
    assert not re.search(r"^\s*[-+*] ", text, re.MULTILINE)


def test_every_verb_of_the_command_line_is_documented_and_no_other():
    named = set(re.findall(r"^entrepot (\w+)", (ROOT / "docs" / "command_line.md").read_text(), re.MULTILINE))
    assert named == set(VERBS)


def test_the_demo_suggests_only_verbs_that_exist():
    named = set(re.findall(r"\{entrepot\} (\w+)", (ROOT / "models_zoo" / "demo.py").read_text()))
    assert named
    assert named <= set(VERBS)


def test_the_support_matrix_is_current():
    assert (ROOT / "docs" / "support_matrix.md").read_text() == page(), "run: python docs/generate_support_matrix.py"


def test_the_opset_table_is_current():
    written = (ROOT / "docs" / "opset_table.md").read_text()
    assert written == generate_opset_table.page(), "run: python docs/generate_opset_table.py"


def test_every_rule_of_the_opset_table_says_what_it_does():
    told = [line for line in generate_opset_table.page().splitlines() if line.startswith("| ")]
    assert not [line for line in told if re.search(r"\d: *(<br>| \|)", line)]
