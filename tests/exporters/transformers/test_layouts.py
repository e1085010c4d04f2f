"""Folders for others, read as they read them: by names, in plain onnxruntime."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
import transformers

import entrepot as ep
from entrepot.runtime.generation.manifest import Manifest
from entrepot.runtime.generation.package import Package
from tests.runtime.generation.test_generation import chain, successor

PROMPTS = np.array([[5, 6, 7, 8], [9, 8, 7, 6]])


@pytest.fixture(scope="module")
def pair() -> tuple[Any, Package]:
    sizes = {"vocab_size": 99, "n_embd": 32, "n_layer": 2, "n_head": 2, "n_positions": 32}
    torch.manual_seed(0)
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(**sizes, bos_token_id=1, eos_token_id=2)).eval()
    return model, ep.export_transformer(model, verify=False)


@pytest.mark.parametrize("layout", ["optimum", "genai"])
def test_a_loop_by_the_names_of_others_generates_the_same(
    pair: tuple[Any, Package], layout: Any, tmp_path: Path
) -> None:
    model, package = pair
    package.save(tmp_path / "out", layout=layout)
    session = onnxruntime.InferenceSession(tmp_path / "out" / "model.onnx", providers=["CPUExecutionProvider"])
    names = [f"past_key_values.{layer}.{kind}" for layer in range(2) for kind in ("key", "value")]
    assert {each.name for each in session.get_inputs()} == {
        "input_ids",
        "attention_mask",
        "position_ids",
        *names,
    }
    state, tokens, new = dict.fromkeys(names, np.zeros((2, 2, 0, 16), np.float32)), PROMPTS, PROMPTS
    for _ in range(4):
        outputs = [each.name for each in session.get_outputs()]
        places = np.arange(tokens.shape[1])[None, -new.shape[1] :].repeat(2, 0)
        feeds = {"input_ids": new, "attention_mask": np.ones_like(tokens), "position_ids": places, **state}
        results = dict(zip(outputs, session.run(outputs, feeds), strict=True))
        assert results["logits"].shape == (2, new.shape[1], 99)
        state = {name: results[name.replace("past_key_values", "present")] for name in names}
        new = results["logits"][:, -1:].argmax(-1)
        tokens = np.concatenate([tokens, new], 1)
    wanted = model.generate(torch.from_numpy(PROMPTS), max_new_tokens=4, do_sample=False, eos_token_id=None)
    np.testing.assert_array_equal(tokens, wanted.numpy())


def test_the_configuration_of_genai_names_what_the_graph_has(pair: tuple[Any, Package], tmp_path: Path) -> None:
    pair[1].save(tmp_path / "out", layout="genai")
    config = json.loads((tmp_path / "out" / "genai_config.json").read_text())
    decoder = config["model"]["decoder"]
    assert (decoder["head_size"], decoder["num_hidden_layers"], decoder["num_key_value_heads"]) == (16, 2, 2)
    assert (config["model"]["vocab_size"], config["model"]["context_length"]) == (99, 32)
    assert config["model"]["eos_token_id"] == [2]
    graph = ep.load(tmp_path / "out" / decoder["filename"])
    inputs = {spec.name for spec in graph.inputs}
    assert {decoder["inputs"]["past_key_names"] % 1, decoder["inputs"]["attention_mask"]} <= inputs
    assert decoder["outputs"]["present_value_names"] % 0 in {spec.name for spec in graph.outputs}


def test_models_that_do_not_generate_are_one_file(tmp_path: Path) -> None:
    graph = chain(successor()).graphs["decoder"]
    Package({"model": graph}, Manifest(), files={"tokenizer.json": b"{}"}).save(tmp_path / "out", layout="optimum")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "model.onnx",
        "model.onnx_data",
        "tokenizer.json",
    ]


def test_what_a_layout_has_no_place_for_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ep.ConversionError, match="no counterpart"):
        chain(successor()).save(tmp_path / "out", layout="optimum")
    with pytest.raises(ep.ConversionError, match="for decoders"):
        Package({"model": chain(successor()).graphs["decoder"]}, Manifest()).save(tmp_path / "out", layout="genai")
    assert list(tmp_path.iterdir()) == []
