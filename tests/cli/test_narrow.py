"""Terminals of any width show everything: nothing is cut, and no line is longer than the terminal is wide."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios

import pytest

WORDS = {
    "info": ("info", "{long}"),
    "info --nodes": ("info", "{long}", "--nodes"),
    "check": ("check", "{long}"),
    "check of what nobody runs": ("check", "{fancy}"),
    "run": ("run", "{relu}", "-i", "x=[[0.1,-2,30000],[4,5,6]]"),
    "compare": ("compare", "{relu}", "{relu}"),
    "compare of different models": ("compare", "{relu}", "{other}"),
    "convert": ("convert", "{relu}", "--opset", "17", "-o", "{target}"),
    "convert --explain": ("convert", "{many}", "--opset", "6", "--explain"),
    "export": ("export", "{relu}", "--opset", "17", "-o", "{target}"),
    "simplify": ("simplify", "{long}", "-o", "{target}"),
    "extract": ("extract", "{long}", "--to", "y", "-o", "{target}"),
    "doctor": ("doctor",),
}
STATUS = {"check of what nobody runs": 4, "compare of different models": 1, "convert --explain": 4}


@pytest.fixture
def models(write, relu, fancy, tmp_path):
    name = "a_rather_long_name_of_a_value_in_a_module_within_a_module_" * 2
    return {
        "relu": relu,
        "fancy": fancy,
        "long": write(f"{name} = Relu(x)  y = Neg({name})", name="long", inputs="float[batch, sequence_length, 3] x",
                      outputs="float[batch, sequence_length, 3] y"),
        "other": write("h = Constant <value = float {0.01}> ()  r = Relu(x)  y = Add(r, h)", name="other"),
        "many": write("y = Sin(x)  z = Cos(x)", outputs="float[batch, 3] y, float[batch, 3] z", name="many"),
        "target": tmp_path / "target.onnx",
    }  # fmt: skip


def packed(text):
    """Without white space and lines around cells, which say nothing."""
    return re.sub(r"[\s━┃┏┳┓┡╇╆╈┩│└┴┘─┼]", "", text)


@pytest.mark.parametrize("case", WORDS)
@pytest.mark.parametrize("width", [60, 40, 20])
def test_a_narrow_terminal_shows_all_that_a_wide_one_does(entrepot, models, monkeypatch, case, width):
    words = [word.format(**models) for word in WORDS[case]]
    wide = entrepot(*words, status=STATUS.get(case, 0)).stdout
    monkeypatch.setattr("entrepot.cli.output._width", lambda: width)
    narrow = entrepot(*words, status=STATUS.get(case, 0)).stdout
    cells = [cell for cell in re.split(r"\n|\s{2,}|[━┃┏┳┓┡╇╆╈┩│└┴┘─┼]", wide) if cell.strip()]
    assert cells
    assert [cell for cell in cells if packed(cell) not in packed(narrow)] == []
    assert "…" not in narrow
    assert case.startswith("convert") or max(map(len, narrow.splitlines())) <= width


def in_terminal(words, columns):
    """What a command writes to a terminal so wide."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environment = {key: value for key, value in os.environ.items() if key != "COLUMNS"} | {"TERM": "xterm"}
    command = [sys.executable, "-m", "entrepot", *map(str, words)]
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment) as process:
        os.close(theirs)
        content = b""
        try:
            while piece := os.read(ours, 4096):
                content += piece
        except OSError:  # how Linux says that the other side is closed
            pass
        os.close(ours)
        assert process.wait(timeout=60) == 0
    return re.sub(r"\x1b\[[0-9;]*m", "", content.decode())


def test_the_width_is_that_of_the_terminal(relu):
    lines = in_terminal(["info", relu, "--nodes"], 40).splitlines()
    assert "float32[batch,3]" in packed("".join(lines))
    assert 20 < max(map(len, lines)) <= 40


def test_a_pipe_is_never_folded(relu):
    command = [sys.executable, "-m", "entrepot", "info", str(relu), "--nodes"]
    plain, narrow = (
        subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ | extra).stdout
        for extra in ({"COLUMNS": "200"}, {"COLUMNS": "20"})
    )
    assert plain == narrow
    assert "Relu  x: float32[batch, 3]  y: float32[batch, 3]" in plain
