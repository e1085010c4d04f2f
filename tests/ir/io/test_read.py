"""Every way a file can be wrong is a typed error that says where; every file that is merely odd is read."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable

import onnx
import onnx.parser
import onnx_ir
import pytest
from onnx import TensorProto, helper

import entrepot as ep

TEXT = """
<ir_version: 10, opset_import: ["": 20, "local": 1]>
net (float[N, 3] x, bool c) => (float[N, 3] y)
<float[3] w = {1, 2, 3}>
{
    [first] a = Add(x, w)
    [double] b = local.Double(a)
    [choice] y = If(c) <
        then_branch = yes () => (float[N, 3] t) { t = Relu(b) },
        else_branch = no () => (float[N, 3] e) { [inner] e = LeakyRelu<alpha = 0.5>(b) }
    >
}
<domain: "local", opset_import: ["": 20]>
Double (v) => (r) { [twice] r = Add(v, v) }
"""


def proto() -> onnx.ModelProto:
    return onnx.parser.parse_model(TEXT)


def changed(change: Callable[[onnx.ModelProto], object]) -> onnx.ModelProto:
    model = proto()
    change(model)
    return model


def attribute(model: onnx.ModelProto, name: str) -> onnx.AttributeProto:
    return next(a for node in model.graph.node for a in node.attribute if a.name == name)


def inner(model: onnx.ModelProto) -> onnx.NodeProto:
    return attribute(model, "else_branch").g.node[0]


def test_a_valid_model_is_read_with_all_its_parts() -> None:
    model = ep.load(proto())
    assert [str(spec) for spec in model.inputs] == ["x: float32[N, 3]", "c: bool[]"]
    assert [node.op_type for node in model.ir.graph] == ["Add", "Double", "If"]
    assert ("local", "Double", "") in model.ir.functions
    branch = model.ir.graph[2].attributes["else_branch"].value
    assert branch[0].inputs[0] is model.ir.graph[1].outputs[0]


def test_what_is_loaded_does_not_depend_on_the_proto_it_came_from() -> None:
    source = proto()
    model = ep.load(source)
    source.graph.initializer[0].float_data[0] = 7
    source.graph.node[0].name = "changed"
    assert model.ir.graph.initializers["w"].const_value.numpy()[0] == 1
    assert model.ir.graph[0].name == "first"


def test_bytes_a_path_and_a_proto_give_the_same_model(tmp_path) -> None:
    path = tmp_path / "net.onnx"
    path.write_bytes(proto().SerializeToString())
    results = [ep.load(source).to_proto() for source in (path, str(path), path.read_bytes(), proto())]
    assert all(result == results[0] for result in results)


def test_an_onnx_ir_model_and_a_model_are_taken_as_they_are() -> None:
    model = onnx_ir.from_onnx_text(TEXT)
    handle = ep.load(model)
    assert handle.ir is model
    assert ep.load(handle) is handle


def set_dims(model: onnx.ModelProto, *dims: int) -> None:
    model.graph.initializer[0].ClearField("dims")
    model.graph.initializer[0].dims.extend(dims)


def raw(model: onnx.ModelProto, content: bytes) -> None:
    model.graph.initializer[0].raw_data = content


def make_cycle(model: onnx.ModelProto) -> None:
    model.graph.node[0].input[0] = "b"


def cycle_through_subgraph(model: onnx.ModelProto) -> None:
    model.graph.node[0].input[0] = "y"


def recurse(model: onnx.ModelProto) -> None:
    model.functions[0].node[0].CopyFrom(helper.make_node("Double", ["v"], ["r"], domain="local"))


def not_utf8(model: onnx.ModelProto) -> onnx.ModelProto:
    content = model.SerializeToString().replace(b"first", b"fir\xff\xfe")
    return onnx.ModelProto.FromString(content)


BROKEN: dict[str, tuple[Callable[[onnx.ModelProto], object], list[str]]] = {
    "no graph": (lambda m: m.ClearField("graph"), ["no graph"]),
    "format version of the future": (lambda m: setattr(m, "ir_version", 9999), ["9999"]),
    "negative format version": (lambda m: setattr(m, "ir_version", -1), ["-1"]),
    "cycle": (make_cycle, ["graph 'net'", "cycle", "depends on its own result"]),
    "cycle through a subgraph": (cycle_through_subgraph, ["cycle"]),
    "node that reads itself": (lambda m: m.graph.node[0].input.__setitem__(0, "a"), ["cycle", "Add", "'a'"]),
    "input that nothing produces": (
        lambda m: m.graph.node[0].input.__setitem__(1, "ghost"),
        ["graph 'net'", "node 'first' (Add)", "'ghost'", "nothing produces"],
    ),
    "input in a branch that nothing produces": (
        lambda m: inner(m).input.__setitem__(0, "ghost"),
        ["graph 'net > no'", "node 'inner' (LeakyRelu)", "'ghost'"],
    ),
    "function that looks outside": (
        lambda m: m.functions[0].node[0].input.__setitem__(0, "x"),
        ["graph 'Double'", "node 'twice' (Add)", "'x'"],
    ),
    "output from nowhere": (lambda m: setattr(m.graph.output[0], "name", "ghost"), ["'ghost'", "nothing produces"]),
    "branch that returns an outer value": (
        lambda m: setattr(attribute(m, "then_branch").g.output[0], "name", "b"),
        ["returns a value of an enclosing graph", "Identity"],
    ),
    "two nodes that make one value": (
        lambda m: m.graph.node[1].output.__setitem__(0, "a"),
        ["node 'double'", "'a'", "defined twice"],
    ),
    "branch that hides an outer value": (
        lambda m: (inner(m).output.__setitem__(0, "a"), setattr(attribute(m, "else_branch").g.output[0], "name", "a")),
        ["node 'inner'", "'a'", "defined twice"],
    ),
    "two inputs of one name": (lambda m: setattr(m.graph.input[1], "name", "x"), ["'x'", "defined twice"]),
    "two initializers of one name": (
        lambda m: m.graph.initializer.append(m.graph.initializer[0]),
        ["two initializers named 'w'"],
    ),
    "node that makes an initializer": (lambda m: m.graph.node[0].output.__setitem__(0, "w"), ["'w'", "defined twice"]),
    "initializer without a name": (lambda m: m.graph.initializer[0].ClearField("name"), ["without a name"]),
    "input without a name": (lambda m: m.graph.input[0].ClearField("name"), ["without a name"]),
    "input without a type": (lambda m: m.graph.input[0].ClearField("type"), ["'x'", "without a type"]),
    "two functions of one name": (lambda m: m.functions.append(m.functions[0]), ["'local::Double'", "twice"]),
    "function that calls itself": (recurse, ["'local::Double'", "calls itself"]),
    "function without a name": (lambda m: m.functions[0].ClearField("name"), ["function without a name"]),
    "call with too many inputs": (
        lambda m: m.graph.node[1].input.append("x"),
        ["node 'double' (local::Double)", "2 inputs", "has 1"],
    ),
    "conflicting opset imports": (
        lambda m: m.opset_import.add(domain="", version=13),
        ["conflicting opset imports", "20", "13"],
    ),
    "conflicting opset imports by another name": (
        lambda m: m.opset_import.add(domain="ai.onnx", version=13),
        ["conflicting opset imports"],
    ),
    "opset import of version 0": (lambda m: setattr(m.opset_import[0], "version", 0), ["version 0"]),
    "no opset import": (lambda m: m.ClearField("opset_import"), ["node 'first'", "no opset import", "'ai.onnx'"]),
    "no opset import in a function": (
        lambda m: m.functions[0].ClearField("opset_import"),
        ["graph 'Double'", "no opset import"],
    ),
    "domain without import": (
        lambda m: setattr(m.graph.node[0], "domain", "com.example"),
        ["no opset import for domain 'com.example'"],
    ),
    "node without an operator": (lambda m: m.graph.node[0].ClearField("op_type"), ["without an operator"]),
    "too few inputs": (lambda m: m.graph.node[0].input.pop(), ["node 'first' (Add)", "1 inputs", "takes 2"]),
    "too many outputs": (lambda m: m.graph.node[0].output.append("extra"), ["2 outputs", "has 1"]),
    "absent input that is required": (lambda m: m.graph.node[0].input.__setitem__(1, ""), ["input 1 is required"]),
    "absent input in a list": (
        lambda m: m.graph.node[0].CopyFrom(helper.make_node("Sum", ["x", "", "w"], ["a"], name="first")),
        ["node 'first' (Sum)", "input 1 is left out"],
    ),
    "unknown attribute": (
        lambda m: m.graph.node[0].attribute.append(helper.make_attribute("beta", 1)),
        ["node 'first'", "no attribute 'beta'"],
    ),
    "attribute of the wrong type": (
        lambda m: inner(m).attribute[0].CopyFrom(helper.make_attribute("alpha", "x")),
        ["node 'inner'", "'alpha' is STRING, but must be FLOAT"],
    ),
    "attribute that holds something else than it says": (
        lambda m: setattr(inner(m).attribute[0], "i", 3),
        ["'alpha' is declared FLOAT, but holds INT"],
    ),
    "attribute twice": (lambda m: inner(m).attribute.append(inner(m).attribute[0]), ["'alpha' occurs twice"]),
    "attribute without a name": (lambda m: inner(m).attribute[0].ClearField("name"), ["attribute without a name"]),
    "graph attribute without a graph": (
        lambda m: attribute(m, "else_branch").ClearField("g"),
        ["'else_branch' is declared GRAPH, but holds nothing"],
    ),
    "required attribute missing": (lambda m: m.graph.node[2].attribute.pop(), ["'else_branch' is required"]),
    "reference to an attribute outside of a function": (
        lambda m: setattr(inner(m).attribute[0], "ref_attr_name", "gamma"),
        ["'alpha' refers to a function's attribute"],
    ),
    "unknown element type": (
        lambda m: setattr(m.graph.input[0].type.tensor_type, "elem_type", 99),
        ["unknown element type 99"],
    ),
    "negative dimension of an input": (
        lambda m: setattr(m.graph.input[0].type.tensor_type.shape.dim[1], "dim_value", -3),
        ["dimension 1", "-3"],
    ),
    "tensor of unknown type": (lambda m: setattr(m.graph.initializer[0], "data_type", 99), ["unknown element type"]),
    "tensor without a type": (lambda m: setattr(m.graph.initializer[0], "data_type", 0), ["'w'", "element type"]),
    "tensor with absurd dims": (lambda m: set_dims(m, 0, 1 << 62), ["'w'", "(0, 4611686018427387904)"]),
    "tensor with negative dims": (lambda m: set_dims(m, -1, -3), ["'w'", "(-1, -3)"]),
    "tensor with less data than dims": (lambda m: set_dims(m, 4), ["'w'", "3 values", "needs 4"]),
    "tensor whose dims overflow 64 bits": (lambda m: set_dims(m, 2**33, 2**33), ["'w'"]),
    "tensor with data in two fields": (
        lambda m: (raw(m, bytes(12)),),
        ["'w'", "raw_data", "float_data"],
    ),
    "tensor with raw data of the wrong length": (
        lambda m: (m.graph.initializer[0].ClearField("float_data"), raw(m, bytes(11))),
        ["'w'", "11 bytes", "FLOAT", "needs 12"],
    ),
    "tensor with data in the wrong field": (
        lambda m: setattr(m.graph.initializer[0], "data_type", TensorProto.INT64),
        ["'w'", "0 values in int64_data"],
    ),
    "tensor of strings with raw data": (
        lambda m: (setattr(m.graph.initializer[0], "data_type", TensorProto.STRING), raw(m, b"abc")),
        ["'w'", "outside string_data"],
    ),
    "tensor of too few strings": (
        lambda m: setattr(m.graph.initializer[0], "data_type", TensorProto.STRING),
        ["'w'", "0 strings"],
    ),
    "segmented tensor": (lambda m: setattr(m.graph.initializer[0].segment, "end", 3), ["'w'", "segments"]),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_model_is_refused_with_place_and_cause(name: str, tmp_path) -> None:
    change, words = BROKEN[name]
    path = tmp_path / "broken.onnx"
    path.write_bytes(changed(change).SerializeToString())
    with pytest.raises((ep.ModelFormatError, ep.ResourceLimitError)) as caught:
        ep.load(path)
    message = str(caught.value)
    assert str(path) in message
    assert [word for word in words if word not in message] == []


def test_a_name_that_is_not_text_is_refused() -> None:
    with pytest.raises(ep.ModelFormatError, match="not UTF-8"):
        ep.load(not_utf8(proto()))


@pytest.mark.parametrize("content", [b"", b"\x00", b"hello, this is no model", b"\x0a" * 1000, bytes(range(256))])
def test_garbage_is_refused(content: bytes) -> None:
    with pytest.raises(ep.ModelFormatError):
        ep.load(content)


def test_every_truncation_of_a_file_is_refused_or_read() -> None:
    content = proto().SerializeToString()
    outcomes = set()
    for length in range(len(content)):
        try:
            outcomes.add(type(ep.load(content[:length])))
        except ep.ModelFormatError as error:
            outcomes.add(type(error))
    assert ep.ModelFormatError in outcomes
    assert outcomes <= {ep.ModelFormatError, ep.Model}


def odd_but_valid() -> dict[str, Callable[[onnx.ModelProto], object]]:
    def contrib(model: onnx.ModelProto) -> None:
        model.opset_import.add(domain="com.microsoft", version=1)
        model.graph.node[0].domain = "com.microsoft"
        model.graph.node[0].op_type = "NobodyKnows"

    def unsort(model: onnx.ModelProto) -> None:
        nodes = list(model.graph.node)[::-1]
        del model.graph.node[:]
        model.graph.node.extend(nodes)

    def overload(model: onnx.ModelProto) -> None:
        model.functions.append(model.functions[0])
        model.functions[1].overload = "other"

    def default_input(model: onnx.ModelProto) -> None:
        model.ir_version = 3
        model.graph.input.append(helper.make_tensor_value_info("w", TensorProto.FLOAT, [3]))

    def binary(model: onnx.ModelProto) -> None:
        contrib(model)
        model.graph.node[0].attribute.append(helper.make_attribute("blob", b"\xff\xfe\x00"))
        model.graph.node[0].attribute.append(helper.make_attribute("blobs", [b"\xff", b"a"]))

    return {
        "operators that nobody knows": contrib,
        "nodes in any order": unsort,
        "names empty": lambda m: [node.ClearField("name") for node in m.graph.node],
        "initializers that are inputs": default_input,
        "functions with overloads": overload,
        "domain by its long name": lambda m: setattr(m.opset_import[0], "domain", "ai.onnx"),
        "node domain by its long name": lambda m: setattr(m.graph.node[0], "domain", "ai.onnx"),
        "opset imports that nobody uses": lambda m: m.opset_import.add(domain="unused", version=3),
        "the same opset import twice": lambda m: m.opset_import.add(domain="", version=20),
        "an opset newer than any table": lambda m: setattr(m.opset_import[0], "version", 9999),
        "binary data in a string attribute": binary,
        "a graph without a name": lambda m: m.graph.ClearField("name"),
        "attributes without types": lambda m: inner(m).attribute[0].ClearField("type"),
        "private attributes of a runtime": lambda m: m.graph.node[0].attribute.append(
            helper.make_attribute("__note", 1)
        ),
    }


@pytest.mark.parametrize("name", odd_but_valid())
def test_what_is_merely_odd_is_read_and_written_again(name: str) -> None:
    model = ep.load(changed(odd_but_valid()[name]))
    again = ep.load(model.to_proto())
    assert again.to_proto() == model.to_proto()


def test_a_file_of_an_unknown_opset_loads_but_does_not_reach_the_hub() -> None:
    model = ep.load(changed(lambda m: setattr(m.opset_import[0], "version", 9999)))
    assert model.opset == 9999
    with pytest.raises(ep.ConversionError):
        model.at_hub()


def test_a_size_of_minus_one_is_an_unknown_size() -> None:
    model = changed(lambda m: setattr(m.graph.input[0].type.tensor_type.shape.dim[0], "dim_value", -1))
    assert str(ep.load(model).inputs[0]) == "x: float32[?, 3]"


def test_an_attribute_left_out_by_a_proto3_writer_is_zero() -> None:
    text = '<ir_version: 10, opset_import: ["": 20]> g (float[N] x) => (float[N] y) { y = Softmax<axis = 0>(x) }'
    source = onnx.parser.parse_model(text)
    source.graph.node[0].attribute[0].ClearField("i")
    assert ep.load(source).ir.graph[0].attributes["axis"].value == 0


def test_a_missing_file_is_a_file_not_found_error(tmp_path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        ep.load(tmp_path / "none.onnx")
    assert isinstance(caught.value, ep.EntrepotError)
    assert str(tmp_path / "none.onnx") in str(caught.value)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no FIFOs")
def test_a_fifo_or_folder_or_device_as_model_does_not_hang(tmp_path) -> None:
    os.mkfifo(tmp_path / "fifo.onnx")
    for path in (tmp_path / "fifo.onnx", tmp_path, "/dev/zero"):
        with pytest.raises(OSError, match="cannot be read") as caught:
            ep.load(path)
        assert isinstance(caught.value, ep.EntrepotError)


def test_a_path_with_a_nul_is_a_typed_error() -> None:
    with pytest.raises(OSError, match="cannot be read") as caught:
        ep.load("net\0.onnx")
    assert caught.value.errno == errno.EINVAL


@pytest.mark.parametrize("source", [None, 3, ["net.onnx"]])
def test_what_cannot_be_a_source_is_refused(source: object) -> None:
    with pytest.raises(ep.InputError):
        ep.load(source)  # type: ignore[arg-type]


def test_an_unknown_trust_is_refused() -> None:
    with pytest.raises(ep.InputError, match="trust"):
        ep.load(proto(), trust="blind")  # type: ignore[arg-type]


def test_nothing_is_logged_or_printed(capfd) -> None:
    ep.load(proto())
    assert capfd.readouterr() == ("", "")


def test_a_file_too_large_for_protobuf_is_refused_unread(tmp_path) -> None:
    with open(tmp_path / "net.onnx", "wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(ep.ModelFormatError, match="larger than a protobuf can be"):
        ep.load(tmp_path / "net.onnx")
