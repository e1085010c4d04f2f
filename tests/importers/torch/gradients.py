"""Gradients of the zoo's networks and of the modules that came of them, in float64."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import torch

from tests.importers.torch.networks import arguments, built, results


def plain_loop(condition: Any, body: Any, carried: Any) -> Any:
    """torch 2.13's own gradient through ``while_loop`` is 30 % off that of the loop written out."""
    while condition(*carried):
        carried = body(*carried)
    return carried


def gradients(module: torch.nn.Module, name: str) -> dict[str, torch.Tensor]:
    """Gradients by name; torch.cond gives zeros to the branch that is not taken, Python none."""
    sample = built(name).samples[-1]
    if hasattr(module, "source"):
        made = results(module, [_double(each) for each in arguments(name, sample)])
    else:
        made = _outputs(module, torch.utils._pytree.tree_map(_double, sample))
    generator = torch.Generator().manual_seed(0)
    floating = [each for each in made if each.is_floating_point()]
    sum((each * torch.randn(each.shape, generator=generator)).sum() for each in floating).backward()
    pairs = module.named_parameters()
    return {key: torch.zeros_like(value) if value.grad is None else value.grad for key, value in pairs}


def _double(given: Any) -> Any:
    return given.double() if isinstance(given, torch.Tensor) and given.is_floating_point() else given


def padding(module: torch.nn.Module) -> Iterator[tuple[str, int]]:
    """Rows of embeddings that get no gradient, which no file says."""
    for name, layer in module.named_modules():
        if isinstance(layer, torch.nn.Embedding) and layer.padding_idx is not None:
            yield f"{name}.weight", layer.padding_idx


def _outputs(module: torch.nn.Module, sample: object) -> list[torch.Tensor]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch.cond's own
        return list(_tensors(module(**sample) if isinstance(sample, dict) else module(*sample)))


def _tensors(made: Any) -> Iterator[torch.Tensor]:
    if isinstance(made, torch.Tensor):
        yield made
        return
    for each in made if isinstance(made, tuple) else (made if isinstance(made, dict) else vars(made)).values():
        yield from _tensors(each)
