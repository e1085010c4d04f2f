"""``x[:3]`` may be fewer than three rows; a block that goes on with it makes three."""

import torch
from torch import nn

import entrepot as ep


class Centres(nn.Module):
    """Clusters, begun with the first rows, until they stay where they are."""

    def forward(self, x):
        centres = x[:3].clone()
        for _ in range(5):
            nearest = torch.cdist(x, centres).argmin(1)
            rows = []
            for number in range(3):
                mine = nearest == number
                if mine.any():
                    rows.append(x[mine].mean(0))
                else:
                    rows.append(centres[number])
            new = torch.stack(rows)
            if torch.allclose(new, centres, atol=1e-6):
                break
            centres = new
        return centres, nearest


def test_a_branch_that_goes_on_with_the_first_rows_leaves_the_axis_dynamic():
    module, x = Centres(), torch.randn(8, 2, generator=torch.Generator().manual_seed(0))
    model = ep.export(module, x, progress=False)
    assert not isinstance(model.inputs[0].shape[0], int)
    session = ep.Session(model, providers=["onnxruntime"])
    for rows in (15, 4):
        x = torch.randn(rows, 2, generator=torch.Generator().manual_seed(rows))
        for found, wanted in zip(session.run({"x": x.numpy()}).values(), module(x), strict=True):
            torch.testing.assert_close(torch.from_numpy(found), wanted, rtol=1e-3, atol=1e-4)
