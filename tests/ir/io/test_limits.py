"""Files that stand for more than they hold: depth, repetition, and the limits of each kind."""

from __future__ import annotations

import time

import onnx
import onnx.parser
import pytest
from onnx import TensorProto, helper

import entrepot as ep
from entrepot.ir.inference import list_nodes
from tests.ir.io.test_read import changed, make_cycle, proto


def nested_functions(depth: int, calls: int = 2) -> onnx.ModelProto:
    """Each function calls the next one ``calls`` times."""
    functions = []
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("f", 1)]
    for level in range(depth):
        callee = {"op_type": f"F{level + 1}", "domain": "f"} if level + 1 < depth else {"op_type": "Relu"}
        nodes = [helper.make_node(inputs=[f"v{i}"], outputs=[f"v{i + 1}"], **callee) for i in range(calls)]
        functions.append(helper.make_function("f", f"F{level}", ["v0"], [f"v{calls}"], nodes, opsets))
    info = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])
    out = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1])
    graph = helper.make_graph([helper.make_node("F0", ["x"], ["y"], domain="f")], "laughs", [info], [out])
    return helper.make_model(graph, functions=functions, opset_imports=opsets, ir_version=10)


def test_a_small_file_that_stands_for_billions_of_nodes_is_refused_at_once() -> None:
    content = nested_functions(34).SerializeToString()
    assert len(content) < 4096
    begin = time.process_time()
    with pytest.raises(ep.ResourceLimitError, match="expanded_nodes"):
        ep.load(content)
    assert time.process_time() - begin < 1


def test_calls_of_functions_are_followed_to_a_depth_that_all_verbs_manage() -> None:
    model = ep.load(nested_functions(99, calls=1))
    assert len(list_nodes(model)) >= 99
    assert ep.convert_opset(model, 13, verify=False).opset == 13
    assert ep.simplify(model, verify=False)
    assert ep.Session(model)
    for depth in (101, 3000):
        with pytest.raises(ep.ModelFormatError, match="nested more than 100 levels"):
            ep.load(nested_functions(depth, calls=1))


def test_types_of_functions_that_call_each_other_twice_are_inferred_once() -> None:
    model = ep.load(nested_functions(20, calls=2))
    begin = time.process_time()
    assert len(list_nodes(model)) >= 20
    assert time.process_time() - begin < 5


def nested_ifs(depth: int) -> onnx.ModelProto:
    source = onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["": 20]> g (bool c, float[1] x) => (float[1] y) {'
        " y = If(c) <then_branch = t () => (float[1] p) { p = Relu(x) },"
        " else_branch = e () => (float[1] q) { q = Neg(x) }> }"
    )
    seed = onnx.NodeProto()
    seed.CopyFrom(source.graph.node[0])
    branch = source.graph.node[0].attribute[0].g
    for level in range(depth - 1):
        outer = branch.node[0].output[0]
        branch.node[0].CopyFrom(seed)
        branch.node[0].output[0] = outer
        for attribute_proto in branch.node[0].attribute:
            graph = attribute_proto.g
            graph.node[0].output[0] = graph.output[0].name = f"{graph.output[0].name}{level}"
        branch = branch.node[0].attribute[0].g
    return source


@pytest.mark.parametrize("depth", [3, 30, 400])
def test_nesting_is_bounded_even_for_protos_that_no_file_could_hold(depth: int) -> None:
    source = nested_ifs(depth)
    if depth < ep.Limits().nesting:
        assert ep.load(ep.load(source).to_proto().SerializeToString()).inputs
    else:
        for trust in ("untrusted", "trusted"):
            with pytest.raises(ep.ResourceLimitError, match="nest"):
                ep.load(source, trust=trust)
    with pytest.raises(ep.ResourceLimitError, match="nest"):
        ep.load(source, limits=ep.Limits(nesting=2))


def test_a_file_nested_beyond_protobuf_is_refused() -> None:
    with pytest.raises(ep.ModelFormatError):
        ep.load(b"\x3a\x7f" * 5000)
    content = b""
    for _ in range(2000):  # graph.node.attribute.g: the tags of one level, around what is inside
        content = wrap(7, wrap(1, wrap(5, wrap(6, content))))
    with pytest.raises((ep.ModelFormatError, ep.ResourceLimitError)):
        ep.load(content)


def wrap(field: int, content: bytes) -> bytes:
    size, length = len(content), bytearray()
    while size > 0x7F:
        length.append(size & 0x7F | 0x80)
        size >>= 7
    return bytes([field << 3 | 2]) + bytes([*length, size]) + content


@pytest.mark.parametrize(
    ("limit", "value"), [("nodes", 5), ("expanded_nodes", 5), ("tensor_bytes", 11), ("total_bytes", 11), ("nesting", 0)]
)
def test_each_limit_is_held_and_named(limit: str, value: int) -> None:
    with pytest.raises(ep.ResourceLimitError, match=f"Limits.{limit}"):
        ep.load(proto(), limits=ep.Limits(**{limit: value}))
    ep.load(proto(), limits=ep.Limits(**{limit: value + 1}))


def test_trust_lifts_limits_but_no_check_of_validity() -> None:
    bomb = nested_functions(34)
    assert len(ep.load(bomb, trust="trusted").ir.functions) == 34
    with pytest.raises(ep.ModelFormatError, match="cycle"):
        ep.load(changed(make_cycle), trust="trusted")


def test_a_long_chain_is_no_recursion() -> None:
    size = 20_000
    nodes = [helper.make_node("Relu", [f"v{i}"], [f"v{i + 1}"]) for i in range(size)]
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in ("v0", f"v{size}")]
    source = helper.make_model(
        helper.make_graph(nodes[::-1], "chain", infos[:1], infos[1:]),
        opset_imports=[helper.make_opsetid("", 20)], ir_version=10,
    )  # fmt: skip
    assert len(ep.load(source).ir.graph) == size
    source.graph.node[-1].input[0] = f"v{size}"
    with pytest.raises(ep.ModelFormatError, match="cycle"):
        ep.load(source)
