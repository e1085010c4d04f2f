"""Packed sequences, during a capture: what would be packed stays padded, and layers are told how long each row is.

In place of the rows of all steps one after the other, ``PackedSequence.data`` is [step, row, ...]; how many rows there
are at each step is what it always is, and says how long each row is, since rows come sorted.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import nn
from torch.nn.utils.rnn import PackedSequence

from entrepot.exporters.torch.translations.projected import projected_lstm
from entrepot.exporters.torch.upstream import flat_weights, pack_padded, pad_packed


def pack(padded: torch.Tensor, lengths: torch.Tensor, batch_first: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """Steps first, with the number of rows at each step; ``lengths`` are sorted, the longest first."""
    data = padded.transpose(0, 1) if batch_first else padded
    most: Any = lengths[0].item()
    torch._check(most >= 1)  # noqa: SLF001 - documented
    torch._check(most <= data.shape[0])  # noqa: SLF001 - documented
    return data, (lengths.unsqueeze(0) > torch.arange(most).unsqueeze(1)).sum(1)


def pad(
    data: torch.Tensor, counts: torch.Tensor, batch_first: bool, padding_value: float, total_length: Any
) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows of ``total_length``, and how long each is."""
    lengths, steps = lengths_of(data, counts), data.shape[0]
    inside = torch.arange(steps).unsqueeze(1) < lengths
    value = torch.full((), padding_value, dtype=data.dtype)
    data = torch.where(inside.reshape(*inside.shape, *[1] * (data.dim() - 2)), data, value)
    if total_length is not steps and total_length is not counts.shape[0]:
        missing = torch.sym_max(total_length - steps, 0)
        data = F.pad(data, (0, 0) * (data.dim() - 1) + (0, missing), value=padding_value)
    data = data[:total_length]
    return (data.transpose(0, 1) if batch_first else data), lengths


def lengths_of(data: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
    """How long each row is."""
    return (counts.unsqueeze(0) > torch.arange(data.shape[1]).unsqueeze(1)).sum(1)


@contextlib.contextmanager
def padded_recurrences() -> Iterator[None]:
    """Inside, LSTM, GRU and RNN take packed sequences that are padded."""
    with contextlib.ExitStack() as stack:
        for kind in (nn.LSTM, nn.GRU, nn.RNN):
            stack.enter_context(mock.patch.object(kind, "forward", _taking_padded(kind.forward)))
        yield


def _taking_padded(forward: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(forward)
    def wrapper(self: Any, input: Any, hx: Any = None) -> Any:
        if not isinstance(input, PackedSequence) or input.data.dim() != 3:
            return forward(self, input, hx)
        return _recurrence(self, input, hx)

    return wrapper


def _recurrence(layer: Any, given: PackedSequence, hx: Any) -> Any:
    if layer.training and layer.dropout:
        raise NotImplementedError("a packed sequence in a layer with dropout in training")
    data, counts, order, back = given
    several = layer.mode == "LSTM"
    if hx is None:
        count = layer.num_layers * (2 if layer.bidirectional else 1)
        widths = [layer.proj_size or layer.hidden_size, layer.hidden_size][: 2 if several else 1]
        states = [data.new_zeros(count, data.shape[1], width) for width in widths]
    else:
        states = [_permuted(state, order) for state in (hx if several else [hx])]
    weights, lengths, both = flat_weights(layer), lengths_of(data, counts), layer.bidirectional
    if layer.proj_size:
        found, *final = projected_lstm(data, states, weights, layer.bias, both, False, lengths)
    else:
        found, *final = torch.ops.entrepot.recurrence(
            data, states, weights, layer.mode.lower(), layer.bias, layer.num_layers, both, False, lengths
        )
    final = [_permuted(state, back) for state in final]
    return PackedSequence(found, counts, order, back), tuple(final) if several else final[0]


def _permuted(state: torch.Tensor, order: torch.Tensor | None) -> torch.Tensor:
    return state if order is None else state.index_select(1, order)


REPLACEMENTS: dict[Any, Any] = {pack_padded: pack, pad_packed: pad}
