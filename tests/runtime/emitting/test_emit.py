from __future__ import annotations

import keyword
import traceback
from dataclasses import replace

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st

import entrepot as ep
from entrepot.ir.errors import ExecutionError
from entrepot.ir.limits import Limits
from entrepot.runtime.binding import bind_all
from entrepot.runtime.emitting.emit import emit
from entrepot.runtime.emitting.names import Names
from entrepot.runtime.emitting.writer import Writer
from entrepot.runtime.planning.lower import Lowering
from entrepot.runtime.planning.plan import Step
from entrepot.runtime.providers.cpu.support import numpy_support
from entrepot.runtime.providers.cpu.table import KERNELS
from tests.judges.agreement import assert_close
from tests.judges.bounds import LIBRARY, unit

HEAD = '<ir_version: 10, opset_import: ["": 28]>\n'


def session(text: str, provider: str = "cpu") -> ep.Session:
    return ep.Session(ep.load(onnx.parser.parse_model(HEAD + text)), providers=[provider])


@given(st.lists(st.text(max_size=12), max_size=20))
def test_any_names_become_distinct_identifiers(wanted: list[str]) -> None:
    names = Names()
    made = [names.fresh(name) for name in wanted]
    assert len(set(made)) == len(made)
    assert all(name.isidentifier() and not keyword.iskeyword(name) for name in made)


def test_names_that_mean_something_in_python_are_not_taken_over() -> None:
    proto = onnx.parser.parse_model(HEAD + "g (float[2] a) => (float[2] b) { c = Exp(a)  b = Sin(c) }")
    renamed = {"a": "import", "b": "len", "c": "x); raise SystemExit  #"}
    for node in proto.graph.node:
        node.input[:] = [renamed[name] for name in node.input]
        node.output[:] = [renamed[name] for name in node.output]
    proto.graph.input[0].name, proto.graph.output[0].name = "import", "len"
    out = ep.Session(ep.load(proto)).run({"import": np.zeros(2, np.float32)})
    assert_close(out["len"], np.sin(np.ones(2)), LIBRARY * unit(np.float32))


def test_a_traceback_shows_the_generated_line() -> None:
    it = session("g (float[N] x, float[M] y) => (float[K] z) { a = Exp(x)  z = Mul(a, y) }")
    with pytest.raises(ExecutionError) as caught:
        it.run({"x": np.zeros(2, np.float32), "y": np.zeros(3, np.float32)})
    text = "".join(traceback.format_exception(caught.value))
    assert "z = multiply(a, y)" in text
    assert "<entrepot run" in text


def test_an_error_inside_a_loop_names_the_inner_node() -> None:
    it = session(
        """g (float[N] x, float[M] y, int64 n) => (float[K] z) {
        z = Loop(n, , x) <body = b (int64 i, bool c, float[P] a) => (bool c, float[Q] r) { [inner] r = Mul(a, y) }>
    }"""
    )
    with pytest.raises(ExecutionError, match="node 'inner'"):
        it.run({"x": np.zeros(2, np.float32), "y": np.zeros(3, np.float32), "n": np.array(2)})


def test_attributes_are_written_as_literals() -> None:
    source = session("g (float[2, 3] x) => (float[3, 2] y) { y = Transpose<perm = [1, 0]>(x) }").source()
    assert "perm=(1, 0)" in source


def test_an_infinite_attribute_has_no_literal_and_still_arrives() -> None:
    text = "g (float[1] x) => (float[1] y) { y = ThresholdedRelu<alpha = 1.0>(x) }"
    proto = onnx.parser.parse_model(HEAD + text)
    proto.graph.node[0].attribute[0].f = float("-inf")
    out = ep.Session(ep.load(proto)).run({"x": np.array([-5], np.float32)})
    assert out["y"].item() == -5


def nested(depth: int) -> str:
    body = "v0 = Add(x, x)"
    for level in range(1, depth):
        body = (
            f"v{level} = Loop(n, , x) <body = b{level} (int64 i{level}, bool c{level}, float[2] a{level})"
            f" => (bool c{level}, float[2] v{level - 1}) {{ {body} }}>"
        )
    return f"g (float[2] x, int64 n) => (float[2] v{depth - 1}) {{ {body} }}"


def test_loops_nested_past_what_python_nests_are_refused_and_run_by_the_reference() -> None:
    feeds = {"x": np.ones(2, np.float32), "n": np.array(1)}
    np.testing.assert_array_equal(session(nested(12)).run(feeds)["v11"], [2, 2])
    with pytest.raises(ep.ResourceLimitError, match="nested too deep"):
        session(nested(30))
    np.testing.assert_array_equal(session(nested(30), "reference").run(feeds)["v29"], [2, 2])


def test_a_target_writes_control_flow_in_its_own_form() -> None:
    def select(writer: Writer, step: Step) -> None:
        condition, results = writer.read(step.inputs[0]), []
        for name in ("then_branch", "else_branch"):
            writer.steps(step.blocks[name])
            results.append(writer.read(step.blocks[name].outputs[0]))
        line = f"{writer.thing(np.where, 'where')}({condition}, {', '.join(results)})"
        writer.line(f"{writer.write(step.outputs[0])} = {line}")

    text = """g (float[2] x, bool c) => (float[2] y) {
        y = If(c) <then_branch = t () => (float[2] p) { p = Exp(x) }, else_branch = e () => (float[2] q) { q = Neg(x) }>
    }"""
    graph = ep.load(onnx.parser.parse_model(HEAD + text)).ir.graph
    block = Lowering({}, KERNELS.is_known).lower(graph, graph.opset_imports)
    bind_all(block, KERNELS.bind)
    emitted = emit(block, replace(numpy_support(Limits()), forms={"If": select}))
    assert "where(c, p, q)" in emitted.source
    x = np.array([1, 2], np.float32)
    np.testing.assert_array_equal(emitted.function(x, np.array(False))[0], -x)


def test_steps_keep_what_their_nodes_note_also_inside_functions() -> None:
    proto = onnx.parser.parse_model(
        """<ir_version: 10, opset_import: ["": 28, "local": 1]>
        g (float[2] x) => (float[2] y) { y = local.twice(x) }
        <domain: "local", opset_import: ["": 28]> twice (a) => (b) { b = Add(a, a) }"""
    )
    proto.graph.node[0].metadata_props.add(key="entrepot.module", value="head")
    model = ep.load(proto).ir
    block = Lowering(model.functions, KERNELS.is_known).lower(model.graph, model.graph.opset_imports)
    assert [step.metadata["entrepot.module"] for step in block.steps] == ["head"]
