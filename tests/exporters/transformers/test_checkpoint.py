"""Checkpoints in folders: what becomes of a whole one, and what is said about one that is not."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch

import entrepot as ep
from entrepot.exporters.transformers.checkpoint import opened
from tests.export_cases.generating import built


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """A checkpoint with a file of a tokenizer, and its model."""
    folder = tmp_path_factory.mktemp("checkpoints") / "gpt2"
    model = built("GPT2LMHeadModel")
    model.save_pretrained(folder)
    (folder / "tokenizer.json").write_text("{}")
    (folder / "README.md").write_text("about it")
    return folder, model


@pytest.fixture
def checkpoint(saved: tuple[Path, Any], tmp_path: Path) -> Path:
    """A copy to spoil."""
    return Path(shutil.copytree(saved[0], tmp_path / "gpt2"))


def change(checkpoint: Path, **fields: Any) -> None:
    """Write other fields into the configuration."""
    file = checkpoint / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | fields))


def test_a_checkpoint_becomes_a_package_with_its_tokenizer(saved: tuple[Path, Any], tmp_path: Path) -> None:
    folder, model = saved
    ep.export_transformer(str(folder), path=tmp_path / "package", verify=False)
    package = ep.load(tmp_path / "package")
    assert sorted(package.files) == ["config.json", "generation_config.json", "tokenizer.json"]
    assert (tmp_path / "package" / "tokenizer.json").read_text() == "{}"
    prompt = np.array([[5, 6, 7]])
    wanted = model.generate(torch.from_numpy(prompt), max_new_tokens=4, do_sample=False).numpy()
    assert np.array_equal(package.generate(input_ids=prompt, max_new_tokens=4), wanted)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"architectures": None}, "names no architectures"),
        ({"architectures": ["MineForCausalLM"], "auto_map": {"AutoModel": "mine.Mine"}}, "no model 'MineForCausalLM'"),
        ({"architectures": ["logging"]}, "no model 'logging'"),
        ({"quantization_config": {"bits": 4}}, "quantized"),
        ({"n_embd": 64}, "GPT2LMHeadModel cannot be made of it|other shapes"),
        ({"n_layer": 3}, "weights of GPT2LMHeadModel are not in the checkpoint"),
        ({"n_head": 5}, "GPT2LMHeadModel cannot be made of it"),
    ],
)
def test_a_configuration_that_cannot_be_followed_is_refused(
    checkpoint: Path, fields: dict[str, Any], said: str
) -> None:
    change(checkpoint, **fields)
    with pytest.raises(ep.ModelFormatError, match=said):
        opened(checkpoint)


def test_pickled_weights_are_not_read(checkpoint: Path) -> None:
    (checkpoint / "model.safetensors").rename(checkpoint / "pytorch_model.bin")
    with pytest.raises(ep.ModelFormatError, match="is a pickle"):
        opened(checkpoint)


def test_damaged_weights_are_refused(checkpoint: Path) -> None:
    weights = checkpoint / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:2000])
    with pytest.raises(ep.ModelFormatError, match="cannot be made of it"):
        opened(checkpoint)


def test_a_checkpoint_of_another_type_is_read_as_float32(checkpoint: Path) -> None:
    weights = safetensors.torch.load_file(checkpoint / "model.safetensors")
    half = {name: value.to(torch.bfloat16) for name, value in weights.items()}
    safetensors.torch.save_file(half, checkpoint / "model.safetensors", {"format": "pt"})
    change(checkpoint, dtype="bfloat16")
    assert {parameter.dtype for parameter in opened(checkpoint).parameters()} == {torch.float32}


@pytest.mark.parametrize("missing", ["config.json", "model.safetensors", "."])
def test_a_missing_file_is_named(checkpoint: Path, missing: str) -> None:
    if missing == ".":
        shutil.rmtree(checkpoint)
    else:
        (checkpoint / missing).unlink()
    with pytest.raises(ep.MissingFileError):
        opened(checkpoint)
