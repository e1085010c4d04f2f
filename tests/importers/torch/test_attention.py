"""Attention that a file spells out becomes torch's, where that computes the same for every mask."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import entrepot as ep
from tests.importers.torch.networks import model

_BEGIN = """
g (float[2,2,3,4] q, float[2,2,5,4] k, float[2,2,5,4] v, {type}[1,1,3,5] mask) => (float[2,2,3,4] y)
<float zero = {{0}}, float half = {{0.5}}, float low = {{-3.4e38}}, float one = {{1}}, float inf = {{-inf}}> {{
 t = Transpose<perm=[0,1,3,2]>(k)
 products = MatMul(q, t)
 s = Mul(products, half)
"""
ENDS = {
    "plain": " p = Softmax<axis=-1>(s2)\n y = MatMul(p, v)\n}",
    "guarded": " e = Softmax<axis=-1>(s2)\n n = IsNaN(e)\n p = Where(n, zero, e)\n y = MatMul(p, v)\n}",
}
MASKS = {
    "none": ("bool", " s2 = Identity(s)\n"),
    "added": ("float", " s2 = Add(s, mask)\n"),
    "chosen, finite": ("bool", " a = Where(mask, zero, low)\n s2 = Add(s, a)\n"),
    "chosen, infinite": ("bool", " a = Where(mask, zero, inf)\n s2 = Add(s, a)\n"),
    "counted": ("bool", " c = Cast<to=1>(mask)\n d = Sub(one, c)\n a = Mul(d, low)\n s2 = Add(s, a)\n"),
    "put in": ("bool", " s2 = Where(mask, low, s)\n"),
}
FUSED = {("none", "plain"), ("chosen, finite", "plain"), ("counted", "plain"), ("added", "guarded")}
FUSED |= {("chosen, finite", "guarded"), ("chosen, infinite", "guarded"), ("counted", "guarded"), ("none", "guarded")}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("mask", MASKS)
def test_queries_that_see_nothing_get_what_the_file_gives_them(mask: str, end: str) -> None:
    kind, text = MASKS[mask]
    file = model(_BEGIN.format(type=kind) + text + ENDS[end])
    net = ep.to_torch(file, verify=False)
    assert ("scaled_dot_product_attention" in net.source()) == ((mask, end) in FUSED)
    rng = np.random.default_rng(0)
    feeds = {name: rng.standard_normal((2, 2, size, 4), np.float32) for name, size in (("q", 3), ("k", 5), ("v", 5))}
    seen = np.ones((1, 1, 3, 5), bool)
    seen[0, 0, 1], seen[0, 0, 2, :2] = False, False
    feeds["mask"] = seen if kind == "bool" else np.where(seen, 0, -np.inf).astype(np.float32)
    expected = ep.Session(file, providers=["reference"]).run(feeds)["y"]
    with torch.no_grad():
        made = net(*(torch.from_numpy(feeds[name]) for name in [spec.name for spec in file.inputs]))
    np.testing.assert_allclose(made.numpy(), expected, rtol=1e-5, atol=1e-6)


_COUNTED = """
g (float[2,2,3,4] q, float[2,2,5,4] k, float[2,2,5,4] v, bool[1,1,3,5] mask) => (float[2,2,3,4] y)
<float zero = {{0}}, float half = {{0.5}}, float inf = {{-inf}}, int64 least = {{{least}}}, int64[1] axis = {{-1}},
 float low = {{{low}}}> {{
 t = Transpose<perm=[0,1,3,2]>(k)  h = Mul(q, half)  s = MatMul(h, t)  a = Where({of}, zero, low)
 n = Not(mask)  c = Cast<to=7>(mask)  d = ReduceSum(c, axis)  sees = Greater(d, least)  b = Where(sees, a, zero)
 s2 = Add(s, b)  p = Softmax<axis=-1>(s2)  f = Cast<to=1>(sees)  w = Mul(p, f)  y = MatMul(w, v) }}"""


@pytest.mark.parametrize(
    ("least", "low", "of", "fused"),
    [(0, "-inf", "mask", True), (3, "-inf", "mask", False), (0, "-1", "mask", False), (0, "-inf", "n", False)],
)
def test_weights_that_are_set_to_zero_where_nothing_is_seen(least: int, low: str, of: str, fused: bool) -> None:
    """As our exporter writes a mask of truths; what only looks like it stays as it is."""
    file = model(_COUNTED.format(least=least, low=low, of=of))
    net = ep.to_torch(file, verify=False)
    assert ("attn_mask=mask" in net.source()) == fused
    rng = np.random.default_rng(0)
    feeds = {name: rng.standard_normal((2, 2, size, 4), np.float32) for name, size in (("q", 3), ("k", 5), ("v", 5))}
    feeds["mask"] = np.ones((1, 1, 3, 5), bool)
    feeds["mask"][0, 0, 1], feeds["mask"][0, 0, 2, :2] = False, False
    expected = ep.Session(file, providers=["onnxruntime"]).run(feeds)["y"]
    with torch.no_grad():
        made = net(*(torch.from_numpy(feeds[name]) for name in [spec.name for spec in file.inputs]))
    np.testing.assert_allclose(made.numpy(), expected, rtol=1e-5, atol=1e-6)


class Temperature(nn.Module):
    """Attention whose scale is trained."""

    def __init__(self, on: str) -> None:
        super().__init__()
        self.t, self.on = nn.Parameter(torch.tensor(0.3)), on

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        query, by = (q * self.t, 1) if self.on == "queries" else (q, self.t)
        return torch.softmax(query @ k.transpose(-1, -2) * by, -1) @ v


@pytest.mark.parametrize("on", ["queries", "scores"])
def test_a_scale_that_is_trained_stays_a_parameter(on: str) -> None:
    q, k, v = (torch.randn(2, 3, 5, 8) for _ in range(3))
    original = Temperature(on).eval()
    net = ep.to_torch(ep.export(original, (q, k, v), progress=False))
    assert list(dict(net.named_parameters())) == ["t"]
    net(q, k, v).sum().backward()
    original(q, k, v).sum().backward()
    torch.testing.assert_close(net.t.grad, original.t.grad)
