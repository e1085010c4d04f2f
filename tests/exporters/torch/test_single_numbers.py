"""Single numbers that a module computes with tensors, of sizes and of its own buffers."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import nn

import entrepot as ep
from entrepot.exporters.torch.capture.numbers import Ratio, computed

ONE = {"ceil", "floor", "neg", "negative", "__neg__", "long", "int", "float", "double"}
TWO = {"add", "sub", "rsub", "mul", "div", "floor_divide", "remainder", "fmod", "__rsub__", "__truediv__", "__mod__"}
TWO |= {"__radd__", "__rtruediv__", "__floordiv__", "__rfloordiv__", "lt", "le", "gt", "ge", "eq", "ne", "__lt__"}


@pytest.mark.parametrize("name", sorted(ONE | TWO))
@pytest.mark.parametrize("first", [7, 6, 0, 2.5, -1.5])
def test_numbers_are_computed_as_torch_does(name, first):
    operands = [first] if name in ONE else [first, 3]
    if name == "__rfloordiv__" and first == 0:
        assert computed(name, operands, {}, torch.int64) is None  # torch fails
        return
    tensors = [torch.tensor(value) for value in operands]
    function = getattr(torch, name) if name == "rsub" else getattr(torch.Tensor, name)
    wanted = function(*tensors)
    found = computed(name, operands, {}, wanted.dtype)
    if name == "__rtruediv__" and first == 0:
        assert found is None
    elif isinstance(found, Ratio):
        assert found.top / found.bottom == pytest.approx(wanted.item(), rel=1e-6)
        assert wanted.is_floating_point()
    else:
        assert found == wanted.item()
        assert isinstance(found, type(wanted.item()))


def test_what_is_rounded_or_wraps_is_left_alone():
    assert computed("div", [7, 2], {"rounding_mode": "trunc"}, torch.int64) is None
    assert computed("div", [7, 2], {"rounding_mode": "floor"}, torch.int64) == 3
    assert computed("add", [200, 100], {}, torch.uint8) is None
    assert computed("add", [1, 2], {"alpha": 3}, torch.int64) is None
    assert computed("sin", [1.0], {}, torch.float32) is None
    assert computed("mul", [7, 0.1], {}, torch.float32) is None
    assert computed("add", [7, float("nan")], {}, torch.float32) is None


class Halves(nn.Module):
    """A length in a tensor, from which places are reckoned."""

    def forward(self, x):
        length = torch.tensor(x.shape[1])
        left = torch.fmod(length, torch.tensor(4)).item()
        return x[:, (length // 2).item() :], x[:, : torch.ceil(length / 3).long()], x.repeat_interleave(left + 1, 1)


class Framed(nn.Module):
    """A signal, padded until its frames fit; their width and distance are buffers, as in audio codecs."""

    def __init__(self):
        super().__init__()
        self.register_buffer("stride", torch.tensor(3), persistent=False)
        self.register_buffer("width", torch.tensor(5), persistent=False)

    def forward(self, x):
        length = x.shape[-1]
        frames = torch.ceil((length - self.width) / self.stride + 1).to(torch.int64) - 1
        extra = frames * self.stride + self.width - length
        padded = F.pad(x, (self.width - self.stride, extra + 3))
        return padded[..., : length + self.stride], padded.unfold(-1, 5, 3)


@pytest.mark.parametrize("module", [Halves(), Framed()], ids=["halves", "framed"])
def test_sizes_stay_dynamic_through_tensors_of_one_number(module):
    model = ep.export(module.eval(), torch.randn(2, 9))
    assert model.inputs[0].shape == ("batch", "x_dim1")
    assert not any(note.startswith("captured") for note in model.notes)  # as it is, with all that is known of it
    assert all("x_dim1" in str(output.shape[1]) for output in model.outputs)
    session = onnxruntime.InferenceSession(model.to_proto().SerializeToString())
    for sizes in ((2, 9), (3, 14), (1, 7), (2, 31)):
        x = torch.randn(sizes)
        for found, wanted in zip(session.run(None, {"x": x.numpy()}), module(x), strict=True):
            assert np.array_equal(found, wanted.numpy())


class Counting(nn.Module):
    """Changes numbers in place, once through a view."""

    def forward(self, x):
        length = torch.tensor(x.shape[1])
        length += 1
        before = length.clone()
        length.add_(2)
        length.view(1)[0] = length + 1
        return x.new_zeros(length.item()), x.new_zeros(int(before))


def test_numbers_that_are_changed_in_place_are_not_taken_for_what_they_were():
    model = ep.export(Counting(), torch.randn(2, 9))
    for length in 9, 5, 20:
        found = ep.Session(model).run({"x": np.zeros((2, length), np.float32)})
        assert [value.shape for value in found.values()] == [(length + 4,), (length + 1,)]
