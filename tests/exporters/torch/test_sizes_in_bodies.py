"""Sizes of what the bodies of branches and loops take."""

import torch
from torch import nn

import entrepot as ep


class Settling(nn.Module):
    """Takes the largest off each piece of three, until little changes; no name is known for the sum of their sizes."""

    def forward(self, x, *, step=3):  # TorchScript takes no keywords only
        for _ in range(3):
            pieces = [x[:, at : at + step] for at in range(0, x.shape[1], step)]
            y = torch.cat([piece - piece.amax(1, keepdim=True) for piece in pieces], 1) * 0.5
            if (y - x).abs().max() < 0.5:
                break
            x = y
        return x


def test_sizes_that_only_one_of_two_samples_tells_are_the_same_in_a_body():
    module = Settling().eval()
    model = ep.export(module, torch.randn(2, 6, 4))
    assert model.inputs[0].shape[:2] == ("batch", "x_dim1")
    for x in (torch.randn(3, 8, 4), torch.randn(1, 3, 4) * 9, torch.zeros(1, 7, 4)):
        (found,) = ep.Session(model).run({"x": x.numpy()}).values()
        torch.testing.assert_close(torch.from_numpy(found), module(x))
