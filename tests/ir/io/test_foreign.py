"""A file that is not an ONNX model is told for what it is, by its content, whatever its name."""

from __future__ import annotations

import gzip
import io
import json
import pickle
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
import safetensors.numpy
import torch

import entrepot as ep
from entrepot.ir.io.foreign import recognised
from tests.ir.io.test_roundtrip import rich_model

ARRAYS = {"w": np.arange(300, dtype=np.float32)}


def zipped(*names: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in names:
            archive.writestr(name, b"content")
    return buffer.getvalue()


def saved(write: Callable[[io.BytesIO], object]) -> bytes:
    buffer = io.BytesIO()
    write(buffer)
    return buffer.getvalue()


def tarred(buffer: io.BytesIO) -> None:
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("x"))


def tensorflow() -> bytes:
    """A SavedModel: schema version 1, then a MetaGraphDef with a node named x of the operator Placeholder."""
    node = b"\x0a\x01x\x12\x0bPlaceholder"
    graph = b"\x0a" + bytes([len(node)]) + node
    meta = b"\x12" + bytes([len(graph)]) + graph
    return b"\x08\x01\x12" + bytes([len(meta)]) + meta


FILES: dict[str, tuple[bytes, str, str]] = {
    "safetensors": (safetensors.numpy.save(ARRAYS), "safetensors file: weights without a graph", "ep.export"),
    "an empty safetensors": (safetensors.numpy.save({}), "safetensors", "ep.export"),
    "torch.save": (saved(lambda f: torch.save({"w": torch.ones(2)}, f)), "PyTorch", "give the module to ep.export"),
    "torch.save of old": (
        saved(lambda f: torch.save({"w": torch.ones(2)}, f, _use_new_zipfile_serialization=False)),
        "pickle",
        "give the module to ep.export",
    ),
    **{f"pickle {n}": (pickle.dumps(ARRAYS, n), "pickle", "give the module to ep.export") for n in range(2, 6)},
    "pickled number": (pickle.dumps(7, 4), "pickle", "give the module to ep.export"),
    "HDF5": (b"\x89HDF\r\n\x1a\n" + bytes(99), "HDF5", "ep.export"),
    "Keras": (zipped("metadata.json", "config.json", "model.weights.h5"), "Keras model", "ep.export"),
    "SavedModel": (tensorflow(), "TensorFlow", "ep.export"),
    "TFLite": (b"\x1c\x00\x00\x00TFL3" + bytes(99), "TensorFlow Lite", "ep.export"),
    "onnxruntime's": (b"\x1c\x00\x00\x00ORTM" + bytes(99), "onnxruntime's own format", "use that one"),
    "GGUF": (b"GGUF\x03\x00\x00\x00" + bytes(99), "GGUF", "ep.export"),
    "npy": (saved(lambda f: np.save(f, ARRAYS["w"])), "NumPy array", "not a model"),
    "npz": (saved(lambda f: np.savez(f, **ARRAYS)), "NumPy archive", "not a model"),
    "page": (b"\n<!DOCTYPE html><html><body>404</body></html>", "web page", "download it again"),
    "plain page": (b"<HTML><head></head></HTML>", "web page", "download it again"),
    "LFS": (
        b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n",
        "pointer of Git LFS",
        "git lfs pull",
    ),
    "text": (onnx.printer.to_text(rich_model()).encode(), "textual form", "onnx.parser"),
    "JSON": (json.dumps({"a": 1}).encode(), "JSON", "holds no model"),
    "XML": (b'<?xml version="1.0"?><net name="m"/>', "XML", "export from the framework"),
    "gzip": (gzip.compress(rich_model().SerializeToString()), "gzip", "unpack"),
    "tar": (saved(tarred), "tar archive", "unpack"),
    "a model in a zip": (zipped("model.onnx"), "zip archive with an .onnx", "unpack"),
    "any zip": (zipped("notes.txt"), "zip archive", "unpack"),
    "damaged zip": (zipped("model.onnx")[:20], "zip archive", "unpack"),
}


@pytest.mark.parametrize("name", FILES)
def test_foreign_files_are_told_what_they_are_and_what_to_do(name: str, tmp_path: Path) -> None:
    content, kind, hint = FILES[name]
    path = tmp_path / "model.onnx"
    path.write_bytes(content)
    for source in (path, content):
        with pytest.raises(ep.ModelFormatError, match=r"it is not an ONNX model, but an? ") as caught:
            ep.load(source)
        assert kind in caught.value.message
        assert hint in (caught.value.hint or "")


@pytest.mark.parametrize("suffix", [".onnx", ".pt", ".safetensors", ""])
@pytest.mark.parametrize(
    "name", [name for name in FILES if name not in ("SavedModel", "TFLite", "HDF5", "Keras")]
)  # which it takes
def test_export_tells_the_same_of_them(name: str, suffix: str, tmp_path: Path) -> None:
    content, kind, hint = FILES[name]
    path = tmp_path / f"model{suffix}"
    path.write_bytes(content)
    with pytest.raises(ep.InputError) as caught:
        ep.export(path, np.ones(2, np.float32))
    assert f"cannot export '{path}': it is a" in caught.value.message
    assert kind in caught.value.message
    assert hint in (caught.value.hint or "")


def test_models_are_not_taken_for_anything_else() -> None:
    models = [rich_model().SerializeToString(), onnx.helper.make_model(onnx.GraphProto()).SerializeToString()]
    assert [recognised(model) for model in models] == [None, None]
    assert recognised(b"") is None


def test_folders_with_a_saved_model_are_recognised(tmp_path: Path) -> None:
    (tmp_path / "saved_model.pb").write_bytes(tensorflow())
    with pytest.raises(ep.ModelFormatError, match="a TensorFlow SavedModel"):
        ep.load(tmp_path)


def test_weights_larger_than_a_protobuf_are_recognised_too(tmp_path: Path) -> None:
    path = tmp_path / "weights.safetensors"
    with path.open("wb") as file:
        file.write(safetensors.numpy.save(ARRAYS))
        file.truncate((1 << 31) + 10)  # a hole: nothing is written
    with pytest.raises(ep.ModelFormatError, match="safetensors"):
        ep.load(path)


def test_missing_files_are_nothing(tmp_path: Path) -> None:
    assert recognised(tmp_path / "missing") is None
