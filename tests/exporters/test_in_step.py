"""Axes that take all sizes only together belong together."""

import numpy as np
import torch
from torch import nn

import entrepot as ep


class Square(nn.Module):
    """Patches of two by two, put together as a square, as diffusion transformers do."""

    def forward(self, x):
        tokens = nn.functional.avg_pool2d(x, 2).flatten(2)
        side = int(tokens.shape[2] ** 0.5)
        return tokens.reshape(x.shape[0], -1, side, side).transpose(2, 3)


def test_height_and_width_of_a_square_are_one_size():
    model = ep.export(Square(), (torch.randn(2, 3, 8, 8),))
    _, _, height, width = model.inputs[0].shape
    assert height == width
    assert isinstance(height, str)
    x = torch.randn(1, 3, 12, 12)
    expected = nn.functional.avg_pool2d(x.double(), 2).transpose(2, 3).numpy()
    np.testing.assert_allclose(ep.Session(model).run([x.numpy()])["output"], expected, rtol=1e-5, atol=1e-6)
