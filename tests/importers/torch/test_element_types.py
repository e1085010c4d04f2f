"""Layers of other element types than torch's own choice, in memory and as a folder."""

from __future__ import annotations

import runpy
from pathlib import Path

import onnx
import pytest
import torch
from torch import nn

import entrepot as ep


class Mixed(nn.Module):
    """A convolution in one type, what follows it in another."""

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.conv = nn.Conv1d(2, 4, 3)
        self.lstm = nn.LSTM(4, 3, dtype=dtype)
        self.norm, self.head = nn.LayerNorm(3, dtype=dtype), nn.Linear(3, 2, dtype=dtype)
        self.scale = nn.Parameter(torch.randn(2, dtype=dtype))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        steps = self.conv(x).permute(2, 0, 1).to(self.scale.dtype)
        return self.head(self.norm(self.lstm(steps)[0])) * self.scale


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64], ids=str)
def test_what_a_folder_loads_has_the_types_of_the_network(dtype: torch.dtype, tmp_path: Path) -> None:
    torch.manual_seed(0)
    original = Mixed(dtype).eval()
    x = torch.randn(2, 2, 9)
    net = ep.to_torch(ep.export(original, x, verify=False), source=tmp_path, verify=False)
    loaded = runpy.run_path(str(tmp_path / "model.py"))["load"]()
    kinds = {name: tensor.dtype for name, tensor in original.state_dict().items()}
    for module in (net, loaded):
        assert {name: tensor.dtype for name, tensor in module.state_dict().items()} == kinds
    with torch.no_grad():
        torch.testing.assert_close(loaded(x), net(x), rtol=0, atol=0)
        torch.testing.assert_close(loaded(x), original(x), rtol=16 * torch.finfo(dtype).eps, atol=1e-2)


@pytest.mark.parametrize("kind", ["FLOAT8E4M3FN", "FLOAT8E5M2", "BFLOAT16"])
def test_numbers_of_a_type_that_numpy_lacks_are_tensors(kind: str) -> None:
    stored = onnx.helper.make_tensor("z", onnx.TensorProto.DataType.Value(kind), [], [0.0])
    body = "q = QuantizeLinear(x, s, z)  y = DequantizeLinear(q, s, z)"
    if kind == "BFLOAT16":
        body = "a = CastLike(x, z)  b = Add(a, z)  y = CastLike(b, x)"
    proto = onnx.parser.parse_model(
        f'<ir_version: 9, opset_import: ["": 19]> g (float[N] x) => (float[N] y) <float s = {{0.5}}> {{ {body} }}'
    )
    proto.graph.initializer.append(stored)
    net = ep.to_torch(ep.load(proto))
    assert net.report is not None
    assert net.report.ok
    assert torch.equal(net(torch.tensor([0.5, 1.5, -56.0])), torch.tensor([0.5, 1.5, -56.0]))
