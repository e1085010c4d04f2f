"""Padded positions of encoders: the file gives what the module gives without gradients."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import entrepot as ep


class Encoder(nn.Module):
    def __init__(self, *, norm: bool = False, **options: bool) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.net = nn.TransformerEncoder(layer, 2, norm=nn.LayerNorm(8) if norm else None, **options)
        nn.init.normal_(self.net.norm.bias) if norm else None

    def forward(self, x: torch.Tensor, padding: torch.Tensor) -> torch.Tensor:
        return self.net(x, src_key_padding_mask=padding)


def _padding(lengths: list[int], *, first: bool = False) -> torch.Tensor:
    padding = torch.arange(max(lengths))[None] >= torch.tensor(lengths)[:, None]
    return padding.flip(1) if first else padding


@pytest.mark.filterwarnings("ignore:.*nested")
@pytest.mark.parametrize(
    ("encoder", "padding"),
    [
        (Encoder(), _padding([5, 3])),
        (Encoder(), _padding([5, 3], first=True)),
        (Encoder(), _padding([5, 5])),
        (Encoder(), torch.zeros(2, 5).masked_fill(_padding([5, 2]), float("-inf"))),
        (Encoder(norm=True), _padding([5, 3, 1])),
        (Encoder(enable_nested_tensor=False), _padding([5, 3])),
    ],
    ids=["at the end", "at the start", "none", "as floats", "with a norm", "computed"],
)
def test_padding_is_what_it_is_in_inference(encoder, padding):
    x = torch.randn(*padding.shape, 8)
    model = ep.export(encoder, (x, padding), progress=False)
    assert type(encoder.net) is nn.TransformerEncoder
    with torch.no_grad():
        expected = encoder.eval()(x, padding)
    (found,) = ep.Session(model, providers=["onnxruntime"]).run((x.numpy(), padding.numpy())).values()
    np.testing.assert_allclose(found, expected.numpy(), rtol=1e-4, atol=1e-5)


def test_a_switch_that_is_off_stays_off():
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        encoder, padding = Encoder().eval(), _padding([5, 3])
        x = torch.randn(2, 5, 8)
        model = ep.export(encoder, (x, padding), progress=False)
        with torch.no_grad():
            expected = encoder(x, padding)
    finally:
        torch.backends.mha.set_fastpath_enabled(True)
    assert expected[1, 4].abs().max() > 0
    (found,) = ep.Session(model, providers=["onnxruntime"]).run((x.numpy(), padding.numpy())).values()
    np.testing.assert_allclose(found, expected.numpy(), rtol=1e-4, atol=1e-5)


class Causal(nn.Module):
    """A transformer whose mask is made for the length it is given, as booleans or as numbers."""

    def __init__(self, numbers):
        super().__init__()
        self.net, self.numbers = nn.Transformer(8, 2, 1, 1, 16, 0.0, batch_first=True), numbers

    def forward(self, x, y):
        size = y.shape[1]
        later = torch.ones(size, size, dtype=torch.bool).triu(1)
        mask = nn.Transformer.generate_square_subsequent_mask(size) if self.numbers else later
        return self.net(x, y, tgt_mask=mask)


@pytest.mark.parametrize("numbers", [True, False])
def test_a_causal_mask_of_any_length_is_one_in_the_file(numbers):
    module = Causal(numbers).eval()
    model = ep.export(module, (torch.randn(2, 5, 8), torch.randn(2, 4, 8)), progress=False)
    assert model.report
    x, y = torch.randn(3, 7, 8), torch.randn(3, 6, 8)
    with torch.no_grad():
        expected = module(x, y)
    (found,) = ep.Session(model, providers=["onnxruntime"]).run((x.numpy(), y.numpy())).values()
    np.testing.assert_allclose(found, expected.numpy(), rtol=1e-4, atol=1e-5)
