"""A size that a tensor holds is that size when it is read back."""

import numpy as np
import onnxruntime as ort
import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import nn

import entrepot as ep

WAYS = {
    "div": lambda size: torch.div(size, 8, rounding_mode="trunc"),
    "floor": lambda size: torch.div(size, 8, rounding_mode="floor").item(),
    "floor_divide": lambda size: torch.floor_divide(size, 8),
    "tensor": lambda size: torch.tensor(size).item() // 8,
    "scalar_tensor": lambda size: torch.scalar_tensor(size, dtype=torch.int64).item() // 8,
}


class Chunks(nn.Module):
    """Rows are padded to whole chunks, which then overlap by half."""

    def __init__(self, count):
        super().__init__()
        self._count = count

    def forward(self, x):
        x = F.pad(x, (0, 0, 0, -x.size(1) % 8))
        x = x.view(x.size(0), self._count(x.size(1)), 8, x.size(2))
        size, stride = list(x.size()), list(x.stride())
        size[1], stride[1] = size[1] * 2 - 1, stride[1] // 2
        y = x.as_strided(size, stride)
        return torch.einsum("bcxd,bcyd->bcxy", y, y)


@pytest.mark.parametrize("way", WAYS)
def test_a_size_that_a_tensor_holds_is_still_a_size(way):
    module = Chunks(WAYS[way])
    model = ep.export(module, (torch.linspace(-1, 1, 2 * 13 * 3).reshape(2, 13, 3),), progress=False)
    assert list(map(str, model.outputs[0].shape)) == ["batch", "2*((x_dim1 + 7)//8) - 1", "8", "8"]
    x = torch.linspace(-1, 2, 3 * 30 * 3).reshape(3, 30, 3)
    run = ort.InferenceSession(model.to_proto().SerializeToString(), providers=["CPUExecutionProvider"])
    np.testing.assert_allclose(run.run(None, {"x": x.numpy()})[0], module(x).numpy(), atol=1e-5)


class Overlapping(nn.Module):
    """Reads pairs of neighbours in memory, as it lies after a transposition or beside other elements."""

    def __init__(self, arrange):
        super().__init__()
        self.arrange = arrange

    def forward(self, x):
        y = self.arrange(x * 2)
        step = min(y.stride())
        return y.as_strided((y.numel() - 1, 2), (step, step), y.storage_offset())


@pytest.mark.parametrize(
    "arrange",
    [lambda y: y, lambda y: y.t(), lambda y: y.permute(1, 0)[None].permute(1, 0, 2), lambda y: y[1:]],
    ids=["as it is", "transposed", "with an axis more", "from the second row on"],
)
def test_memory_is_read_in_the_order_in_which_it_lies(arrange):
    module, x = Overlapping(arrange), torch.arange(12.0).reshape(3, 4)
    run = ort.InferenceSession(ep.export(module, x).to_proto().SerializeToString(), providers=["CPUExecutionProvider"])
    for given in (x, torch.linspace(-1, 1, 20).reshape(5, 4)):
        np.testing.assert_array_equal(run.run(None, {"x": given.numpy()})[0], module(given).numpy())


def test_memory_with_gaps_is_refused():
    with pytest.raises(ep.UnsupportedOpError, match="has gaps"):
        ep.export(Overlapping(lambda y: y[:, ::2]), torch.arange(12.0).reshape(3, 4))


class Told(nn.Module):
    """Sizes in tensors, however these are made."""

    def forward(self, x):
        levels = [list(part.shape[-2:]) for part in (x, x[..., ::2, ::2])]
        return (
            torch.as_tensor(levels, dtype=torch.int32),
            torch.as_tensor([x.shape[-1] / 2, 1, x.sum()]),
            torch.as_tensor(x.shape),
            x.new_tensor([x.shape[-2:]]),
            x.new_tensor(x.shape[-1], dtype=torch.int64),
            torch.as_tensor([1, 2.5]),
        )


class ToldByTypes(nn.Module):
    def forward(self, x):
        return torch.LongTensor([x.shape[-1], 2]), torch.Tensor([[x.shape[-2]]]), torch.FloatTensor((x.shape[-1],))


@pytest.mark.parametrize("module", [Told(), ToldByTypes()], ids=lambda module: type(module).__name__)
def test_sizes_in_tensors_stay_sizes(module):
    model = ep.export(module, torch.ones(1, 3, 8, 6), progress=False)
    assert "in parts" not in str(model)
    run = ort.InferenceSession(model.to_proto().SerializeToString(), providers=["CPUExecutionProvider"])
    for size in ((1, 3, 8, 6), (2, 3, 5, 12)):
        given = torch.full(size, 0.5)
        for found, wanted in zip(run.run(None, {"x": given.numpy()}), module(given), strict=True):
            np.testing.assert_array_equal(found, wanted.numpy(), strict=True)
