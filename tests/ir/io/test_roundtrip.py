"""load and save again: nothing is lost, nothing is added."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import onnx
import onnx.backend.test
import onnx.parser
import onnxruntime
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper
from onnx.backend.test.case.node import collect_testcases

import entrepot as ep
from entrepot.ir.io.sparse import SparseTensor
from entrepot.ir.io.value_types import ProtoType
from tests.ir.io.models import OPSETS, sum_model

BACKEND_FILES = sorted(Path(onnx.backend.test.__file__).parent.glob("data/**/*.onnx"))


def normal(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy in which everything that means the same looks the same."""
    own = onnx.ModelProto()
    own.CopyFrom(model)
    if not own.model_version:
        own.ClearField("model_version")
    for opset in own.opset_import:
        opset.domain = "" if opset.domain == "ai.onnx" else opset.domain
    normalise(own)
    return own


def normalise(message) -> None:
    """Drop empty strings, absent trailing inputs and types told twice; sort what has no order."""
    for field, value in message.ListFields():
        if field.type == field.TYPE_MESSAGE:
            for item in value if field.is_repeated else [value]:
                normalise(item)
        if field.type == field.TYPE_STRING and not field.is_repeated and not value and field.name != "dim_param":
            message.ClearField(field.name)
    if isinstance(message, onnx.NodeProto):
        for names in (message.input, message.output):
            while names and not names[-1]:
                names.pop()
    if isinstance(message, onnx.GraphProto):
        tensors = {tensor.name for tensor in message.initializer}
        infos = [info for info in message.value_info if info.name not in tensors]
        replace(message.value_info, sorted(infos, key=lambda info: info.name))
        replace(message.quantization_annotation, sorted(message.quantization_annotation, key=lambda a: a.tensor_name))
    if "metadata_props" in message.DESCRIPTOR.fields_by_name:
        replace(message.metadata_props, sorted(message.metadata_props, key=lambda entry: entry.key))


def replace(repeated, items) -> None:
    items = list(items)
    del repeated[:]
    repeated.extend(items)


@pytest.mark.parametrize("group", range(4))
def test_every_backend_test_file_is_read_and_written_unchanged(group: int, tmp_path: Path) -> None:
    assert len(BACKEND_FILES) > 100
    for file in BACKEND_FILES[group::4]:
        model = ep.load(file)
        assert normal(model.to_proto()) == normal(onnx.load(file)), file


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # onnx computes its cases with overflows
def test_every_backend_test_node_is_read_and_written_unchanged() -> None:
    cases = [case for case in collect_testcases(None) if case.model is not None]
    assert len(cases) > 1500
    for case in cases:
        assert normal(ep.load(case.model).to_proto()) == normal(case.model), case.name


def test_a_saved_file_is_what_to_proto_gives(tmp_path: Path) -> None:
    for file in BACKEND_FILES[::10]:
        model = ep.load(file)
        model.save(tmp_path / "net.onnx")
        assert onnx.load(tmp_path / "net.onnx") == model.to_proto(), file


def rich_model() -> onnx.ModelProto:
    """A model that uses every corner of the format."""
    model = onnx.parser.parse_model("""
        <ir_version: 12, producer_name: "maker", producer_version: "7", domain: "org.example", model_version: 3,
         doc_string: "about", opset_import: ["": 20, "f": 2]>
        net (float[N, 4] x, bool c) => (float[N, 4] y)
        <float[4] w = {1, 2, 3, 4}, float[N, 4] a>
        {
            [one] a = Add(x, w)
            [two] b = f.Leak:fast<slope = 0.25>(a)
            [three] y = If(c) <
                then_branch = yes () => (float[N, 4] t) { u = Relu(b) t = Identity(u) },
                else_branch = no () => (float[N, 4] e) { e = Neg(b) }
            >
        }
        <domain: "f", overload: "fast", opset_import: ["": 20]>
        Leak <slope: float = 0.5, other> (v) => (r) { r = LeakyRelu<alpha: float = @slope>(v) }
    """)
    graph, function = model.graph, model.functions[0]
    branch = graph.node[2].attribute[0]
    for message in (
        model, graph, graph.node[0], graph.input[0], graph.initializer[0], branch.g, function, function.node[0],
    ):  # fmt: skip
        message.metadata_props.add(key="k", value="v")
    for message in (
        graph, graph.node[0], graph.input[0], graph.output[0], graph.initializer[0], branch, function,
    ):  # fmt: skip
        message.doc_string = "documentation"
    model.graph.input[0].type.denotation = "TENSOR"
    model.graph.input[0].type.tensor_type.shape.dim[0].denotation = "DATA_BATCH"
    model.graph.value_info.append(helper.make_tensor_value_info("no such value", TensorProto.FLOAT, [1]))
    model.functions[0].value_info.append(helper.make_tensor_value_info("v", TensorProto.FLOAT, ["N", 4]))
    annotation = model.graph.quantization_annotation.add(tensor_name="a")
    annotation.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="w")
    model.graph.quantization_annotation.add(tensor_name="nobody").quant_parameter_tensor_names.add(key="a", value="b")
    model.configuration.add(name="grid", num_devices=2, device=["cpu:0", "cpu:1"])
    configuration = model.graph.node[0].device_configurations.add(configuration_id="grid", pipeline_stage=1)
    configuration.sharding_spec.add(tensor_name="w", device=[0, 1])
    add_training(model)
    return model


def add_training(model: onnx.ModelProto) -> None:
    step = onnx.parser.parse_graph("step (float[4] g) => (float[4] u) { u = Neg(g) }")
    info = model.training_info.add()
    info.algorithm.CopyFrom(step)
    info.update_binding.add(key="w", value="u")


def sparse_proto(name: str, indices: list, values: list[float], dims: list[int]) -> onnx.SparseTensorProto:
    return helper.make_sparse_tensor(
        numpy_helper.from_array(np.array(values, np.float32), name),
        numpy_helper.from_array(np.array(indices, np.int64), name + "_indices"),
        dims,
    )


def test_every_corner_of_the_format_survives() -> None:
    source = rich_model()
    assert normal(ep.load(source).to_proto()) == normal(source)
    assert normal(ep.load(source.SerializeToString()).to_proto()) == normal(source)


def test_training_info_survives_saving(tmp_path: Path) -> None:
    source = rich_model()
    ep.load(source).save(tmp_path / "net.onnx")
    saved = onnx.load(tmp_path / "net.onnx")
    assert len(saved.training_info) == 1
    assert list(saved.training_info) == list(source.training_info)


def test_types_of_function_values_survive_in_the_old_place() -> None:
    source = rich_model()
    del source.functions[0].value_info[:]
    source.functions[0].ClearField("overload")
    source.graph.node[1].ClearField("overload")
    source.ir_version = 9
    info = helper.make_tensor_value_info("f::Leak/r", TensorProto.FLOAT, ["N", 4])
    source.graph.value_info.append(info)
    model = ep.load(source)
    (function,) = model.ir.functions.values()
    assert function[0].outputs[0].shape[1] == 4
    assert normal(model.to_proto()) == normal(source)


@pytest.mark.parametrize(
    "type_",
    [
        helper.make_map_type_proto(TensorProto.INT64, helper.make_tensor_type_proto(TensorProto.FLOAT, [])),
        helper.make_sequence_type_proto(
            helper.make_map_type_proto(TensorProto.STRING, helper.make_tensor_type_proto(TensorProto.FLOAT, []))
        ),
        helper.make_optional_type_proto(
            helper.make_sequence_type_proto(helper.make_tensor_type_proto(TensorProto.STRING, ["N", 2]))
        ),
        helper.make_sparse_tensor_type_proto(TensorProto.FLOAT, [3, None]),
        onnx.TypeProto(opaque_type=onnx.TypeProto.Opaque(domain="d", name="n")),
        helper.make_tensor_type_proto(TensorProto.FLOAT, None),
        helper.make_tensor_type_proto(TensorProto.FLOAT, []),
        helper.make_tensor_type_proto(TensorProto.INT2, [0, None, "N"]),
    ],
)
def test_every_type_of_value_survives_and_prints(type_: onnx.TypeProto) -> None:
    node, output = helper.make_node("Make", [], ["y"], domain="d"), helper.make_value_info("y", type_)
    graph = helper.make_graph([node], "g", [], [output])
    source = helper.make_model(graph, opset_imports=[helper.make_opsetid("d", 1)], ir_version=10)
    model = ep.load(source)
    assert normal(model.to_proto()) == normal(source)
    assert str(model.outputs[0]) in repr(model)
    if type_.HasField("map_type"):
        assert isinstance(model.ir.graph.outputs[0].type, ProtoType)
        assert model.outputs[0].kind == "map"


def sparse_model(sparse: onnx.SparseTensorProto) -> onnx.ModelProto:
    model = sum_model(np.zeros(tuple(sparse.dims), np.float32), names=("w",))
    del model.graph.initializer[:]
    model.graph.sparse_initializer.append(sparse)
    return model


@pytest.mark.parametrize("indices", [[1, 5], [[0, 1], [1, 2]]])
def test_a_sparse_initializer_survives_and_is_dense_for_whoever_uses_it(indices: list, tmp_path: Path) -> None:
    source = sparse_model(sparse_proto("w", indices, [3.0, 4.0], [2, 3]))
    model = ep.load(source)
    tensor = model.ir.graph.initializers["w"].const_value
    assert isinstance(tensor, SparseTensor)
    expected = np.array([[0, 3, 0], [0, 0, 4]], np.float32)
    np.testing.assert_array_equal(tensor.numpy(), expected)
    np.testing.assert_array_equal(np.asarray(tensor), expected)
    assert tensor.tobytes() == expected.tobytes()
    assert normal(model.to_proto()) == normal(source)
    for external_data in ("auto", None, "w.bin"):
        model.save(tmp_path / "net.onnx", external_data=external_data)
        assert list(onnx.load(tmp_path / "net.onnx").graph.sparse_initializer) == list(source.graph.sparse_initializer)
    runtime = onnxruntime.InferenceSession(tmp_path / "net.onnx", providers=["CPUExecutionProvider"])
    np.testing.assert_array_equal(runtime.run(None, {"x": np.ones((2, 3), np.float32)})[0], expected + 1)


def test_a_sparse_initializer_in_a_branch_survives() -> None:
    text = '<ir_version: 10, opset_import: ["": 20]> g (bool c, float[6] x) => (float[6] y) { y = If(c) <then_branch ='
    text += " t () => (float[6] p) { p = Add(x, w) }, else_branch = e () => (float[6] q) { q = Neg(x) }> }"
    source = onnx.parser.parse_model(text)
    source.graph.node[0].attribute[0].g.sparse_initializer.append(sparse_proto("w", [0], [2.0], [6]))
    assert normal(ep.load(source).to_proto()) == normal(source)


def test_a_sparse_attribute_survives() -> None:
    source = sum_model(np.zeros(6, np.float32))
    del source.graph.initializer[:]
    node = helper.make_node("Constant", [], ["w0"])
    node.attribute.append(helper.make_attribute("sparse_value", sparse_proto("", [0, 5], [1.0, 2.0], [6])))
    source.graph.node.insert(0, node)
    model = ep.load(source)
    assert model.ir.graph[0].attributes["sparse_value"].value.numpy().tolist() == [1, 0, 0, 0, 0, 2]
    assert normal(model.to_proto()) == normal(source)


@pytest.mark.parametrize(
    ("indices", "dims", "reason"),
    [
        ([1, 6], [2, 3], "outside"),
        ([-1, 2], [2, 3], "outside"),
        ([[0, 1], [2, 0]], [2, 3], "outside"),
        ([2, 1], [2, 3], "ascending"),
        ([1, 1], [2, 3], "unique"),
        ([1], [2, 3], "2 values"),
        ([[1, 2, 3]], [2, 3], "2 values"),
        ([0, 1], [-2, 3], "negative"),
    ],
)
def test_a_broken_sparse_tensor_is_refused(indices: list, dims: list[int], reason: str) -> None:
    sparse = sparse_proto("w", [0, 1], [3.0, 4.0], [2, 3])
    sparse.indices.CopyFrom(numpy_helper.from_array(np.array(indices, np.int64)))
    replace(sparse.dims, dims)
    source = sum_model(np.zeros((2, 3), np.float32), names=("w",))
    del source.graph.initializer[:]
    source.graph.sparse_initializer.append(sparse)
    with pytest.raises(ep.ModelFormatError, match=reason):
        ep.load(source)


@pytest.mark.parametrize("dims", [[2**20, 2**20], [2**40, 2**40], [2**62, 4]])
def test_a_sparse_tensor_that_would_be_huge_when_dense_is_refused(dims: list[int]) -> None:
    sparse = sparse_proto("w", [[0, 0]], [3.0], [2, 3])
    replace(sparse.dims, dims)
    source = sparse_model(sparse_proto("w", [0], [1.0], [2, 3]))
    replace(source.graph.sparse_initializer, [sparse])
    with pytest.raises(ep.ResourceLimitError, match="dense_bytes"):
        ep.load(source)


NAMES = st.text(st.characters(exclude_categories=("Cs",)), max_size=8)


@given(
    doc=NAMES, metadata=st.dictionaries(NAMES, NAMES, max_size=3),
    dims=st.lists(st.one_of(st.integers(0, 2**62), NAMES, st.none()), max_size=4),
    ints=st.lists(st.integers(-(2**63), 2**63 - 1), max_size=4), text=NAMES,
    array=st.lists(st.floats(width=32), max_size=5), typed=st.booleans(),
)  # fmt: skip
def test_load_and_save_are_inverse(doc, metadata, dims, ints, text, array, typed) -> None:
    values = np.array(array, np.float32)
    tensor = (
        helper.make_tensor("w", TensorProto.FLOAT, values.shape, values)
        if typed
        else numpy_helper.from_array(values, "w")
    )
    node = helper.make_node("Any", ["x", "", "w"], ["y"], name=text, domain="d", i=ints or [1], s=text, doc_string=doc)
    graph = helper.make_graph(
        [node], text, [helper.make_tensor_value_info("x", TensorProto.FLOAT, dims)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], [tensor], doc_string=doc,
    )  # fmt: skip
    source = helper.make_model(graph, opset_imports=[*OPSETS, helper.make_opsetid("d", 1)], ir_version=10)
    helper.set_model_props(source, metadata)
    model = ep.load(source)
    written = model.to_proto()
    assert normal(written) == normal(source)
    assert ep.load(written.SerializeToString()).to_proto() == written


def test_onnx_ir_models_are_written_like_onnx_ir_writes_them() -> None:
    import onnx_ir

    for file in itertools.islice(BACKEND_FILES, 0, None, 15):
        proto = onnx.load(file)
        ours, theirs = ep.load(onnx_ir.from_proto(proto)).to_proto(), onnx_ir.to_proto(onnx_ir.from_proto(proto))
        assert normal(ours) == normal(theirs), file
