"""Memory of operands that are read no more: it is taken only once nothing else can see it."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest

import entrepot as ep
from tests.op_cases.normal import normal as f32

READ_BEFORE = "a = Abs(x)  n = Neg(a)  y = Add(a, x)  z = Identity(n)"
VIEWED = "a = Abs(x)  t = Transpose<perm = [1, 0]>(a)  y = Add(a, x)  z = Transpose<perm = [1, 0]>(t)"
CAPTURED = """a = Abs(x)
z = If (c) <
    then_branch = yes () => (float[3, 4] u) { u = Neg(a) },
    else_branch = no () => (float[3, 4] v) { v = Identity(a) }
>
y = Add(a, x)"""
TWICE = "a = Abs(x)  z = Neg(x)  y = Add(a, a)"
BODIES = {"read before": READ_BEFORE, "viewed": VIEWED, "captured": CAPTURED, "twice": TWICE}


def model(body: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(
        f"""<ir_version: 10, opset_import: ["": 22]>
        g (float[3, 4] x, bool c) => (float[3, 4] y, float[3, 4] z) {{ {body} }}"""
    )


@pytest.mark.parametrize("provider", ["cpu", "torch"])
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_results_that_share_memory_are_all_right(body: str, provider: str) -> None:
    feeds = {"x": f32(3, 4), "c": np.array(False)}
    got = ep.Session(ep.load(model(body)), providers=[provider]).run(feeds)
    expected = ep.Session(ep.load(model(body)), providers=["reference"]).run(feeds)
    for name, value in expected.items():
        np.testing.assert_array_equal(got[name], value)


@pytest.mark.parametrize(("body", "taken"), [(READ_BEFORE, True), (VIEWED, False), (CAPTURED, False), (TWICE, False)])
def test_the_last_reader_takes_what_the_others_keep_no_view_of(body: str, taken: bool) -> None:
    source = ep.Session(ep.load(model(body)), providers=["cpu"]).source()
    assert ("add(a, x, a)" in source) == taken
