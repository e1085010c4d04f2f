"""The oracle that says which conversions down must succeed."""

from __future__ import annotations

import itertools

import onnx_ir as ir
import pytest

from entrepot.ir.opset.schemas import histories
from tests.ir.opset.evaluate import parse
from tests.judges.expressible import VERDICTS, _rows, expressible

SHAPES = "float[2,3] x) => (float[2,3] y"
TOP2 = "k = Constant<value_ints = [2]>() y, i = TopK"
HALVES = "y, z = Split<num_outputs = 2>(x)"


def test_the_table_has_a_row_for_every_step_and_every_introduction() -> None:
    steps = set()
    for (domain, op_type), versions in histories().items():
        name = f"{domain}.{op_type}" if domain else op_type
        steps |= {(name, older, newer) for older, newer in itertools.pairwise(versions)}
        if versions[0] > 1:
            steps.add((name, None, versions[0]))
    assert set(_rows()) == steps


@pytest.mark.parametrize(
    ("body", "opset", "signature", "target", "verdict"),
    [
        ("y = Relu(x)", 14, SHAPES, 7, "certain"),
        ("y = Relu(x)", 14, "bfloat16[2,3] x) => (bfloat16[2,3] y", 12, "impossible"),
        ("y = Max(x, x)", 13, "int8[2,3] x) => (int8[2,3] y", 11, "conditional"),
        ("y = Gelu(x)", 20, SHAPES, 9, "certain"),
        ("y = Gelu(x)", 20, SHAPES, 8, "conditional"),
        ("y = Unique(x)", 13, "float[3] x) => (float[N] y", 10, "impossible"),
        ("y = TopK(x, k)", 11, "float[3] x, int64[1] k) => (float[N] y", 9, "impossible"),
        (f"{TOP2}(x, k)", 13, "float[3] x) => (float[2] y", 9, "certain"),
        (f"{TOP2}<largest = 0>(x, k)", 13, "float[3] x) => (float[2] y", 10, "conditional"),
        (HALVES, 18, "float[4] x) => (float[2] y, float[2] z", 13, "certain"),
        (HALVES, 18, "float[5] x) => (float[3] y, float[2] z", 13, "conditional"),
        ("y = Swish(x)", 24, SHAPES, 7, "certain"),
        (
            "y = MaxPool<kernel_shape = [2], ceil_mode = 1>(x)",
            10,
            "float[1,1,9] x) => (float[1,1,L] y",
            9,
            "conditional",
        ),
    ],
)
def test_a_node_is_what_its_rows_say(body: str, opset: int, signature: str, target: int, verdict: str) -> None:
    proto = ir.serde.serialize_model(parse(body, opset, signature).ir)
    assert expressible(proto, target) == verdict


def test_a_function_body_is_what_the_worst_of_its_nodes_is() -> None:
    body = "y = AffineGrid(x, s)"
    known = parse(body, 20, "float[1,2,3] x) => (float[A,B,C,2] y", stored="int64[4] s = {1, 1, 3, 3}")
    at = [expressible(ir.serde.serialize_model(known.ir), target) for target in (19, 7)]
    assert at[0] == "certain"
    assert VERDICTS.index(at[1]) > 0


def test_nodes_in_branches_and_local_functions_count() -> None:
    branch = "y = If(c) <then_branch = a () => (t) { t = Unique(x) }, else_branch = b () => (e) { e = Identity(x) }>"
    model = parse(branch, 13, "float[3] x, bool c) => (float[N] y")
    assert expressible(ir.serde.serialize_model(model.ir), 10) == "impossible"
    local = '<domain: "local", opset_import: ["": 13]> F (a) => (b) { b = Unique(a) }'
    called = parse("y = local.F(x)", 13, "float[3] x) => (float[N] y", functions=local, imports=', "local": 1')
    assert expressible(ir.serde.serialize_model(called.ir), 10) == "impossible"
