"""Lists that a loop has made, which a branch gives something more: what is left over, or a summary."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch

import entrepot as ep


def remainder(x: torch.Tensor) -> Any:
    """The means of three steps each, and of what is left."""
    means, at = [], 0
    while (end := at + 3) <= x.shape[1]:
        means.append(x[:, at:end].mean(1))
        at = end
    if (rest := x.shape[1] - at) > 0:
        means.append(x[:, -rest:].mean(1))
    return torch.stack(means, 1), len(means)


def pieces(x: torch.Tensor) -> Any:
    """Pieces of three and a shorter one, one after the other."""
    found = []
    for at in range(x.shape[1] // 3):
        found.append(x[:, 3 * at : 3 * at + 3].cumsum(1))
    if x.shape[1] % 3:
        found.append(x[:, -(x.shape[1] % 3) :].cumsum(1))
    return torch.cat(found, 1)


def several(x: torch.Tensor) -> Any:
    """Two more, of other sizes."""
    found = [x[:, at : at + 2] for at in range(0, x.shape[1] - 1, 2)]
    if x.shape[1] % 2 == 1:
        found.append(x[:, -1:])
        found.append(x[:, :1])
    return torch.cat(found, 1), len(found)


def values(x: torch.Tensor) -> Any:
    """A list of tensors and one of numbers, where data decide; the one is given something at its beginning."""
    rows, names = [], []
    for at in range(x.shape[1]):
        rows.append(x[:, at])
        names.append(at)
    if x.sum() > 0:
        rows.insert(0, x[:, 0] * 2)
        names.append(7)
    return torch.stack(rows, 1), torch.tensor(names)


def joined(x: torch.Tensor) -> Any:
    """Another list, that is made of it."""
    rows, total = [], [x.sum(1)]
    for at in range(x.shape[1]):
        rows.append(x[:, at])
    if x.shape[1] % 2:
        rows = rows + total
    for row in rows:
        x = x + row[:, None]
    return x


@pytest.mark.parametrize("function", [remainder, pieces, several, values, joined])
def test_a_list_that_a_loop_has_made_is_given_more_in_one_arm(function: Callable[..., Any]) -> None:
    model = ep.export(function, torch.randn(2, 10, 4), progress=False)
    assert all(isinstance(size, str) for size in model.inputs[0].shape)
    assert "captured with its branches and loops rewritten" in str(model)
    other = onnxruntime.InferenceSession(model.to_proto().SerializeToString(), providers=["CPUExecutionProvider"])
    for length in (3, 4, 5, 12, 13):
        for sign in (1, -1):
            x = sign * torch.rand(3, length, 2, generator=torch.Generator().manual_seed(length))
            expected = function(x)
            feeds = {"x": x.numpy()}
            for found in (ep.Session(model).run(feeds).values(), other.run(None, feeds)):
                for one, value in zip(expected if isinstance(expected, tuple) else [expected], found, strict=True):
                    np.testing.assert_allclose(value, np.asarray(one), rtol=1e-5, atol=1e-6)
