"""What is taken from transformers: names that no signature tells. Nothing here is about one architecture."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch

from entrepot.exporters.torch.running.errors import MODEL_ERRORS

FLAGS = {"use_cache": True, "return_dict": True}
"""What forward is told, as far as it takes such arguments."""

CACHES = ("past_key_values", "cache_params", "past", "cache", "state", "states", "mems")
"""What parameters for a cache are called, in transformers and by others."""


@contextlib.contextmanager
def whole_windows() -> Iterator[None]:
    """Let caches of windowed attention keep everything: what leaves a window is masked anyway.

    A layer that crops itself counts what it has seen in a Python number, which a graph would keep for ever.
    """
    cache_utils = sys.modules.get("transformers.cache_utils")
    if cache_utils is None:
        yield
        return
    kinds = cache_utils.DYNAMIC_LAYER_TYPE_MAPPING
    whole = {
        cache_utils.DynamicSlidingWindowLayer: cache_utils.DynamicLayer,
        cache_utils.LinearAttentionAndSlidingWindowAttentionLayer: cache_utils.LinearAttentionAndFullAttentionLayer,
    }
    before = dict(kinds)
    kinds.update({name: whole.get(kind, kind) for name, kind in before.items()})
    try:
        yield
    finally:
        kinds.update(before)


def is_pretrained(model: torch.nn.Module) -> bool:
    """Whether it is a model of transformers."""
    modeling = sys.modules.get("transformers.modeling_utils")
    return modeling is not None and isinstance(model, modeling.PreTrainedModel)


def can_generate(model: torch.nn.Module) -> bool:
    """Whether transformers itself generates with it."""
    return is_pretrained(model) and bool(model.can_generate())  # type: ignore[operator]


def forgets_after(model: torch.nn.Module, cache: Any) -> int:
    """After how many tokens ``generate`` of transformers leaves a cache behind; 0 for never.

    A model says so by what it prepares for its next call. The number is one of its configuration.
    """
    if not can_generate(model):
        return 0
    from transformers import GenerationMixin

    prepare = getattr(model, "prepare_inputs_for_generation", None)
    if prepare is None or getattr(prepare, "__func__", None) is GenerationMixin.prepare_inputs_for_generation:
        return 0
    known = sorted(size for size in _sizes(config_of(model)) if 0 < size <= _LONGEST)
    left = (size for size in known if _leaves(prepare, cache, size + 1) and not _leaves(prepare, cache, size))
    return next(left, 0)


_LONGEST = 1 << 20


def _sizes(described: Any) -> set[int]:
    """All whole numbers of a configuration."""
    if hasattr(described, "to_dict"):
        described = described.to_dict()
    if isinstance(described, Mapping):
        return {size for value in described.values() for size in _sizes(value)}
    return {described} if type(described) is int else set()


def _leaves(prepare: Any, cache: Any, length: int) -> bool:
    """Whether a cache is left out of a call for so many tokens."""
    ids = torch.zeros(1, length, dtype=torch.int64)
    try:
        given = prepare(ids, past_key_values=cache, attention_mask=torch.ones_like(ids), use_cache=True)
    except MODEL_ERRORS:
        return False
    return isinstance(given, Mapping) and given.get("past_key_values") is None


def encoder_results(hidden: torch.Tensor) -> Any:
    """What a decoder is given in place of an encoder's results; those of experts are asked for their routers."""
    return _results_of_encoders()(last_hidden_state=hidden)


@functools.cache
def _results_of_encoders() -> type[Any]:
    from transformers.modeling_outputs import BaseModelOutput

    fields = [(name, Any, None) for name in ("router_logits", "router_probs")]
    return dataclasses.make_dataclass("EncoderResults", fields, bases=(BaseModelOutput,))


def encoder_path(model: torch.nn.Module) -> str:
    """Where the encoder of a model of transformers is; empty if it says nothing of one."""
    find = getattr(model, "get_encoder", None)
    encoder = find() if callable(find) else None
    return next((name for name, part in model.named_modules() if part is encoder and name), "")


def generation_defaults(model: torch.nn.Module) -> dict[str, Any]:
    """What the model's generation_config sets, by name."""
    config = getattr(model, "generation_config", None)
    if config is None:
        return {}
    return {name: value for name, value in config.to_diff_dict().items() if value is not None}


def asks_for(model: torch.nn.Module) -> list[str]:
    """What its generation_config asks ``generate`` for, beside what changes no token; fields of its own are notes."""
    config = getattr(model, "generation_config", None)
    known = vars(type(config)()) if is_pretrained(model) and config is not None else {}
    asked = {name: value for name, value in generation_defaults(model).items() if name in known}
    active = (name for name, value in asked.items() if value and _NOTHING.get(name) != value)
    return sorted(name for name in active if name not in _ABOUT and not name.startswith("_"))


_NOTHING: Mapping[str, Any] = {"guidance_scale": 1, "num_beam_groups": 1}
"""Values that ask for nothing, where these are none that are false."""

_ABOUT = frozenset(
    {"transformers_version", "bos_token_id", "use_cache", "cache_implementation", "cache_config", "max_cache_len"}
    | {"return_dict_in_generate", "low_memory", "prefill_chunk_size", "compile_config", "disable_compile"}
    | {"continuous_batching_config", "output_attentions", "output_hidden_states", "output_logits", "output_scores"}
    | {"prompt_lookup_num_tokens", "max_matching_ngram_size", "is_assistant", "num_assistant_tokens", "use_mtp"}
    | {"num_assistant_tokens_schedule", "assistant_confidence_threshold", "assistant_early_exit", "speculation_type"}
    | {"assistant_ensemble_weight", "assistant_lookbehind", "target_lookbehind"}
)
"""What says nothing about which tokens are chosen: how they are found, and what else is returned."""


def generated(model: torch.nn.Module, given: Mapping[str, Any], asked: Mapping[str, Any]) -> np.ndarray[Any, Any]:
    """The tokens that transformers generates, by what all of its models share.

    Raises:
        ValueError: It makes something else, such as a voice, or refuses what is asked.
    """
    from transformers import GenerationMixin

    generate: Any = GenerationMixin.generate  # some models bring one of their own, which does more
    try:
        with torch.no_grad():
            made = generate(model, **given, **asked)
    except ImportError as error:  # a library that only its loop needs
        raise ValueError(str(error)) from error
    if not isinstance(made, torch.Tensor):
        raise ValueError("what it generates is not tokens alone")  # noqa: TRY004 - as transformers refuses
    return made.numpy()


def config_of(model: torch.nn.Module) -> Any:
    """Its configuration, or ``None``."""
    return getattr(model, "config", None)


def versions() -> dict[str, str]:
    """The versions of what makes a package."""
    import onnx

    import entrepot

    found = {"entrepot": entrepot.__version__, "torch": torch.__version__, "onnx": onnx.__version__}
    transformers = sys.modules.get("transformers")
    return found if transformers is None else found | {"transformers": transformers.__version__}
