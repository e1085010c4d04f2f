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
