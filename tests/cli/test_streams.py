"""Pipes and closed streams: every verb ends cleanly, and models come and go through standard input and output."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys

import numpy as np
import onnx
import pytest
from click.testing import CliRunner

from entrepot.cli import main
from entrepot.cli.group import VERBS

READ_ONE = {
    "info": [], "check": [], "run": [], "convert": ["--opset", "21", "--explain"],
}  # fmt: skip
"""Verbs that read one model, with what they need besides."""

WRITE_ONE = {"convert": ["--opset", "21"], "simplify": [], "extract": ["--to", "y"]}
"""Verbs that write a model, with what they need besides."""


@pytest.fixture
def piped(relu):
    """Runs a verb with the model of ``relu`` on standard input; returns what click saw."""

    def call(*words, status=0):
        result = CliRunner().invoke(main, [str(word) for word in words], input=relu.read_bytes())
        assert result.exit_code == status, result.output
        return result

    return call


def shell(command, cwd, *words):
    """Runs a shell command line in which ``$@`` is the command under test."""
    environment = os.environ | {"PYTHONPATH": os.getcwd()}
    return subprocess.run(
        ["sh", "-c", command, "sh", sys.executable, "-m", "entrepot", *map(str, words)],
        cwd=cwd, capture_output=True, check=False, timeout=120, env=environment,
    )  # fmt: skip


def arguments(verb, relu):
    needed = {
        "compare": [relu, relu, "--only-sample"],
        "doctor": [],
        "export": [relu, "-o", "out.onnx"],
        "import": [relu, "--to", "numpy", "-o", "folder"],
    }
    return needed.get(verb, [relu, *(["-o", "out.onnx"] if verb in WRITE_ONE else []), *WRITE_ONE.get(verb, [])])


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("closed", [">&-", "<&- >&- 2>&-"])
def test_a_verb_with_closed_streams_ends_well(relu, tmp_path, verb, closed):
    words = [verb, *arguments(verb, relu)]
    result = shell(f'"$@" {closed}', tmp_path, *words)
    assert result.returncode == 0, result.stderr.decode()
    assert b"Traceback" not in result.stdout + result.stderr
    assert b"Exception ignored" not in result.stderr
    if "out.onnx" in words:  # nothing that was printed has landed in the file
        onnx.checker.check_model(tmp_path / "out.onnx", full_check=True)


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize(
    "words", [["info", "nowhere.onnx"], ["info", "nowhere.onnx", "--json"], ["expport"], ["--help"]]
)
def test_errors_and_help_survive_closed_streams(tmp_path, closed, words):
    result = shell(f'"$@" {closed}', tmp_path, *words)
    assert result.returncode == (0 if words == ["--help"] else 2)
    assert b"Traceback" not in result.stdout + result.stderr


@pytest.mark.parametrize("verb", READ_ONE)
def test_a_model_is_read_from_standard_input(entrepot, relu, piped, verb):
    given = json.loads(piped(verb, "-", *READ_ONE[verb], "--json").stdout)
    named = entrepot.json(verb, relu, *READ_ONE[verb])
    for facts in (given, named):
        facts.pop("path", None)
        facts.pop("seconds", None)
    assert given == named


@pytest.mark.parametrize("place", [0, 1])
def test_compare_reads_one_of_two_from_standard_input(relu, piped, place):
    models = [relu, relu]
    models[place] = "-"
    assert json.loads(piped("compare", *models, "--only-sample", "--json").stdout)["ok"]
    assert "only once" in piped("compare", "-", "-", status=2).stderr


@pytest.mark.parametrize("verb", WRITE_ONE)
@pytest.mark.parametrize("form", [[], ["--json"], ["-q"], ["-v"]])
def test_a_model_on_standard_output_is_all_there_is(piped, verb, form):
    result = piped(verb, "-", "-o", "-", *WRITE_ONE[verb], *form)
    onnx.checker.check_model(onnx.ModelProto.FromString(result.stdout_bytes), full_check=True)
    assert bool(result.stderr) == (form != ["-q"])
    if form == ["--json"]:
        assert json.loads(result.stderr)["path"] == "standard output"


@pytest.mark.parametrize("verb", WRITE_ONE)
@pytest.mark.parametrize("form", [[], ["--json"]])
def test_an_error_leaves_standard_output_empty(tmp_path, entrepot, verb, form):
    (tmp_path / "bad.onnx").write_bytes(b"garbage")
    result = entrepot(verb, tmp_path / "bad.onnx", "-o", "-", *WRITE_ONE[verb], *form, status=3)
    assert result.stdout_bytes == b""
    assert "not a protobuf" in result.stderr


def test_export_keeps_what_the_users_code_prints_out_of_the_model(entrepot, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "loudnet.py").write_text(
        "import torch\nprint('importing')\ndef build():\n    print('building')\n    return torch.nn.ReLU()\n"
        "def sample():\n    return torch.zeros(2, 3)\n"
    )
    result = entrepot("export", "loudnet:build", "--sample", "loudnet:sample", "-o", "-")
    onnx.checker.check_model(onnx.ModelProto.FromString(result.stdout_bytes), full_check=True)
    assert "building" in result.stderr


def test_run_writes_its_outputs_to_standard_output(piped, tmp_path):
    (tmp_path / "out.npz").write_bytes(piped("run", "-", "-i", "x=ones[1,3]", "--save", "-").stdout_bytes)
    with np.load(tmp_path / "out.npz") as saved:
        np.testing.assert_array_equal(saved["y"], np.ones((1, 3), np.float32))


def test_only_one_result_goes_to_standard_output(piped, entrepot):
    words = ("export", "-o", "-", "--html", "-", "whatever:model")
    assert "only one result" in entrepot(*words, status=2).stderr


def test_models_go_through_pipelines(relu, tmp_path):
    convert = '"$@" convert - --opset'
    result = shell(f'cat relu.onnx | {convert} 17 -o - | {convert} 13 -o - | "$@" info - --json', tmp_path)
    assert json.loads(result.stdout)["opsets"] == {"ai.onnx": 13}


def test_a_model_is_read_from_a_named_pipe(relu, tmp_path):
    result = shell('mkfifo pipe && (cat relu.onnx > pipe &) && "$@" info pipe --json', tmp_path)
    assert json.loads(result.stdout)["operators"] == {"Relu": 1}


@pytest.mark.parametrize(
    ("command", "status", "told"),
    [
        ('"$@" info - <&-', 2, "standard input is closed"),
        ('"$@" convert relu.onnx --opset 21 -o - >&-', 2, "standard output is closed"),
        ('"$@" convert relu.onnx --opset 21 -o - | true', 0, ""),
    ],
)
def test_a_stream_that_cannot_carry_a_model_is_an_error(relu, tmp_path, command, status, told):
    result = shell(command, tmp_path)
    assert result.returncode == status
    assert told in result.stderr.decode()
    assert b"Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("words", "told"), [(["info", "-"], "input"), (["convert", "--opset", "21", "-o", "-"], "output")]
)
def test_binary_data_is_neither_read_from_nor_written_to_a_terminal(relu, words, told):
    ours, theirs = pty.openpty()
    words = [*words, str(relu)] if words[0] == "convert" else words
    result = subprocess.run(
        [sys.executable, "-m", "entrepot", *words],
        stdin=theirs, stdout=theirs, stderr=subprocess.PIPE, check=False, timeout=60,
    )  # fmt: skip
    os.close(ours)
    os.close(theirs)
    assert result.returncode == 2
    assert f"standard {told} is a terminal" in result.stderr.decode()


def test_a_pipe_without_a_reader_ends_the_command(relu, tmp_path):
    os.mkfifo(tmp_path / "pipe.onnx")
    result = shell('"$@" convert relu.onnx --opset 21 -o pipe.onnx', tmp_path)
    assert result.returncode == 2
    assert b"nothing reads from this pipe" in result.stderr
