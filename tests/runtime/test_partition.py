from __future__ import annotations

import numpy as np
import onnx
import pytest

import entrepot as ep
from entrepot.ir.errors import ModelFormatError
from entrepot.runtime.order import in_order
from tests.judges.agreement import assert_close
from tests.judges.bounds import LIBRARY, unit

HEAD = '<ir_version: 10, opset_import: ["": 28]>\n'


def model(text: str) -> ep.Model:
    return ep.load(onnx.parser.parse_model(HEAD + text))


TEXT = """g (float[2, 2] x) => (float[2, 2] y) <float[2, 2] w = {1.0, 2.0, 3.0, 4.0}> {
    [fold] v = Add(w, w)
    [product] p = MatMul(x, v)
    [body] s = Mish(p)
    [last] y = Sub(s, x)
}"""


def test_the_plan_says_what_became_of_every_node() -> None:
    rows = ep.Session(model(TEXT)).plan().placements
    assert [row.op_type for row in rows] == ["Add", "MatMul", "Mish", "Sub"]
    assert all(row.provider == "cpu" for row in rows)
    assert [row.how for row in rows][:2] == ["folded", "prepared"]
    assert rows[3].how == "native"


def test_the_plan_prints_as_a_table() -> None:
    lines = str(ep.Session(model(TEXT)).plan()).splitlines()
    assert lines[0].split() == ["node", "operator", "provider", "how", "declined", "by"]
    assert lines[2].startswith("node 'product' (MatMul, opset 28)")


def test_the_profile_counts_every_kernel() -> None:
    profile = ep.Session(model(TEXT)).profile({"x": np.ones((2, 2), np.float32)})
    assert sum(row.calls for row in profile.rows) >= 3
    assert profile.total > 0
    assert "MatMul" in str(profile)


def test_other_providers_have_no_profile() -> None:
    with pytest.raises(ep.InputError, match="runs on cpu alone"):
        ep.Session(model(TEXT), providers=["reference"]).profile({"x": np.ones((2, 2), np.float32)})


def test_a_right_order_is_kept_and_a_wrong_one_mended_stably() -> None:
    graph = model("g (float[2] x) => (float[2] y) { [a] p = Exp(x) [b] q = Sin(x) [c] y = Add(p, q) }").ir.graph
    assert [node.name for node in in_order(graph)] == ["a", "b", "c"]
    c = graph[2]
    graph.remove(c)
    graph.insert_before(graph[0], c)
    assert [node.name for node in in_order(graph)] == ["a", "b", "c"]


def test_a_node_waits_for_what_its_subgraph_captures() -> None:
    text = """g (float[2] x, bool c) => (float[2] y) {
        [late] y = If(c) <then_branch = t () => (float[2] p) { p = Exp(q) },
                          else_branch = e () => (float[2] r) { r = Sin(x) }>
    }"""
    proto = onnx.parser.parse_model(HEAD + text)
    proto.graph.node.append(onnx.helper.make_node("Sin", ["x"], ["q"], name="early"))
    x = np.ones(2, np.float32)
    out = ep.Session(ep.load(proto)).run({"x": x, "c": np.array(True)})
    wanted = np.exp(np.sin(np.ones(2)))
    assert_close(out["y"], wanted, 2 * LIBRARY * unit(np.float32) * wanted)  # the error of the sine, and its own


def test_nodes_that_wait_for_each_other_are_refused() -> None:
    graph = model("g (float[2] x) => (float[2] y) { [a] p = Add(x, x) [b] y = Exp(p) }").ir.graph
    a, b = graph[0], graph[1]
    a.replace_input_with(1, b.outputs[0])
    with pytest.raises(ModelFormatError, match="wait for each other"):
        in_order(graph)
