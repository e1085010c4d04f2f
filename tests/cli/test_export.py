"""``entrepot export`` on modules written into the current directory."""

from __future__ import annotations

import sys

import numpy as np
import onnx_ir
import pytest
import safetensors.numpy

import entrepot as ep

NETS = """
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layer = torch.nn.Linear(3, 2)

    def forward(self, x):
        return torch.relu(self.layer(x))

def sample():
    return torch.randn(4, 3, generator=torch.Generator().manual_seed(0))

class NeedsAPackage(Net):
    def __init__(self):
        import surely_not_installed
"""


@pytest.fixture
def nets(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "clinets.py").write_text(NETS)
    yield
    sys.modules.pop("clinets", None)


def test_a_module_becomes_a_verified_file(entrepot, nets, tmp_path):
    document = entrepot.json("export", "clinets:Net", "--sample", "clinets:sample", "-o", "net.onnx", "--opset", 18)
    assert document["report"]["ok"]
    assert document["opset"] == 18
    assert document["inputs"] == ["x: float32[batch, 3]"]
    assert onnx_ir.load(tmp_path / "net.onnx").opset_imports[""] == 18


def test_static_fixes_every_axis(entrepot, nets):
    document = entrepot.json("export", "clinets:Net", "--sample", "clinets:sample", "-o", "net.onnx", "--static")
    assert document["inputs"] == ["x: float32[4, 3]"]


def test_operators_of_the_source_stay_if_nothing_is_to_be_cleaned_up(entrepot, nets, tmp_path):
    (tmp_path / "flat.py").write_text("import torch\nnet = torch.nn.Flatten()\nsample = torch.ones(2, 3, 4)\n")
    counts = {}
    for level in ("none", "basic"):
        entrepot.json("export", "flat:net", "--sample", "flat:sample", "-o", f"{level}.onnx", "--optimize", level)
        counts[level] = len(onnx_ir.load(tmp_path / f"{level}.onnx").graph)
    sys.modules.pop("flat")
    assert counts["basic"] == 1 < counts["none"]


def test_unverified_only_when_asked(entrepot, nets):
    document = entrepot.json("export", "clinets:Net", "--sample", "clinets:sample", "-o", "net.onnx", "--no-verify")
    assert document["report"] is None


def test_the_table_and_the_page_are_shown(entrepot, nets, tmp_path):
    text = entrepot("export", "clinets:Net", "--sample", "clinets:sample", "-o", "net.onnx", "--html", "r.html").stdout
    assert "verified against Net" in text
    assert "written to net.onnx" in text
    assert (tmp_path / "r.html").exists()


def test_a_model_that_differs_is_not_written_and_ends_with_1(entrepot, nets, tmp_path):
    words = ("export", "clinets:Net", "--sample", "clinets:sample", "-o", "net.onnx", "--atol", "0", "--rtol", "0")
    result = entrepot(*words, "--html", "r.html", status=1)
    assert "NOT verified" in result.stdout
    assert not (tmp_path / "net.onnx").exists()
    assert (tmp_path / "r.html").exists()
    error = entrepot.json(*words, status=1)["error"]
    assert error["type"] == "VerificationError"
    assert error["report"]["ok"] is False


def test_without_a_sample_the_error_says_so(entrepot, nets):
    error = entrepot("export", "clinets:Net", "-o", "net.onnx", status=2).stderr
    assert "add --sample package.module:attribute" in error
    assert "ep." not in error


def test_what_is_missing_ends_with_its_own_status(entrepot, nets):
    entrepot("export", "clinets:NeedsAPackage", "-o", "net.onnx", status=5)
    entrepot("export", "clinets:Nothing", "-o", "net.onnx", status=2)
    entrepot("export", "clinets.py:Net", "-o", "net.onnx", status=2)
    entrepot("export", "clinets:sample", "-o", "net.onnx", status=2)


def test_what_the_export_left_out_is_told_once(entrepot, nets):
    words = ("export", "clinets:Net", "--sample", "clinets:sample", "-o", "net.onnx")
    told = entrepot(*words)
    for note in "note: exported in evaluation mode", "note: fixed: x.1 = 3: the module refuses other sizes":
        assert told.stderr.count(note) == 1
        assert note not in told.stdout
    assert any(note.startswith("fixed: x.1 = 3") for note in entrepot.json(*words)["notes"])


def test_weights_are_told_from_a_model_that_lacks_a_sample(entrepot, tmp_path):
    path = tmp_path / "sample.safetensors"
    path.write_bytes(safetensors.numpy.save({"w": np.ones(2, np.float32)}))
    for status, *words in ((2, "export", path, "-o", tmp_path / "out.onnx"), (3, "info", path), (3, "check", path)):
        error = entrepot(*words, status=status).stderr
        assert "safetensors file: weights without a graph" in error
        assert "build the model in its framework" in error
    assert not (tmp_path / "out.onnx").exists()


@pytest.fixture
def checkpoint(tmp_path, monkeypatch):
    import transformers

    monkeypatch.chdir(tmp_path)
    config = transformers.GPT2Config(vocab_size=50, n_embd=16, n_layer=1, n_head=2, n_positions=32)
    transformers.GPT2LMHeadModel(config).save_pretrained("gpt2")
    (tmp_path / "gpt2" / "tokenizer.json").write_text("{}")


def test_a_checkpoint_becomes_a_package(entrepot, checkpoint, tmp_path):
    document = entrepot.json("export", "gpt2", "--task", "auto", "-o", "out/", "--no-verify")
    assert document["graphs"] == {"decoder": 20}
    assert "tokenizer.json" in document["files"]
    package = ep.load(tmp_path / "out")
    assert package.generate(input_ids=[[5, 6]], max_new_tokens=2, eos_token_id=[]).shape == (1, 4)


@pytest.mark.parametrize(
    ("words", "files"),
    [
        (("--loop", "in_graph", "--num-beams", "3"), ["entrepot.json", "loop.onnx", "model.data"]),
        (("--precision", "float16"), ["decoder.onnx", "entrepot.json", "model.data"]),
        (("--cache", "static", "--max-length", "20"), ["decoder.onnx", "entrepot.json", "model.data"]),
        (("--layout", "genai"), ["genai_config.json", "model.onnx", "model.onnx_data"]),
    ],
)
def test_a_package_is_of_the_form_that_is_asked_for(entrepot, checkpoint, tmp_path, words, files):
    entrepot("export", "gpt2", "--task", "auto", "-o", "out", "--no-verify", *words)
    kept = {"config.json", "generation_config.json", "tokenizer.json"}
    assert sorted({path.name for path in (tmp_path / "out").iterdir()} - kept) == files
    if words[0] != "--layout":
        package = ep.load(tmp_path / "out")
        assert package.generate(input_ids=[[5, 6]], max_new_tokens=2, eos_token_id=[]).shape == (1, 4)
        assert package.manifest.capacity == (20 if words[0] == "--cache" else 0)
        assert package.settings.num_beams == (3 if words[0] == "--loop" else 1)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("-o", "out.onnx"), "add --task auto"),
        (("-o", "out", "--task", "auto", "--static"), "--task and --dynamic exclude each other"),
        (("-o", "out", "--task", "auto", "--atol", "1"), "--task and --atol exclude each other"),
        (("-o", "out", "--task", "all"), "'all' is not one of"),
        (("-o", "out", "--task", "auto", "--max-length", "3"), "3 is not in the range"),
    ],
)
def test_what_does_not_go_with_a_package_is_a_usage_error(entrepot, checkpoint, words, said):
    assert said in entrepot("export", "gpt2", *words, status=2).stderr
    for words in (("--loop", "in_graph"), ("--layout", "genai"), ("--max-length", "64")):
        assert f"{words[0]} needs --task" in entrepot("export", "a:b", "-o", "x.onnx", *words, status=2).stderr


def test_a_checkpoint_that_is_not_there_is_called_a_folder(entrepot, tmp_path):
    assert (
        "folder 'nowhere' does not exist"
        in entrepot("export", "nowhere", "--task", "auto", "-o", "out", status=2).stderr
    )


def test_a_folder_is_no_file_to_write(entrepot, nets, tmp_path):
    (tmp_path / "here").mkdir()
    assert "'here' is a directory" in entrepot("export", "clinets:Net", "-o", "here", status=2).stderr


def test_a_file_of_a_framework_that_is_not_there_is_told_of(entrepot):
    assert "does not exist" in entrepot("export", "nothing.keras", "-o", "nothing.onnx", status=2).output
