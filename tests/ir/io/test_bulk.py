"""Large files are read with their weights apart from the rest; what comes out is what protobuf would have read."""

import io

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import entrepot as ep
from entrepot.ir.io import bulk
from entrepot.ir.io.bulk import InFile, InMemory, split


@pytest.fixture(autouse=True)
def _everything_is_large(monkeypatch):
    monkeypatch.setattr(bulk, "WORTH", 0)


def model(arrays):
    nodes = [helper.make_node("Add", [f"v{i}", f"w{i}"], [f"v{i + 1}"]) for i in range(len(arrays))]
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("v0", 1, [None])],
        [helper.make_tensor_value_info(f"v{len(arrays)}", 1, [None])],
        [numpy_helper.from_array(array, f"w{i}") for i, array in enumerate(arrays)],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


def large(count=3):
    rng = np.random.default_rng(0)
    return [rng.random(1500 + i, np.float32) for i in range(count)]


def restored(content, data):
    proto = onnx.ModelProto.FromString(content)
    for tensor in proto.graph.initializer:
        if tensor.raw_data in data:
            tensor.raw_data = bytes(data[tensor.raw_data])
    return proto


@pytest.mark.parametrize("where", ["memory", "file"])
def test_nothing_is_lost_and_only_large_tensors_are_cut_out(where, tmp_path):
    proto = model([*large(), np.ones(3, np.float32)])
    proto.producer_name = "x" * 5000
    whole = proto.SerializeToString()
    path = tmp_path / "net.onnx"
    path.write_bytes(whole)
    with io.FileIO(path) as file:
        content, data = split(InMemory(whole) if where == "memory" else InFile(file, len(whole)))
    assert len(data) == 3
    assert len(content) < len(whole) - sum(map(len, data.values())) + 200
    assert restored(content, data) == proto


def test_arrays_lie_where_numbers_may_lie_and_cannot_be_written():
    _, data = split(InMemory(model(large()).SerializeToString()))
    for piece in data.values():
        array = np.frombuffer(piece, np.float32)
        assert array.flags.aligned
        assert not array.flags.writeable


@pytest.mark.parametrize("as_path", [False, True])
def test_a_loaded_model_is_the_same_as_one_that_is_parsed_as_a_whole(as_path, tmp_path, monkeypatch):
    proto = model([*large(), np.ones(1500, np.float32)])
    proto.graph.initializer.append(helper.make_tensor("packed", onnx.TensorProto.INT4, [20000], bytes(10000), raw=True))
    path = tmp_path / "net.onnx"
    path.write_bytes(proto.SerializeToString())
    parts = ep.load(path if as_path else path.read_bytes())
    monkeypatch.setattr(bulk, "WORTH", 1 << 40)
    whole = ep.load(path)
    assert parts.to_proto() == whole.to_proto()


def test_data_that_does_not_fit_its_dims_is_refused_as_ever(tmp_path):
    proto = model(large())
    proto.graph.initializer[1].dims[0] += 1
    with pytest.raises(ep.ModelFormatError, match=r"6004 bytes of data, but FLOAT of dims \(1502,\) needs 6008"):
        ep.load(proto.SerializeToString())


def test_a_file_that_holds_a_ticket_gets_no_data_for_it(monkeypatch):
    """The random part cannot be guessed: what looks like a ticket of another run is data of the wrong size."""
    proto = model(large(1))
    content, data = split(InMemory(proto.SerializeToString()))
    assert len(data) == 1
    with pytest.raises(ep.ModelFormatError, match="24 bytes of data"):
        ep.load(content)


@pytest.mark.parametrize("seed", range(20))
def test_damage_leads_to_what_protobuf_says_of_it(seed):
    whole = bytearray(model(large(2)).SerializeToString())
    rng = np.random.default_rng(seed)
    for _ in range(3):
        whole[rng.integers(0, 300)] = rng.integers(0, 256)
    if seed % 4 == 0:
        del whole[len(whole) // 2 :]
    content, data = split(InMemory(bytes(whole)))
    try:
        expected = onnx.ModelProto.FromString(bytes(whole))
    except Exception as error:  # noqa: BLE001 - whatever protobuf raises
        with pytest.raises(type(error)):
            restored(content, data)
    else:
        assert restored(content, data).SerializeToString(deterministic=True) == expected.SerializeToString(
            deterministic=True
        )


def test_two_graphs_are_left_to_protobuf_which_merges_them():
    whole = model(large(1)).SerializeToString()
    content, data = split(InMemory(whole + whole))
    assert not data
    assert content == whole + whole


def test_a_file_that_shrinks_while_it_is_read_is_an_error(tmp_path):
    path = tmp_path / "net.onnx"
    path.write_bytes(model(large()).SerializeToString())
    with io.FileIO(path) as file, pytest.raises(OSError, match="shorter"):
        InFile(file, path.stat().st_size).piece(0, path.stat().st_size + 10)
