"""Numbers that depend on whether a size is a multiple: padding as TensorFlow does it, layer after layer."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import nn

import entrepot as ep


class Padded(nn.Module):
    """Each convolution is padded by what is left of the size where its stride does not divide it."""

    def __init__(self, strides: tuple[int, ...], kernel: int = 3) -> None:
        super().__init__()
        widths = [3, *[8] * len(strides)]
        self.convs = nn.ModuleList(
            nn.Conv2d(before, 8, kernel, stride) for before, stride in zip(widths, strides, strict=False)
        )
        self.norm = nn.BatchNorm2d(8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for conv in self.convs:
            x = self.norm(conv(F.pad(x, [*_around(x.shape[-1], conv), *_around(x.shape[-2], conv)])))
        return x


def _around(size: int, conv: nn.Conv2d) -> tuple[int, int]:
    kernel, stride = conv.kernel_size[0], conv.stride[0]
    if size % stride == 0:
        whole = max(kernel - stride, 0)
    else:
        whole = max(kernel - size % stride, 0)
    return whole // 2, whole - whole // 2


@pytest.mark.parametrize(
    ("strides", "kernel"),
    [((2, 1, 2, 2), 3), ((3, 2), 5), ((4,), 3)],
    ids=["halved thrice", "by three and two", "by more than the kernel"],
)
def test_sizes_vary_whether_strides_divide_them_or_not(strides: tuple[int, ...], kernel: int) -> None:
    module = Padded(strides, kernel).eval()
    model = ep.export(module, torch.randn(1, 3, 24, 48), progress=False)
    assert model.inputs[0].shape == ("batch", 3, "height", "width")
    session = ep.Session(model)
    for height, width in ((24, 48), (25, 49), (26, 31), (27, 50), (61, 28)):
        x = torch.randn(2, 3, height, width)
        with torch.no_grad():
            expected = module(x).numpy()
        np.testing.assert_allclose(session.run([x.numpy()])["output"], expected, atol=1e-5)
