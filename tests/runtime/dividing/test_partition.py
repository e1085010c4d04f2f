from __future__ import annotations

import numpy as np
import onnx
import pytest

import entrepot as ep
from entrepot.ir.errors import ModelFormatError
from entrepot.runtime.planning.order import in_order
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


CONV = """g (float[1, 2, 6, 6] x) => (float[1, 3, 6, 6] y)
<float[3] scale = {1, 2, 3}, float[3] shift = {0, 1, 2}, float[3] mean = {0.5, 0, 1}, float[3] var = {1, 2, 3}> {
    [zero] w = ConstantOfShape<value = float[1] {0.5}>(s)
    [size] s = Constant<value = int64[4] {3, 2, 3, 3}>()
    [conv] c = Conv<pads = [1, 1, 1, 1]>(x, w)
    [norm] n = BatchNormalization(c, scale, shift, mean, var)
    [relu] y = Relu(n)
}"""

SHAPES = """g (float[N, 2] x, bool c) => (float[N, 2] y, float[N, 2] z) <bool yes = {1}> {
    [one] a = Shape(x)
    [two] b = Shape(x)
    [join] d = Add(a, b)
    [half] e = Div(d, two)
    [two_is] two = Constant<value = int64 {2}>()
    [same] f = Identity(e)
    [fill] y = Expand(x, f)
    [unread] u = Sin(x)
    [decided] v = If(yes) <then_branch = t () => (float[N, 2] p) { q = Exp(x) p = Neg(q) },
                           else_branch = e () => (float[N, 2] r) { r = Neg(u) }>
    [open] w = If(c) <then_branch = t2 () => (float[N, 2] p2) { p2 = Exp(x) },
                      else_branch = e2 () => (float[N, 2] r2) { r2 = Neg(x) }>
    [last] z = Add(v, w)
}"""

DENSE = """g (float[3, 4] x) => (float[3, 4] y)
<float[4, 4] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4, 5, 6, 7}, float[4] b = {1, 2, 3, 4},
 float root = {1.4142135}, float one = {1.0}, float half = {0.5}> {
    [gemm] p = Gemm(x, w, b)
    [relu] q = Relu(p)
    [matmul] m = MatMul(q, w)
    [bias] n = Add(m, b)
    [residual] r = Add(n, q)
    [div] s = Div(r, root)
    [erf] t = Erf(s)
    [plus] u = Add(t, one)
    [times] v = Mul(r, u)
    [halve] k = Mul(v, half)
    [sigmoid] g = Sigmoid(k)
    [gate] y = Mul(k, g)
}"""

FATES = {
    CONV: {
        "zero": "folded",
        "size": "constant",
        "conv": "fused with 'norm', 'relu'",
        "norm": "absorbed into 'conv'",
        "relu": "fused into 'conv'",
    },
    SHAPES: {
        "one": "native",
        "two": "merged with 'one'",
        "join": "native",
        "half": "native",
        "two_is": "constant",
        "same": "passed through",
        "fill": "native",
        "unread": "dropped",
        "decided": "then_branch taken: body of 2 steps",
        "open": "control flow",
        "last": "native",
    },
    DENSE: {
        "gemm": "fused with 'relu'",
        "relu": "fused into 'gemm'",
        "matmul": "fused with 'bias', 'residual'",
        "bias": "fused into 'matmul'",
        "residual": "fused into 'matmul'",
        "div": "fused into 'erf'",
        "erf": "native with 'div', 'plus', 'times', 'halve'",
        "plus": "fused into 'erf'",
        "times": "fused into 'erf'",
        "halve": "fused into 'erf'",
        "sigmoid": "native with 'gate'",
        "gate": "fused into 'sigmoid'",
    },
}


@pytest.mark.parametrize("text", FATES, ids=["convolution", "shapes", "products"])
def test_the_plan_tells_the_truth_about_every_node(text: str) -> None:
    rows = ep.Session(model(text)).plan().placements
    assert {row.node.split("'")[1]: row.how for row in rows} == FATES[text]


@pytest.mark.parametrize("text", [CONV, DENSE, TEXT], ids=["convolution", "products", "plain"])
def test_the_plan_accounts_for_every_statement_of_the_source(text: str) -> None:
    session = ep.Session(model(text))
    statements = [line for line in session.source().splitlines() if " = " in line]
    own = 0
    for row in session.plan().placements:
        if row.how.startswith("body of "):
            own += int(row.how.split()[2])
        else:
            own += row.how.split()[0] in ("native", "prepared", "shared") or row.how.startswith("fused with")
    assert own == len(statements)


def test_nodes_of_one_name_are_told_apart() -> None:
    text = """g (float[2] x) => (float[2] y)
    { [same] p = Exp(x) [same] q = Constant<value = float {2}>() [same] y = Pow(p, q) }"""
    assert [row.how for row in ep.Session(model(text)).plan().placements] == ["native", "constant", "native"]


def test_the_plan_of_the_reference_says_that_nothing_was_fused() -> None:
    hows = {row.how for row in ep.Session(model(DENSE), providers="reference").plan().placements}
    assert hows <= {"native", "shared"}


GRADIENT = (
    HEAD.replace("]>", ', "com.microsoft": 1]>')
    + """g (float[2, 2] x) => (float[2, 2] y) {
    [ours] a = Relu(x)
    [theirs] c = com.microsoft.Inverse(a)
    [last] y = Neg(c)
}"""
)


def test_the_source_says_who_runs_what_it_does_not_show() -> None:
    session = ep.Session(ep.load(onnx.parser.parse_model(GRADIENT)), providers=["cpu", "onnxruntime"])
    lines = session.source().splitlines()
    told = [line for line in lines if line.startswith("#")]
    assert told[0] == "# part 2 of 3: 1 node run by 'onnxruntime', without Python source"
    assert told[1].startswith("#   node 'theirs' (com.microsoft::Inverse, opset 1): cpu declined: ")
    assert sum(line.startswith("def ") for line in lines) == 2
    x = np.array([[2, 0], [0, 4]], np.float32)
    np.testing.assert_array_equal(session(x), [[-0.5, 0], [0, -0.25]])


def test_a_name_in_the_file_cannot_end_the_comment() -> None:
    source = model("g (float[2] x) => (float[2] y) { [a] y = Exp(x) }")
    next(iter(source.ir.graph)).name = "a\nimport os\x1b[31m"
    text = ep.Session(source, providers="reference").source()
    assert all(line.startswith("#") for line in text.splitlines())
    assert "\x1b" not in text


def test_a_part_of_many_nodes_is_not_told_node_by_node() -> None:
    chain = " ".join(f"v{at + 1} = Exp(v{at})" for at in range(50))
    text = ep.Session(model(f"g (float[2] v0) => (float[2] v50) {{ {chain} }}"), providers="reference").source()
    assert text.splitlines()[-1] == "#   ... and 30 more, all in session.plan()"
    assert len(text.splitlines()) == 22


def test_the_plan_prints_as_a_table() -> None:
    lines = str(ep.Session(model(TEXT)).plan()).splitlines()
    assert lines[0].split() == ["node", "operator", "provider", "how", "declined", "by"]
    assert lines[2].startswith("node 'product' (MatMul, opset 28)")


@pytest.mark.parametrize("provider", ["cpu", "torch"])
def test_the_profile_counts_every_kernel(provider: str) -> None:
    text = TEXT.replace("2, 2] x", "99999, 2] x").replace("2, 2] y", "99999, 2] y")  # NumPy takes what is smaller
    profile = ep.Session(model(text), providers=[provider]).profile({"x": np.ones((99999, 2), np.float32)})
    assert sum(row.calls for row in profile.rows) >= 3
    assert profile.total > 0
    assert "MatMul" in str(profile)


def test_other_providers_have_no_profile() -> None:
    with pytest.raises(ep.InputError, match="runs on cpu or torch alone"):
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
    with pytest.raises(ModelFormatError, match="depend on each other in a cycle"):
        in_order(graph)
