"""Any configuration of transformers made small, by what its fields are called.

Widths are divided by one number throughout, so that whatever was equal, a multiple or divisible stays so; numbers of
layers and experts, vocabularies and images are capped.
"""

from __future__ import annotations

import math
import re
from typing import Any

VOCABULARY = 128
_WIDTH = re.compile(
    r"(hidden|embed\w*|embd|intermediate|ffn|model|mlp|proj\w*|channel\w*|state|head|adapter|inner|out\w*|in|latent|fpn|neck"
    r"|conv|key|value|query|lora|qk\w*|v|d|kv)_?(size|sizes|dim|dims|dimension|width|rank|channels|list|ff|units|inner)$"
    r"|^(d_model|d_ff|d_kv|d_head|d_inner|n_embd|n_inner|dim|dims|embed_dim|width|hidden_dim|encoder_ffn_dim|decoder_ffn_dim|emb_dim)$"
    r"|(ffn_dim|mlp_dim|head_dim|nope_head_dim|rope_head_dim|filters|dim_head|d_state|lru_width|conv_dim|channels"
    r"|embed_dim_per_stage|hidden_units|pos_feats|dim_feedforward|_dim|_width|num_features|hidden_layer_dim)$"
)
_NOT_WIDTH = re.compile(
    r"vocab|patch|image|kernel|window|pool|chunk|position|max_|stride|mel|feature_size|block_size|num_channels|mlp_ratio"
    r"|codebook_size|frequency|in_chans|^in_channels$|context|kv_cache|query_dim|size_divisor|batch|grid|temporal|spec_size"
)
_LAYERS = re.compile(
    r"(num|n)_?(\w*_)?(?<!per_)layers?$|^layers$|(encoder|decoder|text|head|hidden)_layers$|^depth$|_depth$|^num_blocks$"
)
_STAGES = re.compile(
    r"depths$|stage_num_blocks|numb_of_layers|layers_block|num_block_repeats|blocks_per_stage|layers_per_stage"
    r"|^block_sizes$"
)
_KINDS_OF_LAYERS = re.compile("^layers_block_type$")
"""What each layer is, where nothing else says how many there are."""
_EXPERTS = re.compile(r"^(n_routed_experts|num_experts|num_local_experts|moe_num_experts|n_experts)$")
_CHOSEN = re.compile(
    r"experts_per_tok|experts_per_token|topk_group|^n_group$|^moe_k$|num_selected_experts|^moe_top_?k$|^top_k_experts$"
)
_STAGE_NAMES = ("out_features", "out_indices", "_out_features", "_out_indices", "stage_names")
"""Of backbones: they follow from the number of stages, and from which of them are returned."""
_HEADS = (("hidden_size", "num_attention_heads"), ("hidden_size", "num_heads"), ("d_model", "num_heads"))
_PERIOD, _OFFSET = re.compile(r"_layer_period$"), re.compile(r"_layer_offset$")
_CHUNKS = re.compile(r"^(mamba_)?chunk_size$")
"""Of scans: tensors have this size twice, whatever the length of a text."""
_PIECES = re.compile(r"^attention_window$|^block_size$")
"""Of attention in pieces: texts are padded to whole ones."""
_STATES = re.compile(r"^linear_num_heads$")
"""Matrices that scans carry along: they take chunks of a length of their own, whatever the length of a text."""
_STEPS = re.compile(r"^max_text_length$|_iters$")
"""Of a loop of Python in ``forward``."""
_VOCABULARY = re.compile(r"vocab_size|^num_embeddings$|^vocab_offset$")
_TOKEN = re.compile(r"(_token_id|_token_index|_id|_ids)$")
_LAYER_INDEX = re.compile(r"ind(ex|ic)e?s?$|insert_layer|feature_layer|_layer_ids?$|no_rope_layers|layers_to_")


def shrunk(config: dict[str, Any], *, divisor: int, layers: int) -> dict[str, Any]:
    """A smaller configuration, as plain data.

    Args:
        config: ``to_dict`` of a configuration.
        divisor: What widths are divided by.
        layers: The most layers of anything.
    """
    return _shrunk(config, divisor, layers, {})


def _shrunk(config: dict[str, Any], divisor: int, layers: int, tokens: dict[int, int]) -> dict[str, Any]:
    counts = {value for key, value in config.items() if _LAYERS.search(str(key)) and _is_int(value)}
    small: dict[str, Any] = {}
    for key, value in config.items():
        if key in _STAGE_NAMES:
            continue
        if not isinstance(key, str):  # a table of labels
            small[key] = value
        elif isinstance(value, dict):
            small[key] = _backbone(value) or _shrunk(value, divisor, layers, tokens)
        else:
            small[key] = _value(key, _fewer(key, value, counts, layers), divisor, layers, tokens)
    _fewer_heads(config, small)
    _stages(config, small)
    return _image(small)


def _fewer(key: str, value: Any, counts: set[Any], layers: int) -> Any:
    """A list of what each layer has, for as many layers as are left, or for one of each kind."""
    if isinstance(value, list) and _KINDS_OF_LAYERS.search(key):
        return list(dict.fromkeys(value))
    return value[:layers] if isinstance(value, list | tuple) and len(value) in counts else value


def _stages(config: dict[str, Any], small: dict[str, Any]) -> None:
    """Let a backbone return as many maps as before: what takes them counts them."""
    indices = config.get("out_indices")
    stages = len(small["depths"]) if isinstance(small.get("depths"), list) else small.get("num_hidden_layers")
    if not (isinstance(indices, list | tuple) and len(indices) > 1 and _is_int(stages) and len(indices) <= stages):
        return
    small["out_indices"] = list(indices if max(indices) <= stages else range(stages - len(indices) + 1, stages + 1))


def _backbone(config: dict[str, Any]) -> dict[str, Any] | None:
    """A small network of transformers' own in place of one that is in another library."""
    if config.get("model_type") != "timm_backbone":
        return None
    stages = [f"stage{index}" for index in config.get("out_indices") or [4]]
    sizes = {"embedding_size": 16, "hidden_sizes": [16, 32, 32, 32], "depths": [1, 1, 1, 1]}
    return {"model_type": "resnet", "layer_type": "basic", "out_features": stages, **sizes}


def _fewer_heads(config: dict[str, Any], small: dict[str, Any]) -> None:
    """Let heads divide a width that they divided before it was made smaller, each of an even width if possible."""
    for width, heads in _HEADS:
        if not (_is_int(config.get(width)) and _is_int(config.get(heads)) and config[width] % config[heads] == 0):
            continue
        size, count = small[width], small[heads]
        if size % count:
            small[heads] = math.gcd(size // 2, count) if size % 2 == 0 else math.gcd(size, count)
            if _is_int(small.get("num_key_value_heads")):
                small["num_key_value_heads"] = math.gcd(small[heads], small["num_key_value_heads"])


def _value(key: str, value: Any, divisor: int, layers: int, tokens: dict[int, int]) -> Any:
    if isinstance(value, list | tuple) and value and all(map(_is_int, value)):
        return type(value)(_value(key, item, divisor, layers, tokens) for item in value)
    if not _is_int(value):
        return VOCABULARY if key == "vocab_size" and value is None else value
    if _TOKEN.search(key):
        return value if value < VOCABULARY else tokens.setdefault(value, VOCABULARY - 1 - len(tokens))
    if _VOCABULARY.search(key):
        return min(value, VOCABULARY)
    if _LAYER_INDEX.search(key):
        return min(value, layers - 1)
    if _OFFSET.search(key):
        return min(value, layers - 1)
    for pattern, most in (
        (_LAYERS, layers),
        (_STAGES, layers),
        (_PERIOD, layers),
        (_EXPERTS, 4),
        (_CHOSEN, 2),
        (_CHUNKS, 16),
        (_PIECES, 128),
        (_STATES, 4),
        (_STEPS, 4),
    ):
        if pattern.search(key):
            return min(value, most)
    if _WIDTH.search(key) and not _NOT_WIDTH.search(key) and value % divisor == 0 and value > divisor:
        return value // divisor
    return value


def _image(config: dict[str, Any]) -> dict[str, Any]:
    """Images of a few patches, and short audio."""
    patch = config.get("patch_size")
    size = config.get("image_size")
    if _is_int(size):
        side = patch if _is_int(patch) else 16
        config["image_size"] = min(size, side * max(2, -(-32 // side)))
    if _is_int(config.get("mm_tokens_per_image")):
        config["mm_tokens_per_image"] = 1
    if _is_int(config.get("max_source_positions")):
        config["max_source_positions"] = min(config["max_source_positions"], 32)
    return config


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
