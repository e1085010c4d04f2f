from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time

import pytest

import entrepot as package
from entrepot.cli.group import VERBS


def spawn(*words, **extra):
    return subprocess.Popen(
        [sys.executable, "-m", "entrepot", *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **extra,
    )


def finish(process):
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


def test_help_lists_every_verb(entrepot):
    text = entrepot("--help").stdout
    assert all(f"\n  {verb} " in text for verb in VERBS)


def test_no_words_at_all_are_a_question_for_help(entrepot):
    assert "Usage:" in entrepot().stdout


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_explains_itself(entrepot, verb):
    text = entrepot(verb, "--help").stdout
    assert "--json" in text
    assert "-v, --verbose" in text


def test_the_version_is_that_of_the_package(entrepot):
    assert package.__version__ in entrepot("--version").stdout


def test_help_loads_nothing_heavy():
    code = (
        "import sys\nfrom entrepot.cli import main\n"
        "try: main(['--help'])\nexcept SystemExit: pass\n"
        "heavy = {'numpy', 'onnx', 'onnx_ir', 'rich', 'torch', 'onnxruntime'}\n"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stderr.strip() == "[]"


def cpu_seconds(*words):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *words], check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def test_help_costs_little_more_than_its_command_line_library():
    # a ratio, because seconds depend on the machine; 0.15 s where `import click` takes 0.05
    peer = min(cpu_seconds("-c", "import click, inspect, json, tempfile") for _ in range(3))
    assert min(cpu_seconds("-m", "entrepot", "--help") for _ in range(3)) < 3 * peer


def test_an_unknown_verb_names_the_known_ones(entrepot):
    assert "one of export, info" in entrepot("expport", status=2).stderr


def test_an_error_is_one_line_with_a_hint(entrepot):
    error = entrepot("info", "nowhere.onnx", status=2).stderr
    assert error.count("\n") == 1
    assert "nowhere.onnx" in error
    assert "hint:" in error
    assert "Traceback" not in error


def test_options_of_all_verbs_may_stand_before_or_after(entrepot, relu):
    before, after = entrepot("--json", "info", relu).stdout, entrepot("info", relu, "--json").stdout
    assert before == after
    assert before.startswith("{")


def test_quiet_prints_nothing_but_errors(entrepot, relu):
    result = entrepot("-q", "info", relu)
    assert result.stdout == result.stderr == ""
    assert entrepot("-q", "info", "nowhere.onnx", status=2).stderr


def test_an_internal_error_is_70_and_shows_its_traceback_only_when_asked(entrepot, relu, monkeypatch):
    monkeypatch.setattr("entrepot.cli.info.describe", lambda model: {}["gone"])
    plain = entrepot("info", relu, status=70).stderr
    assert "internal error: KeyError" in plain
    assert "Traceback" not in plain
    assert "Traceback" in entrepot("info", relu, "-vv", status=70).stderr


def test_out_of_memory_is_a_resource_limit(entrepot, relu, monkeypatch):
    def full(_model):
        raise MemoryError

    monkeypatch.setattr("entrepot.cli.info.describe", full)
    assert "out of memory" in entrepot("info", relu, status=6).stderr


def test_errors_are_json_too(entrepot):
    error = entrepot.json("info", "nowhere.onnx", status=2)["error"]
    assert error["exit_code"] == 2
    assert "nowhere.onnx" in error["message"]


def test_names_in_a_file_cannot_drive_the_terminal(entrepot, write):
    path = write("y = Relu(x)", name="net")
    data = path.read_bytes()
    path.write_bytes(data.replace(b"net", b"\x1b[m"))
    text = entrepot("info", path).stdout
    assert "\x1b" not in text
    assert r"\x1b[m" in text


def test_a_closed_pipe_is_quiet(relu):
    process = spawn("info", relu)
    process.stdout.close()
    process.wait(timeout=60)
    assert process.returncode == 141
    assert process.stderr.read() == ""
    process.stderr.close()


@pytest.fixture
def interruptible():
    """What a shell starts in the background ignores interrupts, and so do its children."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_ends_with_130_and_no_traceback(tmp_path):
    (tmp_path / "slow.py").write_text(
        "import time\ndef build():\n    print('started', flush=True)\n    time.sleep(60)\n"
    )
    process = spawn("export", "slow:build", "-o", tmp_path / "net.onnx", cwd=tmp_path, env=with_package_path())
    assert process.stdout.readline() == "started\n"
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    status, _, err = finish(process)
    assert status == 130
    assert err.strip() == "interrupted"


def with_package_path():
    root = os.path.dirname(os.path.dirname(package.__file__))
    return os.environ | {"PYTHONPATH": root}


def test_the_module_runs_as_a_program(relu):
    status, out, err = finish(spawn("info", relu))
    assert (status, err) == (0, "")
    assert "Relu" in out
