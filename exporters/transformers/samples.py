"""Inputs of a model, made from its signature and its configuration where a caller gives none."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Iterator, Mapping
from typing import Any

import torch

from entrepot.exporters.sample import Sample
from entrepot.exporters.torch.running.errors import MODEL_ERRORS
from entrepot.exporters.torch.running.guard import quiet
from entrepot.exporters.transformers.roles import Roles
from entrepot.exporters.transformers.upstream import config_of
from entrepot.ir.arguments import expected
from entrepot.ir.errors import InputError

BATCH, LENGTH, SOURCE = 2, 5, 7
"""Sizes that differ pairwise, and are not 1: of the batch, of prompts, of what encoders of text are given."""

Inputs = dict[str, torch.Tensor]


def sample_of(model: torch.nn.Module, roles: Roles, given: Any, *, generates: bool) -> Inputs:
    """What a model is called with: what the caller gives, or the first of our guesses that it accepts.

    Raises:
        InputError: What is given does not fit, or no guess does.
    """
    if given is not None:
        return _accepted(model, roles, _named(model, given))
    refusals = []
    for guess in _guesses(model, roles, generates=generates):
        try:
            with quiet(), torch.no_grad():
                model(**guess)
        except MODEL_ERRORS as error:
            refusals.append(f"{type(error).__name__}: {error}".splitlines()[0])
        else:
            return guess
    why = f": {refusals[0]}" if refusals else ""
    raise InputError(f"no inputs could be made for {type(model).__name__}{why}", hint="give samples={'input_ids': ...}")


def roomy(model: torch.nn.Module, roles: Roles, given: Inputs) -> Inputs:
    """The inputs as they tell most: no row or token alone, since axes of size 1 tell nothing, and a text with a mask.

    Whatever the model does not take so stays as it is.
    """
    rows = {name: torch.cat([value] * BATCH) if len(value) == 1 else value for name, value in given.items()}
    longer = rows
    if all(value.dim() == _ROWS and not value.is_floating_point() for value in given.values()):
        longer = {name: value.repeat(1, LENGTH) if value.shape[1] == 1 else value for name, value in rows.items()}
    candidates = (_masked(model, roles, longer), longer, rows)
    return next((each for each in candidates if each.keys() and _takes(model, each, given)), given)


_ROWS = 2
"""The rank of texts."""


def _masked(model: torch.nn.Module, roles: Roles, given: Inputs) -> Inputs:
    """With a mask for what an encoder reads, if it takes one: else padding would be read like any other token."""
    names, text, mask = inspect.signature(model.forward).parameters, given.get("input_ids"), "attention_mask"
    if not roles.encoder_results or mask not in names or mask in given or text is None:
        return given
    return given | {mask: padded(torch.ones_like(text), left=False)}


def _takes(model: torch.nn.Module, inputs: Inputs, known: Inputs) -> bool:
    if inputs.keys() == known.keys() and all(value is known[name] for name, value in inputs.items()):
        return True
    try:
        with quiet(), torch.no_grad():
            model(**inputs)
    except MODEL_ERRORS:
        return False
    return True


def _named(model: torch.nn.Module, given: Any) -> Inputs:
    sample = Sample.of(given, model.forward)
    try:
        bound = inspect.signature(model.forward).bind(*sample.args, **sample.kwargs)
    except TypeError as error:
        raise InputError(f"the samples do not fit forward: {error}") from error
    arguments = dict(bound.arguments)
    for name, parameter in bound.signature.parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            arguments |= arguments.pop(name, {})
    return {name: _tensor(value, name) for name, value in arguments.items() if value is not None}


def _accepted(model: torch.nn.Module, roles: Roles, given: Inputs) -> Inputs:
    """The samples, once the model has taken them; tokens for its decoder, which generation brings, may be missing."""
    called = given
    if roles.has_encoder and roles.tokens not in given:
        batch = next((len(value) for value in given.values() if value.dim()), BATCH)
        called = given | {roles.tokens: tokens(model, batch, LENGTH)}
    try:
        with quiet(), torch.no_grad():
            model(**called)
    except MODEL_ERRORS as error:
        first = f"{type(error).__name__}: {error}".splitlines()[0]
        raise InputError(
            f"{type(model).__name__} does not take the samples: {first}",
            hint="call the model with them once to see the whole traceback",
        ) from error
    return given


def _tensor(value: Any, name: str) -> torch.Tensor:
    """A sample as a tensor with axes and elements, which a size can be read from.

    Raises:
        InputError: It is something else.
    """
    if isinstance(value, bool | str):
        raise expected(f"sample '{name}'", "a tensor", value, hint="leave it out: what is no tensor is never an input")
    try:
        found = torch.as_tensor(value)
    except (TypeError, ValueError, RuntimeError) as error:
        raise expected(f"sample '{name}'", "a tensor", value) from error
    if not found.numel():
        raise InputError(f"sample '{name}' has shape {tuple(found.shape)}, expected at least one element")
    return found


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


def padded(mask: torch.Tensor, *, left: bool) -> torch.Tensor:
    """A mask with padding in its first row."""
    mask = mask.clone()
    mask[0, 0 if left else -1] = 0
    return mask


def _guesses(model: torch.nn.Module, roles: Roles, *, generates: bool) -> Iterator[Inputs]:
    names = inspect.signature(model.forward).parameters
    text: Inputs = {roles.tokens: tokens(model, BATCH, LENGTH)} if roles.tokens in names else {}
    if not roles.has_encoder and generates:
        if roles.mask:
            text[roles.mask] = torch.ones(BATCH, LENGTH, dtype=torch.int64)
        yield text
        return
    if roles.encoder:
        first = next(name for name in names if name != roles.tokens)
        yield {first: few_tokens(model, SOURCE, seed=1), roles.tokens: few_tokens(model, LENGTH)}
        yield from ({first: picture, **text} for picture in _pictures(config_of(model)))
        yield from ({first: sound, **text} for sound in _sounds(config_of(model), first))
        return
    main = getattr(model, "main_input_name", "input_ids")
    takes_tokens = roles.has_encoder or (roles.tokens in ("input_ids", "tokens", "ids") and main != roles.tokens)
    for source in _sources(model, main, names):
        if takes_tokens:
            yield source | text
        yield source


def _sources(model: torch.nn.Module, main: str, names: Mapping[str, Any]) -> Iterator[Inputs]:
    config = config_of(model)
    if main == "input_ids" or main in ("tokens", "ids"):
        ids = tokens(model, BATCH, SOURCE, seed=1)
        if "attention_mask" in names:
            yield {main: ids, "attention_mask": padded(torch.ones_like(ids), left=False)}
        yield {main: ids}
    elif "pixel" in main or "image" in main:
        yield from ({main: picture} for picture in _pictures(config))
    else:
        yield from ({main: sound} for sound in _sounds(config, main))


def _pictures(config: Any) -> Iterator[torch.Tensor]:
    channels = find(config, "num_channels", "in_channels", "in_chans")
    channels = channels if isinstance(channels, int) else 3
    given = find(config, "image_size", "img_size", "input_size")
    generator = torch.Generator().manual_seed(2)
    if isinstance(given, list | tuple) and len(given) == 2:
        yield torch.randn(BATCH, channels, *given, generator=generator)
    for side in dict.fromkeys([given if isinstance(given, int) else 32, 32, 64, 128, 224]):
        yield torch.randn(BATCH, channels, side, side, generator=generator)


def _sounds(config: Any, main: str) -> Iterator[torch.Tensor]:
    names = ("num_mel_bins", "feature_size", "feature_projection_input_dim", "input_dim", "input_feat_per_channel")
    mel = find(config, *names) or 80
    frames = 2 * (find(config, "max_source_positions") or 32)
    shapes: list[tuple[int, ...]] = [(BATCH, 1600)] if main == "input_values" else []
    shapes += [(BATCH, mel, frames), (BATCH, 40, mel), (BATCH, 1, 1600)]
    generator = torch.Generator().manual_seed(3)
    return (torch.randn(shape, generator=generator) for shape in itertools.chain(shapes))
