"""Arithmetic on sizes in Python, in branches and loops, and the words that take such numbers; each is proved."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
import torch

import entrepot as ep
from entrepot.importers.torch import proof
from entrepot.parity.untouched import Untouched
from tests.importers.torch.networks import HEAD
from tests.op_cases.normal import normal as f32

CONSTANTS = """
    int64 none = {0}, int64 one = {1}, int64 two = {2}, int64 three = {3}, int64 far = {9},
    int64[1] first = {1}, int64[1] last = {-1}, int64[1] nothing = {0}, int64[3] nothings = {0, 0, 0}, float zero = {0},
    int64[2] block = {1, 2}
"""

TEXTS = {
    "sizes of which some may be left open": (
        "h = Shape(x)  w = Shape(h)  ones = ConstantOfShape<value = int64[1] {1}>(w)  open = Mul(ones, last)  "
        "e = Equal(h, open)  c = Where(e, ones, h)  y = Expand(x, c)",
        "x.expand(N, T, 4)",
    ),
    "pads": (
        "h = Shape(x)  t = Gather(h, one)  r = Mod(t, three)  q = Unsqueeze(r, nothing)  "
        "p = Concat<axis = 0>(nothings, nothing, q, nothing)  y = Pad(x, p, zero)",
        "F.pad(x, (0, 0, 0, ",
    ),
    "columns": (
        "h = Shape(x)  t = Gather(h, two)  u = Add(t, one)  w = Unsqueeze(u, nothing)  "
        "image = Concat<axis = 0>(first, w)  y = Col2Im(x, image, block)",
        "F.fold(x, (1, ",
    ),
    "quotients of differences": (
        "h = Shape(x)  t = Gather(h, one)  a = Sub(t, far)  b = Sub(three, t)  g = Equal(b, none)  "
        "c = Where(g, one, b)  d = Div(a, c)  e = Div(t, c)  f = Div(a, two)  "
        "k = Add(d, e)  m = Add(k, f)  q = Cast<to = 1>(m)  y = Mul(x, q)",
        "abs(",
    ),
    "a size without its axis": (
        "h = Shape<start = 1, end = 2>(x)  t = Squeeze(h)  u = Add(t, one)  q = Cast<to = 1>(u)  y = Mul(x, q)",
        "T + 1",
    ),
    "the rank, as the standard's own normalisation asks for it": (
        "h = Shape(x)  rank = Size(h)  rest = Sub(rank, first)  tail = ConstantOfShape<value = int64[1] {1}>(rest)  "
        "lead = Slice(h, nothing, first)  kept = Concat<axis = 0>(lead, tail)  flat = Flatten(x)  "
        "m = ReduceMean(flat, first)  r = Reshape(m, kept)  y = Mul(x, r)",
        ", 1, 1)",
    ),
    "as many of the best as values say": (
        "m = ArgMax<axis = -1>(x)  n = ReduceMax<keepdims = 0>(m)  k = Add(n, one)  c = Min(k, three)  "
        "q = Unsqueeze(c, nothing)  y, i = TopK<axis = -1>(x, q)",
        ".item(), -1, True)",
    ),
    "as many numbers as values say": (
        "m = ArgMax<axis = -1>(x)  n = ReduceMax<keepdims = 0>(m)  r = Range(none, n, one)  s = ReduceSum(r)  "
        "q = Cast<to = 1>(s)  y = Mul(x, q)",
        "torch.arange(",
    ),
}


def loaded(text: str) -> ep.Model:
    body = f"g (float[N, 4, W] x) => (float[A, B, C] y) <{CONSTANTS}> {{ {text} }}"
    return ep.load(onnx.parser.parse_model(HEAD + body.replace("float[N, 4, W]", "float[N, T, 4]")))


@pytest.mark.parametrize(("text", "words"), TEXTS.values(), ids=TEXTS)
def test_numbers_are_computed_in_python(text: str, words: str) -> None:
    module = ep.to_torch(loaded(text), sample={"x": f32(2, 4, 4)})
    assert words in module.source()


BRANCHES = """
    h = Shape(x)  t = Gather(h, one)  few = Less(t, far)  most = Less(t, three)
    y = If(few) <
        then_branch = short () => (float[A, B, C] a) {
            u = Add(t, one)  d = Div(u, two)  p = Cast<to = 1>(d)  a = Mul(x, p)
        },
        else_branch = long () => (float[A, B, C] b) {
            v = Add(t, one)  e = Div(v, two)  q = Cast<to = 1>(e)  b = Sub(x, q)
        }
    >
"""


@pytest.mark.parametrize("length", [4, 12])
def test_what_a_branch_computes_is_not_read_in_the_other_one(length: int) -> None:
    model, x = loaded(BRANCHES), f32(2, length, 4)
    module = ep.to_torch(model, sample={"x": x})
    expected = ep.Session(model, providers=["reference"]).run({"x": x})["y"]
    np.testing.assert_allclose(module(torch.from_numpy(x)).numpy(), expected, rtol=1e-6)


LOOP = """
    y, parts = Loop(two, , x) <
        body = turn (n, going, z) => (on, w, s) {
            on = Identity(going)  f = Cast<to = 1>(n)  k = Unsqueeze(n, nothing)
            w = Add(z, f)  one_row = Gather<axis = -2>(w, k)  r = ArgMax<axis = -1, keepdims = 1>(one_row)
            m = Slice(w, nothing, first, last)  v = GatherElements<axis = -1>(one_row, r)
            c = ReduceSum<keepdims = 0>(m, last)  e = ReduceSum<keepdims = 0>(v, last)  s = Add(c, e)
        }
    >
"""


def test_loops_over_values_of_an_unknown_rank_are_in_words_of_torch() -> None:
    source = ep.to_torch(loaded(LOOP), sample={"x": f32(2, 4, 4)}).source()
    assert "TorchBackend" not in source
    assert "np." not in source
    assert ", [trip], :]" in source


WINDOWS = """
    h = Shape(x)  t = Gather(h, one)
    parts = Loop(t, , ) <
        body = turn (n, going) => (on, s) {
            on = Identity(going)  b = Unsqueeze(n, nothing)  e = Add(b, first)
            w = Slice(x, b, e, first)  s = ReduceSum<keepdims = 0>(w, first)
        }
    >
    y = Transpose<perm = [1, 0, 2]>(parts)
"""


def test_turns_that_cut_at_their_number_are_turns_of_python() -> None:
    source = ep.to_torch(loaded(WINDOWS), sample={"x": f32(2, 4, 4)}).source()
    assert "for trip in trips(" in source
    assert ".item()" not in source


def test_a_module_may_have_a_layer_called_source() -> None:
    class Pair(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.source, self.report = torch.nn.Linear(4, 4), torch.nn.Parameter(torch.randn(4))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.source(x) * self.report

    net, x = Pair().eval(), torch.randn(2, 4)
    module = ep.to_torch(ep.export(net, (x,)))
    assert module.load_state_dict(net.state_dict())
    torch.testing.assert_close(module(x), net(x))


def test_a_size_that_the_export_fixed_is_not_taken_otherwise() -> None:
    class Mean(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.sum(1) / x.shape[1]

    x = torch.randn(2, 5)
    module = ep.to_torch(ep.export(Mean(), (x,), dynamic={"x": ["batch"]}))
    torch.testing.assert_close(module(x[:1]), Mean()(x[:1]))
    with pytest.raises(RuntimeError, match=r"x.shape\[1\] must be 5"):
        module(torch.randn(2, 6))
    assert [spec.shape[1] for spec in ep.export(module, (x,)).inputs] == [5]


def test_a_size_that_the_source_refuses_needs_no_check() -> None:
    assert "must be" not in ep.to_torch(ep.export(torch.nn.Linear(5, 3), (torch.randn(2, 5),))).source()


def test_reference_decides_where_onnxruntime_alone_disagrees(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Untouched.run
    monkeypatch.setattr(Untouched, "run", lambda self, feeds: {"y": run(self, feeds)["y"] + 1})
    report = ep.to_torch(loaded("y = Mul(x, zero)")).report
    assert {each.verdict for each in report.runs if each.provider == "onnxruntime"} == {"noted"}
    monkeypatch.setattr(proof, "compare", lambda *_, **__: ep.compare(0.0, 1.0))
    with pytest.raises(ep.VerificationError, match="onnxruntime"):
        ep.to_torch(loaded("y = Mul(x, zero)"))


def test_the_largest_number_is_one_that_torch_takes() -> None:
    text = "g (float[N, 4] x) => (float[N, 4] y) <float most = {3.4028234e38}> { t = IsInf(x)  y = Where(t, most, x) }"
    module = ep.to_torch(onnx.parser.parse_model(HEAD + text))
    x = torch.tensor([[1.0, float("inf"), float("-inf"), 0.0]])
    assert module(x).max() == torch.finfo(torch.float32).max
