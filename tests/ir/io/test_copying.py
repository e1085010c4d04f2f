"""Weights saved beside other weights are copied by the file system, or through little memory."""

import io
import os

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import entrepot as ep
from entrepot.ir.io import copying


@pytest.fixture
def stored(tmp_path):
    """A model with weights in a file beside it, and the arrays."""
    arrays = {f"w{i}": np.random.default_rng(i).random(size, np.float32) for i, size in enumerate((70_000, 40_001, 9))}
    graph = helper.make_graph(
        [helper.make_node("Sum", list(arrays), ["y"])],
        "net",
        [],
        [helper.make_tensor_value_info("y", 1, None)],
        [numpy_helper.from_array(array, name) for name, array in arrays.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    onnx.save_model(model, tmp_path / "net.onnx", save_as_external_data=True, location="weights", size_threshold=0)
    return tmp_path / "net.onnx", arrays


@pytest.fixture(autouse=True)
def _everything_is_large(monkeypatch):
    monkeypatch.setattr(copying, "LARGE", 1)
    monkeypatch.setattr(copying, "_CHUNK", 100_000)


def saved_arrays(path):
    return {tensor.name: numpy_helper.to_array(tensor) for tensor in onnx.load(path).graph.initializer}


def assert_saved(model, folder, arrays):
    folder.mkdir()
    model.save(folder / "copy.onnx", external_data="copy.data")
    found = saved_arrays(folder / "copy.onnx")
    assert all(np.array_equal(found[name], array) for name, array in arrays.items())


def refuse(number):
    def call(*_, **__):
        raise OSError(number, os.strerror(number))

    return call


def test_the_file_system_copies_where_it_can(stored, tmp_path, monkeypatch):
    path, arrays = stored
    asked = []
    if hasattr(os, "copy_file_range"):
        copy = os.copy_file_range
        monkeypatch.setattr(os, "copy_file_range", lambda *args: asked.append(args) or copy(*args))
    assert_saved(ep.load(path), tmp_path / "other", arrays)
    assert asked or not hasattr(os, "copy_file_range")


@pytest.mark.parametrize("number", sorted(copying._UNABLE))
def test_what_the_file_system_does_not_copy_is_written(stored, tmp_path, monkeypatch, number):
    path, arrays = stored
    monkeypatch.setattr(os, "copy_file_range", refuse(number), raising=False)
    assert_saved(ep.load(path), tmp_path / "other", arrays)


def test_copying_that_ends_early_is_continued_by_writing(stored, tmp_path, monkeypatch):
    path, arrays = stored
    if not hasattr(os, "copy_file_range"):
        pytest.skip("this system has no copy_file_range")
    copy, calls = os.copy_file_range, []

    def once(source, target, count, start, place):
        calls.append(count)
        return copy(source, target, count // 2, start, place) if len(calls) == 1 else 0

    monkeypatch.setattr(os, "copy_file_range", once)
    assert_saved(ep.load(path), tmp_path / "other", arrays)
    assert len(calls) > 1


def test_a_file_that_was_replaced_since_is_not_copied_from(stored, tmp_path):
    path, arrays = stored
    model = ep.load(path)
    size = (path.parent / "weights").stat().st_size
    (path.parent / "weights").unlink()
    (path.parent / "weights").write_bytes(bytes(size))
    assert_saved(model, tmp_path / "other", arrays)


def test_a_full_disk_is_an_error_and_leaves_nothing(stored, tmp_path, monkeypatch):
    path, _ = stored
    if not hasattr(os, "copy_file_range"):
        pytest.skip("this system has no copy_file_range")
    monkeypatch.setattr(os, "copy_file_range", refuse(28))
    (tmp_path / "other").mkdir()
    with pytest.raises(ep.StorageError, match="No space left"):
        ep.load(path).save(tmp_path / "other" / "copy.onnx", external_data="copy.data")
    assert not list((tmp_path / "other").iterdir())


def test_streams_get_the_same_bytes(stored):
    path, arrays = stored
    stream = io.BytesIO()
    ep.load(path).save(stream)
    found = onnx.ModelProto.FromString(stream.getvalue())
    assert all(np.array_equal(numpy_helper.to_array(tensor), arrays[tensor.name]) for tensor in found.graph.initializer)
