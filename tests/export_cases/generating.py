"""Small random models of transformers, by what they have in common with large ones."""

from __future__ import annotations

import warnings
from typing import Any

import torch
import transformers

TEXT = {
    "vocab_size": 99,
    "hidden_size": 32,
    "intermediate_size": 37,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
BART = {
    "vocab_size": 99,
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 37,
    "decoder_ffn_dim": 37,
    "max_position_embeddings": 64,
    "pad_token_id": 1,
    "bos_token_id": 0,
    "eos_token_id": 2,
    "decoder_start_token_id": 2,
}
_EXPERTS = {"num_experts_per_tok": 2, "intermediate_size": 48}
_OTHERS: dict[str, dict[str, Any]] = {
    "GPT2LMHeadModel": {"vocab_size": 99, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64}
    | {"bos_token_id": 1, "eos_token_id": 2},
    "LlamaForCausalLM": TEXT,
    "Qwen2ForCausalLM": TEXT,
    "Qwen3ForCausalLM": TEXT,
    "Phi3ForCausalLM": TEXT,
    "MistralForCausalLM": TEXT | {"sliding_window": 4},
    "MixtralForCausalLM": TEXT | _EXPERTS | {"num_local_experts": 4},
    "Qwen3MoeForCausalLM": TEXT | _EXPERTS | {"num_experts": 4, "moe_intermediate_size": 16},
    "Gemma3ForCausalLM": TEXT
    | {"sliding_window": 4, "layer_types": ["sliding_attention", "full_attention"], "query_pre_attn_scalar": 8},
    "MambaForCausalLM": {"vocab_size": 99, "hidden_size": 32, "num_hidden_layers": 2, "state_size": 8}
    | {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2},
    "T5ForConditionalGeneration": {"vocab_size": 99, "d_model": 32, "d_ff": 37, "d_kv": 8, "num_layers": 2}
    | {"num_heads": 4, "decoder_start_token_id": 0, "pad_token_id": 0, "eos_token_id": 1},
    "BartForConditionalGeneration": BART,
    "MarianMTModel": BART,
    "M2M100ForConditionalGeneration": BART,
    "PegasusForConditionalGeneration": BART,
    "WhisperForConditionalGeneration": {
        **BART,
        "num_mel_bins": 8,
        "max_source_positions": 30,
        "max_target_positions": 64,
    }
    | {"suppress_tokens": None, "begin_suppress_tokens": None},
    "BertForSequenceClassification": {**TEXT, "num_labels": 3},
}
_CONFIGS = {
    "GPT2LMHeadModel": "GPT2Config",
    "Gemma3ForCausalLM": "Gemma3TextConfig",
    "MarianMTModel": "MarianConfig",
}


def built(name: str) -> Any:
    """A model with weights of its own, the same each time."""
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if name in _PICTURES:
            return _PICTURES[name]().eval()
        config = _CONFIGS.get(name) or next(
            name.removesuffix(ending) + "Config" for ending in _ENDINGS if name.endswith(ending)
        )
        fields = {key: value for key, value in _OTHERS[name].items() if value is not None}
        return getattr(transformers, name)(getattr(transformers, config)(**fields)).eval()


_ENDINGS = ("ForCausalLM", "ForConditionalGeneration", "ForSequenceClassification")


def _captioner(encoder: Any, decoder: Any) -> Any:
    configs = transformers.VisionEncoderDecoderConfig.from_encoder_decoder_configs(encoder, decoder)
    model: Any = transformers.VisionEncoderDecoderModel(config=configs)
    for config in (model.config, model.generation_config):
        config.decoder_start_token_id, config.pad_token_id = 2, 1
    model.generation_config.eos_token_id = 2
    return model


def _trocr() -> Any:
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 37}
    decoder = {name: value for name, value in BART.items() if not name.startswith("encoder")}
    return _captioner(
        transformers.ViTConfig(image_size=32, patch_size=8, **sizes),
        transformers.TrOCRConfig(**decoder, cross_attention_hidden_size=32),
    )


def _donut() -> Any:
    sizes = {"patch_size": 4, "embed_dim": 8, "depths": [1, 1], "num_heads": [2, 2], "window_size": 4}
    decoder = BART | {"d_model": 16, "is_decoder": True, "is_encoder_decoder": False, "add_cross_attention": True}
    return _captioner(transformers.DonutSwinConfig(image_size=[64, 32], **sizes), transformers.MBartConfig(**decoder))


def _llava() -> Any:
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 37}
    pictures = transformers.CLIPVisionConfig(image_size=16, patch_size=8, **sizes)
    written = transformers.LlamaConfig(**TEXT)
    config = transformers.LlavaConfig(
        vision_config=pictures, text_config=written, image_token_index=98, image_seq_length=4
    )
    return transformers.LlavaForConditionalGeneration(config)


_PICTURES = {"trocr": _trocr, "donut": _donut, "llava": _llava}


NAMES = (*(name for name in _OTHERS if name != "BertForSequenceClassification"), *_PICTURES)
"""All that generate."""


def given(name: str, model: Any, rows: int, seed: int = 0, longer: int = 0) -> dict[str, torch.Tensor]:
    """What a model is called with: prompts or texts with padding, pictures, sounds."""
    generator = torch.Generator().manual_seed(seed)
    if name == "WhisperForConditionalGeneration":
        return {"input_features": torch.randn(rows, 8, 60, generator=generator)}
    if name in ("trocr", "donut"):
        size = (rows, 3, 32, 32) if name == "trocr" else (rows, 3, 64, 32)
        return {"pixel_values": torch.randn(size, generator=generator)}
    ids = torch.randint(5, 90, (rows, longer + (9 if name == "llava" else 6)), generator=generator)
    mask = torch.ones_like(ids)
    if name == "llava":
        ids[:, 1:5] = 98
        return {
            "input_ids": ids,
            "attention_mask": mask,
            "pixel_values": torch.randn(rows, 3, 16, 16, generator=generator),
        }
    if rows > 1:
        where = slice(-2, None) if model.config.is_encoder_decoder else slice(0, 2)
        mask[0, where] = 0
    return {"input_ids": ids, "attention_mask": mask}
