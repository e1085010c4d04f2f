"""Layers in plain lists and dicts, which ``eval()`` does not reach: what an export fails at may be their dropout."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from torch import nn

from entrepot.exporters.notes import listed
from entrepot.ir.errors import ConversionError, VerificationError

_OTHERWISE = (
    nn.AlphaDropout, nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.Dropout, nn.Dropout1d, nn.Dropout2d,
    nn.Dropout3d, nn.FeatureAlphaDropout, nn.InstanceNorm1d, nn.InstanceNorm2d, nn.InstanceNorm3d, nn.RReLU,
    nn.SyncBatchNorm,
)  # fmt: skip
"""Layers that compute something else in training mode."""

_DEPTH = 3  # of lists in lists, which may hold themselves


@contextlib.contextmanager
def told_of_layers(module: nn.Module) -> Iterator[None]:
    """Inside, an error says which layers of a module have been left in training mode, if there are any."""
    try:
        yield
    except (ConversionError, VerificationError) as error:
        names = list(_in_training(module))
        if names:
            several = len(names) > 1
            told = (
                f"{listed(names)} {'are' if several else 'is'} still in training mode, since eval() does not reach "
                f"layers in lists and dicts: keep {'them' if several else 'it'} in an nn.ModuleList or nn.ModuleDict"
            )
            error.hint = f"{told}; or else: {error.hint}" if error.hint else told
        raise


def _in_training(module: nn.Module) -> Iterator[str]:
    """Such layers by their places, ``encoder.layers[1]``, of modules that are in evaluation mode."""
    known = set(module.modules())
    for name, part in module.named_modules():
        if part.training:
            continue
        for attribute, value in vars(part).items():
            if isinstance(value, list | tuple | dict) and not attribute.startswith("_"):
                for place, layer in _layers(f"{name}.{attribute}" if name else attribute, value):
                    if layer not in known and any(map(_differs, layer.modules())):
                        yield place


def _layers(place: str, value: Any, depth: int = _DEPTH) -> Iterator[tuple[str, nn.Module]]:
    if isinstance(value, nn.Module):
        yield place, value
    elif isinstance(value, list | tuple | dict) and depth:
        for key, member in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _layers(f"{place}[{key!r}]", member, depth - 1)


def _differs(layer: nn.Module) -> bool:
    return layer.training and isinstance(layer, _OTHERWISE)
