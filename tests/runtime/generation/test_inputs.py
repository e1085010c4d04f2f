"""What a call of ``generate`` may be given, and how it is refused: nobody gets tokens of something else."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

import entrepot as ep
from entrepot.runtime.generation.manifest import Manifest
from entrepot.runtime.generation.package import Package
from entrepot.runtime.generation.settings import Settings

VOCABULARY = 300


def successor(**settings: Any) -> Package:
    """A decoder in which each token is followed by the next one, and which has a mask."""
    proto = onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["": 17]>
    chain (int64[batch, sequence] input_ids, int64[batch, sequence] attention_mask)
        => (float[batch, sequence, {VOCABULARY}] logits) {{
        scores = Gather<axis = 0>(table, input_ids)
        counted = Cast<to = 1>(attention_mask)
        last = Constant<value_ints = [-1]>()
        column = Unsqueeze(counted, last)
        logits = Mul(scores, column)
    }}""")
    table = np.roll(np.eye(VOCABULARY, dtype=np.float32), 1, 1) * 30
    proto.graph.initializer.append(onnx.numpy_helper.from_array(table, "table"))
    manifest = Manifest(kind="decoder", mask="attention_mask", settings=Settings.of(settings))
    return Package({"decoder": ep.load(proto)}, manifest, providers="cpu")


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.int32, np.uint64])
@pytest.mark.parametrize("beams", [1, 2])
def test_prompts_of_narrow_types_are_followed_by_tokens_that_do_not_fit_into_them(dtype: Any, beams: int) -> None:
    result = successor().generate(input_ids=np.array([[253]], dtype), max_new_tokens=4, num_beams=beams)
    assert result.tolist() == [[253, 254, 255, 256, 257]]


@pytest.mark.parametrize(
    ("prompt", "said"),
    [
        ([[5, -1]], "-1 is no token"),
        (np.array([[2**63]], np.uint64), "do not fit into int64"),
        ([[5.0]], "elements are float64"),
        ([["a"]], "elements are <U1"),
        ([5], r"shape \(1,\)"),
        ([[]], r"shape \(1, 0\)"),
    ],
)
def test_prompts_that_are_no_tokens_are_refused(prompt: Any, said: str) -> None:
    with pytest.raises(ep.InputError, match=f"input_ids.*{said}"):
        successor().generate(input_ids=prompt, max_new_tokens=1)


@pytest.mark.parametrize("mask", [[[1, 1]], [[True, True]], [[1.0, 1.0]], np.ones((1, 2), np.float16)])
def test_masks_of_zeros_and_ones_may_have_any_type(mask: Any) -> None:
    assert successor().generate(input_ids=[[1, 2]], attention_mask=mask, max_new_tokens=1).tolist() == [[1, 2, 3]]


@pytest.mark.parametrize(
    "mask", [[[1, 2]], [[-1, 1]], [[0.5, 1]], [[0.0, -np.inf]], [[np.nan, 1]], [["a", "b"]], [[1]]]
)
def test_other_masks_are_refused(mask: Any) -> None:
    with pytest.raises(ep.InputError, match="attention_mask"):
        successor().generate(input_ids=[[1, 2]], attention_mask=mask, max_new_tokens=1)


def translator() -> Package:
    """An encoder that doubles the tokens which count, and a decoder that adds their sum to its own tokens."""
    encoder = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["": 17]>
    double (int64[batch, source] input_ids, int64[batch, source] attention_mask) => (int64[batch, source] hidden) {
        counted = Mul(input_ids, attention_mask)
        hidden = Add(counted, counted)
    }""")
    decoder = onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["": 17]>
    chain (int64[batch, sequence] decoder_input_ids, int64[batch, source] hidden)
        => (float[batch, sequence, {VOCABULARY}] logits) {{
        total = ReduceSum(hidden, axes)
        next = Add(decoder_input_ids, total)
        logits = OneHot<axis = -1>(next, depth, values)
    }}""")
    for name, value in {"axes": [1], "depth": [VOCABULARY], "values": np.array([0, 1], np.float32)}.items():
        decoder.graph.initializer.append(onnx.numpy_helper.from_array(np.asarray(value), name))
    manifest = Manifest(
        kind="encoder-decoder",
        tokens="decoder_input_ids",
        source="input_ids",
        source_mask="attention_mask",
        constants={"hidden": 0},
        settings=Settings.of({"decoder_start_token_id": 1}),
    )
    return Package({"encoder": ep.load(encoder), "decoder": ep.load(decoder)}, manifest, providers="cpu")


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint8])
def test_an_encoder_is_given_tokens_and_their_mask(dtype: Any) -> None:
    given = np.array([[1, 2, 3]], dtype)
    assert translator().generate(input_ids=given, max_new_tokens=2).tolist() == [[1, 13, 25]]
    masked = translator().generate(input_ids=given, attention_mask=[[1.0, 1.0, 0.0]], max_new_tokens=2)
    assert masked.tolist() == [[1, 7, 13]]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"input_ids": [[5, -1]]}, "input_ids.*-1 is no token"),
        ({"input_ids": [[5, 6]], "attention_mask": [[1, 2]]}, "attention_mask holds 2"),
        ({"input_ids": [[5, 6]], "attention_mask": [[1]]}, r"attention_mask has shape \(1, 1\)"),
    ],
)
def test_an_encoder_is_given_nothing_else(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ep.InputError, match=said):
        translator().generate(**given, max_new_tokens=1)


def test_the_mask_of_a_step_has_the_shape_of_its_tokens() -> None:
    decoding = successor().start(input_ids=[[1], [2]])
    assert decoding.step([5, 6], mask=[1, 0])[1].tolist() == [0.0] * VOCABULARY
    for mask in ([1], [1, 2], [[1, 1]], "ab"):
        with pytest.raises(ep.InputError, match="mask of a step"):
            decoding.step([5, 6], mask=mask)
    assert decoding.tokens.shape == decoding.mask.shape == (2, 2)


@pytest.mark.parametrize("ends", [[9, 3], (9, 3), {9, 3}, np.array([9, 3]), np.int32(3), 3, [3, -1]])
def test_ends_come_as_one_token_or_as_any_collection(ends: Any) -> None:
    result = successor().generate(input_ids=[[1]], eos_token_id=ends, max_new_tokens=5, return_new_only=True)
    assert result.tolist() == [[2, 3]]


@pytest.mark.parametrize(
    "settings",
    [
        {"max_new_tokens": "5"},
        {"num_beams": "2"},
        {"temperature": "1", "do_sample": True},
        {"eos_token_id": [[3]]},
        {"eos_token_id": ["</s>"]},
        {"eos_token_id": 2**70},
        {"eos_token_id": True},
        {"early_stopping": np.array([1, 2])},
        {"forced_bos_token_id": VOCABULARY},
        {"temperature": 1e-300, "do_sample": True},
        {"suppress_tokens": list(range(VOCABULARY)), "do_sample": True},
        {"length_penalty": 1e5, "num_beams": 2},
        {"length_penalty": -1e5, "num_beams": 2},
        {"stopping": lambda rows: [True, False]},
        {"stopping": lambda rows: "no"},
    ],
)
def test_settings_that_mean_nothing_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ep.InputError):
        successor().generate(**{"input_ids": [[1]], "max_new_tokens": 3, **settings})


def test_an_unknown_argument_is_named_with_the_one_that_may_be_meant() -> None:
    with pytest.raises(ep.InputError, match=r"max_new_token'.*max_new_tokens"):
        successor().generate(input_ids=[[1]], max_new_token=3)
