"""Caches of a fixed size: keys and values are written into buffers, at the place of their tokens.

The caches of transformers are made of layers that concatenate what is new. Here the same layers write it into what they
hold, from a place on that a tensor says; what lies behind is left to the mask, which lets no token see later ones.
"""

from __future__ import annotations

import functools
from typing import Any

import torch

from entrepot.exporters.transformers.caches import Part

PAST_LENGTH = "past_length"
"""The input that says how many tokens caches of a fixed size hold."""


def writing(cache: Any, start: torch.Tensor) -> Any:
    """The cache with layers that write into what they hold.

    Args:
        cache: One of transformers; anything else is left as it is.
        start: The place that they write to, ``int64[1]``.
    """
    own = getattr(cache, "self_attention_cache", cache)
    for at, layer in enumerate(getattr(own, "layers", ())):
        if isinstance(getattr(layer, "keys", None), torch.Tensor):
            own.layers[at] = _twin(layer, start.reshape(()))
    return cache


def _twin(layer: Any, start: torch.Tensor) -> Any:
    """A layer with the attributes of another, which writes."""
    kind: Any = type(layer)
    twin: Any = object.__new__(_writing_class(kind))
    twin.__dict__.update(vars(layer) | {"start": start})
    return twin


def written(buffer: torch.Tensor, new: torch.Tensor, start: torch.Tensor) -> torch.Tensor:
    """A buffer with new tokens from a place on; tokens are on the axis before the last one."""
    axis = buffer.dim() - 2
    places: list[Any] = [torch.arange(size) for size in new.shape[: axis + 1]]
    places[axis] = places[axis] + start
    grid = tuple(place.reshape([-1] + [1] * (axis - at)) for at, place in enumerate(places))
    return buffer.index_put(grid, new)


def fitted(tensor: torch.Tensor, part: Part, capacity: int) -> torch.Tensor:
    """A tensor of a growing cache as a buffer; what is in the rest of it must not matter, so it is not zero."""
    if part.growing is None:
        return tensor
    shape = list(tensor.shape)
    shape[part.growing] = capacity - shape[part.growing]
    return torch.cat([tensor, torch.ones(shape, dtype=tensor.dtype)], part.growing)


class _Writing:
    """A layer whose keys and values are buffers."""

    is_compileable = True
    _layer_type = None  # transformers enters subclasses into its tables by this
    keys: torch.Tensor
    values: torch.Tensor
    start: torch.Tensor

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *_: Any, **__: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Write, and return the whole buffers."""
        self.keys = written(self.keys, key_states, self.start)
        self.values = written(self.values, value_states, self.start)
        self.start = self.start + key_states.shape[-2]
        return self.keys, self.values

    def get_seq_length(self) -> torch.Tensor:
        """How many tokens there are, as a tensor: arithmetic of positions goes on in the graph."""
        return self.start

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """The whole buffer is looked at."""
        return self.keys.shape[-2], 0

    def get_max_length(self) -> int:
        """How many tokens there is room for."""
        return self.keys.shape[-2]


@functools.cache
def _writing_class(kind: type) -> type:
    return kind if issubclass(kind, _Writing) else type(f"Writing{kind.__name__}", (_Writing, kind), {})
