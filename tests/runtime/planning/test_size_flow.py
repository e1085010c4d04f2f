"""The shape of what is reshaped to sizes that the graph computes itself."""

from __future__ import annotations

import onnx
import pytest

import entrepot as ep
from entrepot.runtime.planning.lower import inferred_types

HEAD = """<ir_version: 10, opset_import: ["": 18]>
g (float[B, 4, S, 8] x, float[B, N, S] z, int64[1] k) => (float[P, Q, R] y) <int64[1] zero = {0}, int64[1] one = {1},
  int64[1] two = {2}, int64[1] minus = {-1}, int64[1] low = {-2}, int64[1] far = {9223372036854775807},
  int64[1] eight = {8}, int64 second = {2}, int64[2] flat = {-1, 8}, int64[4] as_is = {0, 0, 0, -1}>
{ s = Shape(x)  r = Shape(z)  b = Slice(s, zero, one)  e = Slice(s, minus, far)  l = Slice(s, low, minus)
"""

CASES = {
    "rows and columns": ("t = Concat<axis = 0>(minus, l, e)  y = Reshape(x, t)", (None, "S", 8)),
    "the rest is a number": ("t = Concat<axis = 0>(b, l, minus)  y = Reshape(x, t)", ("B", "S", 32)),
    "the rest is a name": ("t = Concat<axis = 0>(minus, l)  q = Slice(r, two, far)  u = Concat<axis = 0>(b, minus, q)"
                           " y = Reshape(z, u)", ("B", "N", "S")),
    "one name twice": ("t = Concat<axis = 0>(b, minus, b)  y = Reshape(z, t)", ("B", None, "B")),
    "a number times a name": ("y = Reshape(x, flat)", (None, 8)),
    "sizes by Gather": ("g = Gather(s, second)  h = Unsqueeze(g, zero)  t = Concat<axis = 0>(minus, h)  "
                        "y = Reshape(x, t)", (None, "S")),
    "sizes by Shape": ("h = Shape<start = 1, end = -1>(x)  t = Concat<axis = 0>(h, minus)  y = Reshape(x, t)",
                       (4, "S", None)),
    "cast and back": ("c = Cast<to = 6>(l)  d = Cast<to = 7>(c)  t = Concat<axis = 0>(minus, d)  y = Reshape(x, t)",
                      (None, "S")),
    "cast to what holds few sizes": ("c = Cast<to = 2>(l)  d = Cast<to = 7>(c)  t = Concat<axis = 0>(minus, d)"
                                     "  y = Reshape(x, t)", (None, None)),
    "what is fed": ("t = Concat<axis = 0>(k, b, minus)  y = Reshape(z, t)", (None, "B", None)),
    "kept by zero": ("y = Reshape(x, as_is)", ("B", 4, "S", 8)),
    "kept by a zero among others": ("t = Concat<axis = 0>(zero, minus, l)  y = Reshape(x, t)", ("B", 32, "S")),
    "zero is a size": ("t = Concat<axis = 0>(zero, one, l)  y = Reshape<allowzero = 1>(x, t)", (None, 1, "S")),
    "a name that is not there": ("n = Slice(r, one, two)  t = Concat<axis = 0>(n, minus, e)  y = Reshape(x, t)",
                                 ("N", None, 8)),
    "turned around": ("w = Slice(s, minus, minus, zero, minus)  f = Slice(s, far, minus, zero, minus)"
                      "  t = Concat<axis = 0>(e, minus)  y = Reshape(x, t)", (8, None)),
}  # fmt: skip


@pytest.mark.parametrize(("text", "shape"), CASES.values(), ids=CASES)
def test_the_shape_follows(text: str, shape: tuple[int | str | None, ...]) -> None:
    model = ep.load(onnx.parser.parse_model(HEAD + text + "}")).at_hub()
    model.ir.graph.outputs[0].shape = None
    known = {value.name: kind for value, kind in inferred_types(model.ir).items()}
    assert known["y"].shape == shape


def test_what_the_file_says_stays_and_what_it_leaves_open_is_filled_in() -> None:
    text = HEAD.replace("<int64[1] zero", "<float[M, ?, 32] p, int64[1] zero")
    text += "t = Concat<axis = 0>(b, l, minus)  p = Reshape(x, t)  q = Relu(p)  y = Neg(q) }"
    model = ep.load(onnx.parser.parse_model(text)).at_hub()
    known = {value.name: kind for value, kind in inferred_types(model.ir).items()}
    assert known["p"].shape == ("M", "S", 32)
    assert known["q"].shape == ("M", "S", 32)
