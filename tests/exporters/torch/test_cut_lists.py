"""Lists that a loop has made, cut where a number says: Python counts negative ones from the end, and takes any."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnxruntime
import pytest
import torch

import entrepot as ep


def _summed(rows, start):
    for row in rows:
        start = start * 0.5 + row
    return start


def first(x, count):
    rows = [x[:, at] * 2 for at in range(x.shape[1])]
    return _summed(rows[:count], torch.zeros(x.shape[0]))


def backwards(x, count):
    rows = [x[:, at] * 2 for at in range(x.shape[1])]
    return _summed(reversed(rows[: int(count)]), torch.zeros(x.shape[0]))


def every_second(x, count):
    rows = [x[:, at] * 2 for at in range(x.shape[1])]
    return _summed(rows[count::2], torch.zeros(x.shape[0]))


def around(x, count):
    rows = [x[:, at] * 2 for at in range(x.shape[1])]
    return _summed(rows[count - 1 : count + 2], torch.zeros(x.shape[0])) * len(rows[:count])


def last(x, count):
    """Of three at most, as there may be fewer."""
    rows = [x[:, at] * 2 for at in range(x.shape[1])]
    return _summed(rows[-3:], torch.zeros(x.shape[0])) * count


def written_out(x, count):
    rows = [x.sum(1), x.mean(1), x.amax(1)]
    return _summed(rows[:count], torch.zeros(x.shape[0])) + torch.stack((x, x * 2)[: 1 + abs(count)]).sum((0, 2))


@pytest.mark.parametrize("function", [first, backwards, every_second, around, last, written_out])
def test_a_list_is_cut_as_python_cuts_it(function: Callable[..., torch.Tensor]) -> None:
    model = ep.export(function, (torch.randn(2, 5), torch.tensor(3)), progress=False)
    assert all(isinstance(size, str) for size in model.inputs[0].shape)
    session, proto = ep.Session(model), model.to_proto().SerializeToString()
    other = onnxruntime.InferenceSession(proto, providers=["CPUExecutionProvider"])
    for length in (1, 2, 5, 7):
        for count in (0, 1, 4, 9, -1, -3, -9):
            x, number = torch.randn(3, length), torch.tensor(count)
            feeds = {"x": x.numpy(), "count": number.numpy()}
            expected = function(x, number).numpy()
            np.testing.assert_allclose(next(iter(session.run(feeds).values())), expected, rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(other.run(None, feeds)[0], expected, rtol=1e-5, atol=1e-6)


def test_one_number_in_a_tensor_is_that_number() -> None:
    model = ep.export(first, (torch.randn(2, 5), torch.tensor([True])), progress=False)
    x = torch.randn(3, 6)
    for count in (True, False):
        (found,) = ep.Session(model).run({"x": x.numpy(), "count": np.array([count])}).values()
        np.testing.assert_allclose(found, first(x, torch.tensor([count])).numpy(), rtol=1e-5)
