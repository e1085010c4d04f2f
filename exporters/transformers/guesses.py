"""What a model may take, by the names of its parameters and the sizes in its configuration."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Collection, Iterator
from typing import Any

import torch

from entrepot.exporters.transformers.roles import Roles
from entrepot.exporters.transformers.upstream import config_of

BATCH, LENGTH, SOURCE = 2, 5, 7
"""Sizes that differ pairwise, and are not 1: of the batch, of prompts, of what encoders of text are given."""
_CHOICES = 3
_NAMED = ("input_ids", "tokens", "ids")

Inputs = dict[str, torch.Tensor]


def guesses(model: torch.nn.Module, roles: Roles, *, generates: bool) -> Iterator[Inputs]:
    """Inputs that a model may take, the likeliest first."""
    names = inspect.signature(model.forward).parameters
    text: Inputs = {roles.tokens: tokens(model, BATCH, LENGTH)} if roles.tokens in names else {}
    if not roles.has_encoder and generates:
        yield text | ({roles.mask: torch.ones(BATCH, LENGTH, dtype=torch.int64)} if roles.mask else {})
    if roles.encoder:
        yield from _of_own_encoder(model, next(name for name in names if name != roles.tokens), roles, text)
        return
    main = _main(model, names)
    takes_tokens = roles.has_encoder or (roles.tokens in _NAMED and main != roles.tokens)
    for source in _sources(model, main, names):
        if takes_tokens:
            yield source | text
        yield source
    yield from _unusual_texts(model, main, names)
    yield from _towers(model, main, names)


def left_out(model: torch.nn.Module, given: Collection[str]) -> list[str]:
    """The pictures and sounds that a model takes and is not given."""
    names = inspect.signature(model.forward).parameters
    return [name for name in names if name not in given and _kind_of(name) is not _series]


def _main(model: torch.nn.Module, names: Collection[str]) -> str:
    """The input that the model says is its main one, unless it has none of that name: that word is inherited."""
    said = getattr(model, "main_input_name", "input_ids")
    known = (name for name in names if name in _NAMED or _kind_of(name) is not _series)
    return said if said in names else next(known, said)


def _of_own_encoder(model: torch.nn.Module, first: str, roles: Roles, text: Inputs) -> Iterator[Inputs]:
    yield {first: few_tokens(model, SOURCE, seed=1), roles.tokens: few_tokens(model, LENGTH)}
    yield from ({first: picture, **text} for picture in _pictures(config_of(model)))
    yield from ({first: sound, **text} for sound in _sounds(config_of(model), first))


def _sources(model: torch.nn.Module, main: str, names: Collection[str]) -> Iterator[Inputs]:
    if main in _NAMED:
        ids = tokens(model, BATCH, SOURCE, seed=1)
        if "attention_mask" in names:
            yield {main: ids, "attention_mask": padded(torch.ones_like(ids), left=False)}
        yield {main: ids}
    else:
        yield from ({main: value} for value in _kind_of(main)(config_of(model), main))


def _unusual_texts(model: torch.nn.Module, main: str, names: Collection[str]) -> Iterator[Inputs]:
    """Texts whose ends are looked for, and several for each row, which are choices."""
    if main not in _NAMED:
        return
    ids = tokens(model, BATCH, SOURCE, seed=1)
    end = find(config_of(model), "eos_token_id")
    if isinstance(end, int):
        ended = torch.cat([ids[:, 1:], torch.full_like(ids[:, :1], end)], 1)
        yield _unpadded(main, ended, names)
    yield _unpadded(main, tokens(model, BATCH * _CHOICES, SOURCE, seed=1).reshape(BATCH, _CHOICES, SOURCE), names)


def _unpadded(main: str, text: torch.Tensor, names: Collection[str]) -> Inputs:
    return {main: text} | ({"attention_mask": torch.ones_like(text)} if "attention_mask" in names else {})


def _towers(model: torch.nn.Module, main: str, names: Collection[str]) -> Iterator[Inputs]:
    """A text together with a picture or a sound, for what asks for both."""
    others = [name for name in names if name != main and _kind_of(name) is not _series]
    text = next((name for name in _NAMED if name in names), "")
    for other in [main, *others] if main not in _NAMED else others:
        for value in _kind_of(other)(config_of(model), other):
            for source in _sources(model, text, names) if text else ():
                yield source | {other: value}


def _kind_of(name: str) -> Callable[[Any, str], Iterator[torch.Tensor]]:
    """What an input of this name is made by."""
    words = {*name.lower().split("_")}
    if not words.isdisjoint({"pixel", "pixels", "image", "images", "video", "videos", "img"}):
        return _pictures if words.isdisjoint(_DESCRIBED) else _series
    return _sounds if name in ("input_features", "input_values", "audio_values") else _series


_DESCRIBED = {
    *("mask", "sizes", "size", "embeds", "embeddings", "position", "grid", "thw", "ids", "token", "tokens", "features"),
    *("hidden", "states", "outputs", "attentions", "attention", "num", "ratio", "labels"),
}
"""Words in the names of what is said of pictures, and of what others have computed of them."""


def _pictures(config: Any, _name: str = "") -> Iterator[torch.Tensor]:
    """One for each row, then several: as many as there are frames, and pairs."""
    channels = find(config, "num_channels", "in_channels", "in_chans")
    channels = channels if isinstance(channels, int) else 3
    given = find(config, "image_size", "img_size", "input_size")
    sides = [(each, each) for each in dict.fromkeys([given if isinstance(given, int) else 32, 32, 64, 128, 224])]
    if isinstance(given, list | tuple) and len(given) == len(("height", "width")):
        sides = [(given[0], given[1]), *sides]
    frames = find(config, "num_frames", "frames_per_clip")
    for several in ([], *([count] for count in dict.fromkeys([frames, 2]) if isinstance(count, int))):
        for height, width in sides:
            yield _normal(BATCH, *several, channels, height, width, seed=2)


def _sounds(config: Any, name: str) -> Iterator[torch.Tensor]:
    """Samples, or the energies of bands, on either axis."""
    bands = ("num_mel_bins", "feature_size", "feature_projection_input_dim", "input_dim", "input_feat_per_channel")
    mel = find(config, *bands) or 80
    frames = 2 * (find(config, "max_source_positions") or 32)
    shapes: list[tuple[int, ...]] = [(BATCH, 1600)] if name == "input_values" else []
    shapes += [(BATCH, mel, frames), (BATCH, 40, mel), (BATCH, 1, 1600)]
    if isinstance(longest := find(config, "max_length"), int):
        shapes.append((BATCH, longest, mel))
    return (_normal(*shape, seed=3) for shape in shapes)


def _series(config: Any, name: str) -> Iterator[torch.Tensor]:
    """Numbers over time, of as many channels as there are; sounds, where nothing says how long they are."""
    length = find(config, "context_length")
    channels = find(config, "num_input_channels")
    known = isinstance(length, int) and isinstance(channels, int)
    first = [_normal(BATCH, length, channels, seed=3)] if known else []
    return itertools.chain(first, _sounds(config, name))


def _normal(*shape: int, seed: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def tokens(model: torch.nn.Module, batch: int, length: int, seed: int = 0) -> torch.Tensor:
    """Ordinary tokens: not the first few of a vocabulary, which are special."""
    generator = torch.Generator().manual_seed(seed)
    most = vocabulary(model)
    return torch.randint(
        min(8, most // 2), max(most - max(most // 8, 1), most // 2 + 1), (batch, length), generator=generator
    )


def vocabulary(model: torch.nn.Module) -> int:
    """How many tokens there are: what it says itself, or the fewest of a table that may be one of tokens.

    A table is one if it is large, or if as many scores are made: others are of kinds of tokens, few of which there are.
    """
    size = find(config_of(model), "vocab_size")
    if isinstance(size, int):
        return size
    sizes = {part.num_embeddings for part in model.modules() if isinstance(part, torch.nn.Embedding)}
    scored = {part.out_features for part in model.modules() if isinstance(part, torch.nn.Linear)}
    likely = {size for size in sizes if size >= _MANY or size in scored}
    return min(likely or sizes, default=64)


_MANY = 16
"""So many rows has no table of kinds of tokens."""


def padded(mask: torch.Tensor, *, left: bool) -> torch.Tensor:
    """A mask with padding in its first row."""
    mask = mask.clone()
    mask[0, 0 if left else -1] = 0
    return mask


def few_tokens(model: torch.nn.Module, length: int, seed: int = 0) -> torch.Tensor:
    """Tokens that every table of the model has: which of them is for whose tokens, nothing tells."""
    most = min((part.num_embeddings for part in model.modules() if isinstance(part, torch.nn.Embedding)), default=2)
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(most // 2, most, (BATCH, length), generator=generator)


def find(config: Any, *names: str) -> Any:
    """The first field with one of these names, in the configuration or in those inside of it."""
    if config is None:
        return None
    for name in names:
        if getattr(config, name, None) is not None:
            return getattr(config, name)
    inner = (value for value in vars(config).values() if hasattr(value, "to_dict"))
    return next((found for part in inner if (found := find(part, *names)) is not None), None)
