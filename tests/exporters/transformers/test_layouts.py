"""Folders for others, read as they read them: by names, in plain onnxruntime."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import onnxruntime_genai as genai
import pytest
import torch
import transformers

import entrepot as ep
from entrepot.runtime.generation.manifest import Manifest
from entrepot.runtime.generation.package import Package
from tests.export_cases.generating import BART, given
from tests.runtime.generation.test_generation import chain, successor

PROMPTS = np.array([[5, 6, 7, 8], [9, 8, 7, 6]])


@pytest.fixture(scope="module")
def pair() -> tuple[Any, Package]:
    sizes = {"vocab_size": 99, "n_embd": 32, "n_layer": 2, "n_head": 2, "n_positions": 32}
    torch.manual_seed(0)
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(**sizes, bos_token_id=1, eos_token_id=2)).eval()
    return model, ep.export_transformer(model, verify=False)


@pytest.fixture(scope="module")
def pairs() -> dict[str, tuple[Any, Package]]:
    few = BART | {"encoder_layers": 1}
    heard = few | {"num_mel_bins": 8, "max_source_positions": 30, "max_target_positions": 64}
    torch.manual_seed(1)
    models: dict[str, Any] = {
        "BartForConditionalGeneration": transformers.BartForConditionalGeneration(transformers.BartConfig(**few)),
        "WhisperForConditionalGeneration": transformers.WhisperForConditionalGeneration(
            transformers.WhisperConfig(**heard)
        ),
    }
    models = {name: model.eval() for name, model in models.items()}
    return {name: (model, ep.export_transformer(model, verify=False)) for name, model in models.items()}


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


@pytest.mark.parametrize("beams", [1, 3])
def test_genai_generates_the_same_from_its_folder(pair: tuple[Any, Package], beams: int, tmp_path: Path) -> None:
    model, package = pair
    package.save(tmp_path / "out", layout="genai")
    run = genai.Model(str(tmp_path / "out"))
    asked = genai.GeneratorParams(run)
    asked.set_search_options(max_length=9, batch_size=2, num_beams=beams)
    generator = genai.Generator(run, asked)
    generator.append_tokens(PROMPTS.astype(np.int32))
    while not generator.is_done():
        generator.generate_next_token()
    wanted = model.generate(torch.from_numpy(PROMPTS), max_new_tokens=5, do_sample=False, num_beams=beams)
    assert [[*generator.get_sequence(row)] for row in range(2)] == wanted.tolist()


def test_without_a_limit_genai_is_told_a_number(pair: tuple[Any, Package], tmp_path: Path) -> None:
    step = pair[1]
    files = {"config.json": json.dumps({"vocab_size": 99}).encode()}
    Package(step.graphs, step.manifest, files=files).save(tmp_path / "out", layout="genai")
    config = json.loads((tmp_path / "out" / "genai_config.json").read_text())
    assert config["model"]["context_length"] >= 2**20  # a model that it reads has to have some


def test_empty_caches_are_made_by_the_name_of_the_rows(
    pair: tuple[Any, Package], pairs: dict[str, tuple[Any, Package]], tmp_path: Path
) -> None:
    """As transformers.js makes them: an axis is as long as there are rows if it has that name, and 0 otherwise."""
    for package, files in (
        (pair[1], ["model"]),
        (pairs["BartForConditionalGeneration"][1], ["decoder_model", "decoder_model_merged"]),
    ):
        package.save(tmp_path / files[0], layout="optimum")
        for file in files:
            for spec in ep.load(tmp_path / files[0] / f"{file}.onnx").inputs:
                rows = [dim == "batch_size" for dim in spec.shape or ()]
                assert rows == [spec.name != "use_cache_branch", *[False] * (len(rows) - 1)]
                assert not any("batch" in str(dim) for dim in (spec.shape or ())[1:])


def test_each_file_finds_its_weights_beside_it(pairs: dict[str, tuple[Any, Package]], tmp_path: Path) -> None:
    """As transformers.js fetches them, which is told of them by the model's configuration; decoders share theirs."""
    pairs["BartForConditionalGeneration"][1].save(tmp_path / "out", layout="optimum")
    assert {path.name for path in (tmp_path / "out").glob("*_data")} == {
        "encoder_model.onnx_data",
        "decoder_model_merged.onnx_data",
    }
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    assert config["transformers.js_config"] == {"use_external_data_format": True}
    assert config["model_type"] == "bart"
    (tmp_path / "out" / "decoder_model_merged.onnx_data").unlink()
    onnxruntime.InferenceSession(tmp_path / "out" / "encoder_model.onnx", providers=["CPUExecutionProvider"])


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


@pytest.mark.parametrize("name", ["BartForConditionalGeneration", "WhisperForConditionalGeneration"])
@pytest.mark.parametrize("unknown", [0, 1])
def test_an_encoder_decoder_gives_the_same_scores_by_the_names_of_others(
    name: str, unknown: int, pairs: dict[str, tuple[Any, Package]], tmp_path: Path
) -> None:
    """``unknown``: how long the caches are that readers give in the first step; what is in them means nothing."""
    model, package = pairs[name]
    package.save(tmp_path / "out", layout="optimum")
    encoder, decoder = (
        onnxruntime.InferenceSession(tmp_path / "out" / f"{file}.onnx", providers=["CPUExecutionProvider"])
        for file in ("encoder_model", "decoder_model_merged")
    )
    inputs = given(name, model, 3)
    (memory,) = encoder.run(
        ["last_hidden_state"], {key: inputs[key].numpy() for key in (each.name for each in encoder.get_inputs())}
    )
    caches = {each.name: each.shape for each in decoder.get_inputs() if each.name.startswith("past_key_values")}
    assert caches.keys() == {
        f"past_key_values.{layer}.{of}.{kind}"
        for layer in range(2)
        for of in ("decoder", "encoder")
        for kind in ("key", "value")
    }
    state = {key: np.ones((3, shape[1], unknown, shape[3]), np.float32) for key, shape in caches.items()}
    fixed = {"encoder_hidden_states": memory}
    if "attention_mask" in inputs:
        fixed["encoder_attention_mask"] = inputs["attention_mask"].numpy()
    outputs = [each.name for each in decoder.get_outputs()]
    tokens, scores = np.random.default_rng(0).integers(5, 90, (3, 4)), []
    for turn in range(4):
        asked = {"input_ids": tokens[:, turn : turn + 1], "use_cache_branch": np.array([turn > 0])}
        results = dict(zip(outputs, decoder.run(outputs, asked | fixed | state), strict=True))
        state = {key: results[key.replace("past_key_values", "present")] for key in caches}
        scores.append(results["logits"])
    with torch.no_grad():
        wanted = model(**inputs, decoder_input_ids=torch.from_numpy(tokens), use_cache=False).logits
    np.testing.assert_allclose(np.concatenate(scores, 1), wanted.numpy(), rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("name", ["BartForConditionalGeneration", "WhisperForConditionalGeneration"])
def test_an_encoder_decoder_is_written_in_separate_files_as_well(
    name: str, pairs: dict[str, tuple[Any, Package]], tmp_path: Path
) -> None:
    """As optimum reads them: keys and values by their order, those of an encoder's results from the first step on."""
    model, package = pairs[name]
    package.save(tmp_path / "out", layout="optimum")
    encoder, first, later, merged = (
        onnxruntime.InferenceSession(tmp_path / "out" / f"{file}.onnx", providers=["CPUExecutionProvider"])
        for file in ("encoder_model", "decoder_model", "decoder_with_past_model", "decoder_model_merged")
    )
    cached = [
        f"{layer}.{of}.{kind}" for layer in range(2) for of in ("decoder", "encoder") for kind in ("key", "value")
    ]
    presents = [f"present.{each}" for each in cached]
    mask = ["encoder_attention_mask"] if name.startswith("Bart") else []
    pasts = [f"past_key_values.{each}" for each in cached]
    assert [each.name for each in first.get_inputs()] == [*mask, "input_ids", "encoder_hidden_states"]
    assert [each.name for each in later.get_inputs()] == [*mask, "input_ids", *pasts]
    assert [each.name for each in merged.get_inputs()] == [
        *mask,
        "input_ids",
        "encoder_hidden_states",
        *pasts,
        "use_cache_branch",
    ]
    assert [each.name for each in first.get_outputs()] == ["logits", *presents]
    assert [each.name for each in merged.get_outputs()] == ["logits", *presents]
    assert [each.name for each in later.get_outputs()] == [
        "logits",
        *(each for each in presents if "encoder" not in each),
    ]
    inputs = given(name, model, 3)
    (memory,) = encoder.run(None, {each.name: inputs[each.name].numpy() for each in encoder.get_inputs()})
    fixed = {key: inputs["attention_mask"].numpy() for key in mask}
    tokens = np.random.default_rng(0).integers(5, 90, (3, 5))
    scores, *state = first.run(None, fixed | {"input_ids": tokens[:, :2], "encoder_hidden_states": memory})
    found, kept = [scores], dict(zip(pasts, state, strict=True))
    for turn in (2, 3, 4):
        scores, *state = later.run(None, fixed | {"input_ids": tokens[:, turn : turn + 1]} | kept)
        kept |= dict(zip((each for each in pasts if "encoder" not in each), state, strict=True))
        found.append(scores)
    with torch.no_grad():
        wanted = model(**inputs, decoder_input_ids=torch.from_numpy(tokens), use_cache=False).logits
    np.testing.assert_allclose(np.concatenate(found, 1), wanted.numpy(), rtol=1e-3, atol=1e-5)


def test_models_that_do_not_generate_are_one_file(tmp_path: Path) -> None:
    graph = chain(successor()).graphs["decoder"]
    Package({"model": graph}, Manifest(), files={"tokenizer.json": b"{}"}).save(tmp_path / "out", layout="optimum")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "model.onnx",
        "model.onnx_data",
        "tokenizer.json",
    ]


def test_what_a_layout_has_no_place_for_is_refused(tmp_path: Path) -> None:
    step = chain(successor()).graphs["decoder"]
    with pytest.raises(ep.ConversionError, match="no counterpart"):
        chain(successor()).save(tmp_path / "out", layout="optimum")
    with pytest.raises(ep.ConversionError, match="for decoders"):
        Package({"model": chain(successor()).graphs["decoder"]}, Manifest()).save(tmp_path / "out", layout="genai")
    whole = Package({"encoder": step, "decoder": step}, dataclasses.replace(chain(successor()).manifest, capacity=4))
    with pytest.raises(ep.ConversionError, match="no counterpart"):
        whole.save(tmp_path / "out", layout="optimum")
    assert list(tmp_path.iterdir()) == []
