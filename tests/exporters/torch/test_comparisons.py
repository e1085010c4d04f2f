"""Comparisons of sizes that Python counts with, and sizes that are among some."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

import entrepot as ep
from entrepot.exporters.torch.rewriting.arithmetic import as_number
from tests.exporters.torch.test_control_flow import results


def padded(x: Tensor) -> Tensor:
    """To whole pieces, whose number has one more if something is left."""
    count, left = divmod(x.shape[1], 4)
    whole = torch.nn.functional.pad(x, (0, (4 - left) % 4))
    return whole.reshape(x.shape[0], count + (left > 0), 4).amax(2)


def compared(x: Tensor) -> Tensor:
    rows, columns = x.shape
    return x * (
        10 * (rows < columns)
        + 100 * (rows <= columns)
        + 1000 * (rows == columns)
        + 20 * (rows != columns)
        + int(rows > 3)
        + 2 * int(columns >= 3)
    )


def among(x: Tensor) -> Tensor:
    return x * 2 if x.shape[1] in (2, 3) else x - x.mean(1, keepdim=True)


def not_among(x: Tensor) -> Tensor:
    if x.shape[1] not in [x.shape[0], 7]:
        x = x + 1
    times = x.shape[1] // 4
    times += x.shape[1] % 4 > 0
    return x.cumsum(1) * times


@pytest.mark.parametrize("function", [padded, compared, among, not_among])
def test_both_axes_stay_dynamic(function):
    model = ep.export(function, torch.randn(2, 6), progress=False)
    assert not any(isinstance(size, int) for size in model.inputs[0].shape), str(model)
    for size in ((2, 6), (3, 2), (3, 3), (5, 4), (1, 7), (2, 8), (9, 9)):
        x = torch.randn(size)
        np.testing.assert_allclose(results(model, x)[0], function(x).numpy(), rtol=1e-5, atol=1e-6)


def test_tensors_and_plain_numbers_are_compared_as_python_does():
    assert as_number(3, "Gt", 2) is True
    assert torch.equal(as_number(torch.arange(3), "LtE", 1), torch.tensor([True, True, False]))
