"""Kinds of architectures: transformers' own tables of classes, and what each kind is called with."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch

from tests.export_cases.architectures.shrinking import VOCABULARY

Inputs = dict[str, Any]


class Size(NamedTuple):
    """How large a call is: ``scale`` multiplies images, audio and source lengths."""

    batch: int
    length: int
    past: int = 0
    scale: int = 1


class Kind(NamedTuple):
    """A kind of architecture.

    Attributes:
        tables: Names of the mappings in ``modeling_auto``.
        inputs: Possible calls of a model, in the order in which they are tried.
        sizes: That of the sample, then of the other calls, of which those stay that the model accepts.
    """

    tables: tuple[str, ...]
    inputs: Callable[[Any, Size], Iterator[Inputs]]
    sizes: tuple[Size, ...]


def find(config: Any, *names: str) -> Any:
    """The first field with one of these names, in the configuration or in those inside of it."""
    inner = [value for value in vars(config).values() if hasattr(value, "to_dict")]
    for name in names:
        if getattr(config, name, None) is not None:
            return getattr(config, name)
    return next((found for part in inner if (found := find(part, *names)) is not None), None)


def tokens(batch: int, length: int, vocabulary: int = VOCABULARY) -> torch.Tensor:
    """Ordinary tokens: not the first few, nor the last, which are special."""
    return torch.randint(8, min(VOCABULARY - 40, vocabulary), (batch, length))


def text(model: Any, size: Size) -> Iterator[Inputs]:
    """Tokens with a mask."""
    ids = tokens(size.batch, size.length, find(model.config, "vocab_size") or VOCABULARY)
    mask = torch.ones_like(ids)
    mask[0, -1] = 0
    yield _masked(model, ids, mask)
    yield {"input_ids": ids}
    if isinstance(end := find(model.config, "eos_token_id"), int):
        ended = torch.cat([ids[:, :-1], torch.full_like(ids[:, -1:], end)], 1)
        yield {"input_ids": ended, "attention_mask": torch.ones_like(ids)}


def _masked(model: Any, ids: torch.Tensor, mask: torch.Tensor) -> Inputs:
    """Tokens and their mask; without it for a model that mixes all tokens, whose tokenizer gives none."""
    takes = "attention_mask" in inspect.signature(model.forward).parameters
    return {"input_ids": ids} | ({"attention_mask": mask} if takes else {})


def decoder(_model: Any, size: Size) -> Iterator[Inputs]:
    """Tokens without padding."""
    ids = tokens(size.batch, size.length)
    yield {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    yield {"input_ids": ids}


def choices(model: Any, size: Size) -> Iterator[Inputs]:
    """Several texts for each row, of which one is to be chosen."""
    ids = tokens(size.batch * 3, size.length, find(model.config, "vocab_size") or VOCABULARY)
    ids = ids.unflatten(0, (size.batch, 3))
    yield _masked(model, ids, torch.ones_like(ids))


def documents(model: Any, size: Size) -> Iterator[Inputs]:
    """Words with their places on a page, and the page beside them where the model looks at it."""
    if "bbox" not in inspect.signature(model.forward).parameters:
        raise ValueError("it takes no places")
    for written in text(model, size):
        shape = (*written["input_ids"].shape, 2)
        box = torch.cat([torch.randint(0, 400, shape), torch.randint(500, 900, shape)], -1)
        yield written | {"bbox": box}
        for name in ("pixel_values", "image"):
            for side in (find(model.config, "image_size", "input_size") or 224, 224):
                yield written | {"bbox": box, name: torch.randn(size.batch, 3, side, side)}


def with_past(model: Any, size: Size) -> Iterator[Inputs]:
    """What ``generate`` gives a decoder at its second step: new tokens, a mask over all, and the cache so far."""
    with torch.no_grad():
        first = model(input_ids=tokens(size.batch, size.past), use_cache=True)
    if first.get("past_key_values") is None:
        raise ValueError("it has no cache")
    mask = torch.ones(size.batch, size.past + size.length, dtype=torch.long)
    yield {
        "input_ids": tokens(size.batch, size.length),
        "attention_mask": mask,
        "past_key_values": first.past_key_values,
    }


def text_to_text(_model: Any, size: Size) -> Iterator[Inputs]:
    """Tokens for the encoder, others for the decoder."""
    ids = tokens(size.batch, size.length)
    target = tokens(size.batch, size.length + 2)
    yield {"input_ids": ids, "attention_mask": torch.ones_like(ids), "decoder_input_ids": target}


def images(model: Any, size: Size) -> Iterator[Inputs]:
    """Pictures at the size of the configuration, or at others."""
    config = model.config
    channels = find(config, "num_channels", "in_channels", "in_chans") or 3
    channels = channels if isinstance(channels, int) else 3
    given = find(config, "image_size", "img_size", "input_size")
    for side in dict.fromkeys([given if isinstance(given, int) else 32, 32, 64, 128]):
        yield {"pixel_values": torch.randn(size.batch, channels, side * size.scale, side * size.scale)}
    if isinstance(given, list | tuple):
        yield {"pixel_values": torch.randn(size.batch, channels, *given)}


def pairs_of_images(model: Any, size: Size) -> Iterator[Inputs]:
    """Two pictures for each row, whose points are to be matched."""
    channels = find(model.config, "num_channels") or 3
    for side in (64, 128):
        yield {"pixel_values": torch.randn(size.batch, 2, channels, side * size.scale, side * size.scale)}


def videos(model: Any, size: Size) -> Iterator[Inputs]:
    """Clips."""
    frames = find(model.config, "num_frames", "frames_per_clip") or 4
    side = find(model.config, "image_size", "crop_size") or 32
    side = side if isinstance(side, int) else 32
    for name in ("pixel_values", "pixel_values_videos"):
        yield {name: torch.randn(size.batch, frames, 3, side, side)}


def audio(model: Any, size: Size) -> Iterator[Inputs]:
    """A waveform, or frames of features."""
    config, name = model.config, getattr(model, "main_input_name", "input_values")
    mel = (
        find(
            config,
            "num_mel_bins",
            "feature_size",
            "feature_projection_input_dim",
            "input_dim",
            "input_feat_per_channel",
        )
        or 80
    )
    frames = 2 * (find(config, "max_source_positions") or 32)
    rates = find(config, "max_length")
    shapes: list[tuple[int, ...]] = [(size.batch, 1600 * size.scale)] if name == "input_values" else []
    shapes += [(size.batch, mel, frames), (size.batch, 40 * size.scale, mel), (size.batch, 1, 1600 * size.scale)]
    if isinstance(rates, int):
        shapes.append((size.batch, rates, mel))
    for shape in shapes:
        yield {name: torch.randn(shape)}


def speech_to_text(model: Any, size: Size) -> Iterator[Inputs]:
    """Audio for the encoder, tokens for the decoder."""
    for given in audio(model, size):
        yield given | {"decoder_input_ids": tokens(size.batch, size.length)}


def image_and_text(model: Any, size: Size) -> Iterator[Inputs]:
    """A picture and a text beside it: CLIP and the like."""
    for picture in images(model, size):
        for written in text(model, size):
            yield written | picture


def image_in_text(model: Any, size: Size) -> Iterator[Inputs]:
    """A picture inside of a text, at as many tokens as it makes features."""
    marker = find(model.config, "image_token_id", "image_token_index")
    for picture in images(model, size):
        with torch.no_grad():
            features = model.get_image_features(**picture)
        count = _length(features) // size.batch
        ids = tokens(size.batch, size.length)
        written = torch.cat([torch.full((size.batch, count), marker), ids], 1)
        yield {"input_ids": written, "attention_mask": torch.ones_like(written)} | picture


def _length(features: Any) -> int:
    features = getattr(features, "pooler_output", features)
    if isinstance(features, torch.Tensor):
        return features.numel() // features.shape[-1]
    return sum(map(_length, features))


def series(model: Any, size: Size) -> Iterator[Inputs]:
    """Past values of a series."""
    config = model.config
    length = find(config, "context_length") or 32
    for channels in (find(config, "num_input_channels", "input_size") or 1, None):
        shape = (size.batch, length) if channels is None else (size.batch, length, channels)
        yield {"past_values": torch.randn(shape)}


_TEXT = (Size(2, 7), Size(3, 11), Size(1, 4))
_IMAGE = (Size(1, 5), Size(3, 8), Size(2, 5, scale=2))
KINDS: dict[str, Kind] = {
    "masked-lm": Kind(("MODEL_FOR_MASKED_LM_MAPPING_NAMES",), text, _TEXT),
    "causal-lm": Kind(("MODEL_FOR_CAUSAL_LM_MAPPING_NAMES",), decoder, _TEXT),
    "causal-lm-past": Kind(
        ("MODEL_FOR_CAUSAL_LM_MAPPING_NAMES",), with_past, (Size(2, 2, 5), Size(3, 4, 7), Size(1, 2, 3), Size(2, 1, 6))
    ),
    "causal-lm-step": Kind(("MODEL_FOR_CAUSAL_LM_MAPPING_NAMES",), with_past, (Size(1, 1, 5), Size(3, 1, 8))),
    "seq2seq-lm": Kind(("MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES",), text_to_text, _TEXT),
    "speech-seq2seq": Kind(("MODEL_FOR_SPEECH_SEQ_2_SEQ_MAPPING_NAMES",), speech_to_text, _IMAGE),
    "ctc": Kind(("MODEL_FOR_CTC_MAPPING_NAMES",), audio, _IMAGE),
    "audio-classification": Kind(("MODEL_FOR_AUDIO_CLASSIFICATION_MAPPING_NAMES",), audio, _IMAGE),
    "text-to-audio": Kind(("MODEL_FOR_TEXT_TO_WAVEFORM_MAPPING_NAMES",), text, _TEXT),
    "image-classification": Kind(("MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING_NAMES",), images, _IMAGE),
    "segmentation": Kind(
        ("MODEL_FOR_SEMANTIC_SEGMENTATION_MAPPING_NAMES", "MODEL_FOR_UNIVERSAL_SEGMENTATION_MAPPING_NAMES"),
        images,
        _IMAGE,
    ),
    "detection": Kind(("MODEL_FOR_OBJECT_DETECTION_MAPPING_NAMES",), images, _IMAGE),
    "depth": Kind(("MODEL_FOR_DEPTH_ESTIMATION_MAPPING_NAMES",), images, _IMAGE),
    "keypoints": Kind(
        ("MODEL_FOR_KEYPOINT_DETECTION_MAPPING_NAMES", "MODEL_FOR_POSE_ESTIMATION_MAPPING_NAMES"), images, _IMAGE
    ),
    "backbone": Kind(("MODEL_FOR_BACKBONE_MAPPING_NAMES",), images, _IMAGE),
    "video": Kind(("MODEL_FOR_VIDEO_CLASSIFICATION_MAPPING_NAMES",), videos, (Size(1, 5), Size(2, 5))),
    "zero-shot-image": Kind(("MODEL_FOR_ZERO_SHOT_IMAGE_CLASSIFICATION_MAPPING_NAMES",), image_and_text, _TEXT),
    "image-text-to-text": Kind(("MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES",), image_in_text, _TEXT),
    "series": Kind(("MODEL_FOR_TIME_SERIES_PREDICTION_MAPPING_NAMES",), series, (Size(2, 5), Size(3, 5))),
    "sequence-classification": Kind(("MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES",), text, _TEXT),
    "token-classification": Kind(("MODEL_FOR_TOKEN_CLASSIFICATION_MAPPING_NAMES",), text, _TEXT),
    "question-answering": Kind(("MODEL_FOR_QUESTION_ANSWERING_MAPPING_NAMES",), text, _TEXT),
    "multiple-choice": Kind(("MODEL_FOR_MULTIPLE_CHOICE_MAPPING_NAMES",), choices, _TEXT),
    "pretraining": Kind(
        ("MODEL_FOR_PRETRAINING_MAPPING_NAMES", "MODEL_FOR_NEXT_SENTENCE_PREDICTION_MAPPING_NAMES"), text, _TEXT
    ),
    "text-encoder": Kind(("MODEL_FOR_TEXT_ENCODING_MAPPING_NAMES",), text, _TEXT),
    "document": Kind(("MODEL_FOR_DOCUMENT_QUESTION_ANSWERING_MAPPING_NAMES", "MODEL_MAPPING_NAMES"), documents, _TEXT),
    "text-to-spectrogram": Kind(("MODEL_FOR_TEXT_TO_SPECTROGRAM_MAPPING_NAMES",), text, _TEXT),
    "audio-frames": Kind(
        ("MODEL_FOR_AUDIO_FRAME_CLASSIFICATION_MAPPING_NAMES", "MODEL_FOR_AUDIO_XVECTOR_MAPPING_NAMES"), audio, _IMAGE
    ),
    "image-to-image": Kind(
        (
            "MODEL_FOR_IMAGE_TO_IMAGE_MAPPING_NAMES",
            "MODEL_FOR_IMAGE_MATTING_MAPPING_NAMES",
            "MODEL_FOR_NORMAL_ESTIMATION_MAPPING_NAMES",
            "MODEL_FOR_POINTMAP_ESTIMATION_MAPPING_NAMES",
            "MODEL_FOR_MASKED_IMAGE_MODELING_MAPPING_NAMES",
        ),
        images,
        _IMAGE,
    ),
    "text-in-image": Kind(
        ("MODEL_FOR_TEXT_RECOGNITION_MAPPING_NAMES", "MODEL_FOR_TABLE_RECOGNITION_MAPPING_NAMES"), images, _IMAGE
    ),
    "point-matching": Kind(("MODEL_FOR_KEYPOINT_MATCHING_MAPPING_NAMES",), pairs_of_images, _IMAGE),
    "zero-shot-detection": Kind(("MODEL_FOR_ZERO_SHOT_OBJECT_DETECTION_MAPPING_NAMES",), image_and_text, _TEXT),
    "question-of-image": Kind(("MODEL_FOR_VISUAL_QUESTION_ANSWERING_MAPPING_NAMES",), image_and_text, _TEXT),
    "series-as-a-whole": Kind(
        ("MODEL_FOR_TIME_SERIES_CLASSIFICATION_MAPPING_NAMES", "MODEL_FOR_TIME_SERIES_REGRESSION_MAPPING_NAMES"),
        series,
        (Size(2, 5), Size(3, 5)),
    ),
    "encoder": Kind(("MODEL_MAPPING_NAMES",), text, _TEXT),
    "image-encoder": Kind(("MODEL_FOR_IMAGE_MAPPING_NAMES",), images, _IMAGE),
    "audio-encoder": Kind(("MODEL_MAPPING_NAMES",), audio, _IMAGE),
}
