"""Pictures that are taken tile by tile, the last of which ends where the picture does."""

import torch
from torch import nn

import entrepot as ep


class Tiled(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(1, 2, 3, padding=1)

    def forward(self, x):
        length, tile = x.shape[-1], 8
        starts = list(range(0, length - tile, 4)) + [length - tile]  # noqa: RUF005 - as it is often written
        found = torch.zeros(x.shape[0], 2, length)
        count = torch.zeros_like(found)
        for start in starts:
            found[..., start : start + tile].add_(self.conv(x[..., start : start + tile]))
            count[..., start : start + tile].add_(1)
        return found.div_(count)


def test_a_loop_over_a_range_and_one_number_more_leaves_the_length_dynamic():
    module = Tiled().eval()
    model = ep.export(module, torch.randn(1, 1, 14), progress=False)
    assert not isinstance(model.inputs[0].shape[2], int)
    session = ep.Session(model, providers=["onnxruntime"])
    for length in (23, 17, 12):
        x = torch.randn(2, 1, length, generator=torch.Generator().manual_seed(length))
        (found,) = session.run({"x": x.numpy()}).values()
        torch.testing.assert_close(torch.from_numpy(found), module(x), rtol=1e-4, atol=1e-5)
