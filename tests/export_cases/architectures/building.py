"""One small model of transformers with its calls."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import torch

from tests.export_cases.architectures.kinds import KINDS, Inputs, Size
from tests.export_cases.architectures.shrinking import shrunk
from tests.export_cases.case import Built

MOST_PARAMETERS = 12_000_000


class Recipe(NamedTuple):
    """How a case is built: found once by ``discover``, and kept in ``catalogue.json``.

    Attributes:
        kind: One of ``KINDS``.
        model_type: The name of the configuration.
        architecture: The name of the class.
        divisor: What widths are divided by.
        layers: The most layers.
        attempt: Which of the kind's calls the model accepts.
        sizes: The positions of the sizes that it accepts.
    """

    kind: str
    model_type: str
    architecture: str
    divisor: int
    layers: int
    attempt: int = 0
    sizes: tuple[int, ...] = (0,)


class TooLargeError(ValueError):
    """A model that shrinking does not make small."""


def module_of(recipe: Recipe) -> Any:
    """The model, with weights that are not too regular, in evaluation mode.

    Raises:
        TooLargeError: It has too many parameters.
    """
    import transformers

    kind = transformers.CONFIG_MAPPING[recipe.model_type]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fields = shrunk(kind().to_dict(), divisor=recipe.divisor, layers=recipe.layers)
        config = kind.from_dict(fields | _needed(recipe.kind, fields))
        architecture = getattr(transformers, recipe.architecture)
        with torch.device("meta"):
            size = sum(parameter.numel() for parameter in architecture(config).parameters())
        if size > MOST_PARAMETERS:
            raise TooLargeError(f"{size} parameters")
        module = architecture(config).eval()
    with torch.no_grad():
        for parameter in module.parameters():
            if parameter.is_floating_point() and parameter.dim() < 2:
                parameter.add_(0.05 * torch.randn_like(parameter))
    return module


def _needed(kind: str, fields: dict[str, Any]) -> dict[str, Any]:
    """What models of a kind want of their configuration."""
    if kind == "sequence-classification" and fields.get("pad_token_id") is None:
        return {"pad_token_id": 0}  # decoders look for the last token that is none
    return {"is_decoder": True} if kind.startswith("causal-lm") else {}


def call_of(recipe: Recipe, module: Any, size: Size) -> Inputs:
    """One call of the model."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for at, given in enumerate(KINDS[recipe.kind].inputs(module, size)):
            if at == recipe.attempt:
                return given
    raise IndexError(recipe.attempt)


def build(recipe: Recipe) -> Built:
    """The model and its calls."""
    module = module_of(recipe)
    sizes = KINDS[recipe.kind].sizes
    return Built(module, tuple(call_of(recipe, module, sizes[at]) for at in recipe.sizes))
