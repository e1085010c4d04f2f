"""``TransformerEncoder`` returns zeros at padded positions where torch runs it on nested tensors; so do graphs."""

import numpy as np
import pytest
import torch
from torch import nn

import entrepot as ep


class Encoder(nn.Module):
    def __init__(self, norm=None, **how):
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, **how)
        self.encoder = nn.TransformerEncoder(layer, 2, norm=norm)

    def forward(self, x, mask):
        return self.encoder(x, src_key_padding_mask=mask)


def call(batch, length, padded):
    mask = torch.zeros(batch, length, dtype=torch.bool)
    for row, column in padded:
        mask[row, column] = True
    return torch.randn(batch, length, 8, generator=torch.Generator().manual_seed(batch)), mask


CALLS = [call(2, 5, [(0, 4), (1, 3), (1, 4)]), call(1, 6, [(0, 5)]), call(3, 4, []), call(2, 5, [(0, 1), (1, 4)])]
"""The last one has padding inside, which torch does not drop."""


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors", "ignore:enable_nested_tensor is True")
@pytest.mark.parametrize("how", [{}, {"norm": nn.LayerNorm(8)}, {"norm_first": True}], ids=str)
def test_padded_positions_are_what_inference_makes_of_them(how):
    torch.manual_seed(0)
    module = Encoder(**how).eval()
    hooks = [len(part._forward_hooks) for part in module.modules()]
    model = ep.export(module, CALLS[0])
    assert [len(part._forward_hooks) for part in module.modules()] == hooks
    session = ep.Session(model)
    for x, mask in CALLS:
        with torch.no_grad():
            expected = module(x, mask).numpy()
        result = session.run([x.numpy(), mask.numpy()])["output"]
        np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)
