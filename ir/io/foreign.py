"""Files that are not ONNX models, recognised by their content: what they are, and what to do instead."""

from __future__ import annotations

import io
import os
import re
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

_HEAD = 1 << 16
"""Bytes that are looked at; a zip archive is judged by its list of members."""


@dataclass(frozen=True)
class Foreign:
    """A kind of file.

    Attributes:
        kind: What it is, with its article.
        hint: How to get an ONNX model from it.
        framework: Whose exporter takes some files of this kind; empty if nobody's.
    """

    kind: str
    hint: str
    framework: str = ""


_WEIGHTS = "weights have no graph: build the model in its framework, load them into it, and give that to ep.export"
_KERAS = "give it to ep.export, or the model that keras.models.load_model makes of it"
_GIVE = "give it to ep.export"
_TORCH = (
    "loading it can run any code, so load it yourself (weights into their module) and give the module to ep.export, "
    "or save it with torch.export.save or torch.jit.save"
)
_ESTIMATOR = (
    "loading it can run any code, so load it yourself if you trust it, with joblib.load or pickle.load, and give the "
    "estimator to ep.export, with some rows of its data"
)
_PACKED = "unpack it first"
_SOURCE = "export from the framework that the model was made with"
_DATA = "it holds arrays, not a model"

_KERAS_FOLDER = Foreign("a model of Keras, unpacked", _GIVE, framework="keras")
_SAVED_MODEL = Foreign("a TensorFlow SavedModel", _GIVE, framework="tensorflow")

_ROWS = "give it to ep.export, with some rows of its data"
XGBOOST = Foreign("a model of XGBoost", _ROWS, framework="sklearn")
LIGHTGBM = Foreign("a model of LightGBM", _ROWS, framework="sklearn")
CATBOOST = Foreign("a model of CatBoost", _ROWS, framework="sklearn")

_PROGRAM = Foreign("an exported program or TorchScript of PyTorch", "give it to ep.export", framework="torch")

_SIGNATURES: tuple[tuple[int, bytes, Foreign], ...] = (
    (0, b"\x89HDF\r\n\x1a\n", Foreign("an HDF5 file, as Keras writes with the suffix .h5", _KERAS, framework="keras")),
    (0, b"CBM1", CATBOOST),
    (0, b"GGUF", Foreign("a GGUF file of llama.cpp", _WEIGHTS)),
    (0, b"\x93NUMPY", Foreign("a NumPy array", _DATA)),
    (4, b"TFL3", Foreign("a TensorFlow Lite model", _GIVE, framework="tensorflow")),
    (4, b"ORTM", Foreign("a model in onnxruntime's own format", "it was made from an .onnx file: use that one")),
    (257, b"ustar", Foreign("a tar archive", _PACKED)),
    (0, b"\x1f\x8b", Foreign("a gzip archive", _PACKED)),
    (0, b"BZh", Foreign("a bzip2 archive", _PACKED)),
    (0, b"\xfd7zXZ\x00", Foreign("an xz archive", _PACKED)),
    (0, b"\x28\xb5\x2f\xfd", Foreign("a zstandard archive", _PACKED)),
    (0, b"7z\xbc\xaf\x27\x1c", Foreign("a 7-zip archive", _PACKED)),
    (0, b"Rar!\x1a\x07", Foreign("a RAR archive", _PACKED)),
    (0, b"%PDF-", Foreign("a PDF document", "it is not a model")),
    (0, b"\x7fELF", Foreign("a compiled program", "it is not a model")),
    (
        0,
        b"version https://git-lfs.github.com/spec/",
        Foreign("a pointer of Git LFS, not the file itself", "run git lfs pull"),
    ),
)

_ZIPPED: tuple[tuple[str, Foreign], ...] = (
    (r"(^|/)model\.weights\.h5$", Foreign("a Keras model", _KERAS, framework="keras")),
    (r"(^|/)constants\.pkl$|(^|/)serialized_exported_program\.json$|/models/", _PROGRAM),
    (
        r"(^|/)data\.pkl$",
        Foreign("a file of PyTorch that contains pickled objects, such as weights or a whole module", _TORCH),
    ),
    (r"\.npy$", Foreign("a NumPy archive of arrays (.npz)", _DATA)),
    (r"\.mlmodel$", Foreign("a Core ML package", _SOURCE)),
    (r"(^|/)saved_model\.pb$", Foreign("a zipped SavedModel of TensorFlow", f"unpack it and {_GIVE}")),
    (r"\.onnx$", Foreign("a zip archive with an .onnx file inside", _PACKED)),
    (r"", Foreign("a zip archive", _PACKED)),
)


_FOLDERS: tuple[tuple[Foreign, tuple[str, ...]], ...] = (
    (_SAVED_MODEL, ("saved_model.pb",)),
    (_KERAS_FOLDER, ("model.weights.h5", "config.json", "metadata.json")),
)


def recognised(content: Path | bytes) -> Foreign | None:
    """What a file or folder is, if it is certainly not an ONNX model; else, or if it cannot be read, ``None``.

    Args:
        content: The file, a folder, or the bytes of a file. Nothing in it is loaded or run.
    """
    if isinstance(content, Path):
        for found, names in _FOLDERS:
            if all(os.path.isfile(content / name) for name in names):  # unlike pathlib, it takes any name
                return found
    try:
        with io.BytesIO(content) if isinstance(content, bytes) else content.open("rb") as file:
            return _kind(file)
    except (OSError, ValueError):  # ValueError: a NUL in the path
        return None


def _kind(file: BinaryIO) -> Foreign | None:
    head = file.read(_HEAD)
    for offset, magic, found in _SIGNATURES:
        if head.startswith(magic, offset):
            return found
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return _zipped(file)
    return next((found for test, found in _TESTS if test(head)), None)


def _zipped(file: BinaryIO) -> Foreign:
    try:
        with zipfile.ZipFile(file) as archive:
            names = archive.namelist()
    except (zipfile.BadZipFile, ValueError, NotImplementedError):
        names = []
    return next(found for pattern, found in _ZIPPED if not pattern or any(re.search(pattern, name) for name in names))


def _is_safetensors(head: bytes) -> bool:
    """Eight bytes of length, then that much JSON."""
    return len(head) > 9 and head[8:9] == b"{" and 2 <= int.from_bytes(head[:8], "little") < 1 << 30


def _is_pickle(head: bytes) -> bool:
    """Protocols 2 to 5 begin with their number; the first opcodes are a frame, a memo, a container or a name."""
    return len(head) > 3 and head[0] == 0x80 and 2 <= head[1] <= 5 and head[2:3] in b"\x95}](c\x8a\x8cKXqN\x89\x88G"


def _is_tabular(head: bytes) -> bool:
    """A pickle that names classes of scikit-learn or of a library like it."""
    return _is_pickle(head) and any(name in head for name in (b"sklearn.", b"xgboost.", b"lightgbm.", b"catboost."))


def _is_compressed(head: bytes) -> bool:
    """A pickle behind zlib, as joblib compresses it."""
    if head[:1] != b"\x78":
        return False
    try:
        return _is_pickle(zlib.decompressobj().decompress(head, 64))
    except zlib.error:
        return False


def _is_tensorflow(head: bytes) -> bool:
    """A SavedModel or a frozen graph: protobufs as well, whose operators are spelled out."""
    return head[:1] in b"\x08\x0a" and bool(
        re.search(rb"\x12\x0bPlaceholder|NoOp|VarHandleOp|serving_default|AttrValue", head)
    )


def is_text_of_graph(head: bytes) -> bool:
    """A graph of TensorFlow as text, a ``.pbtxt``: nodes, before which there may be comments and a library."""
    return (
        re.match(rb"(\s|#[^\n]*\n)*(node|library|versions)\s*\{\s*(name|op|function|signature|producer)\b", head)
        is not None
    )


def _is_stablehlo(head: bytes) -> bool:
    """A flatbuffer with a program of StableHLO inside, as ``jax.export`` writes."""
    return head.find(b"ML\xefR") > 4 and b"StableHLO_v" in head


def _starts(*texts: str) -> Callable[[bytes], bool]:
    """Whether a text begins with one of these, spaces and case aside."""

    def test(head: bytes) -> bool:
        return head[:4096].lstrip(b"\xef\xbb\xbf \t\r\n").lower().startswith(tuple(text.encode() for text in texts))

    return test


def _matches(pattern: bytes) -> Callable[[bytes], bool]:
    """Whether a file begins with what a pattern describes."""
    return lambda head: re.match(pattern, head) is not None


_TESTS: tuple[tuple[Callable[[bytes], bool], Foreign], ...] = (
    (_is_safetensors, Foreign("a safetensors file: weights without a graph", _WEIGHTS)),
    (_is_tabular, Foreign("a Python pickle of an estimator", _ESTIMATOR)),
    (_is_pickle, Foreign("a Python pickle", _TORCH)),
    (_is_compressed, Foreign("a compressed Python pickle, as joblib writes", _ESTIMATOR)),
    (_starts("tree\nversion="), LIGHTGBM),
    (_matches(rb'\{(L\0{7}\x07learner|\s*"learner"\s*:)'), XGBOOST),  # UBJSON or JSON
    (_matches(rb'\{\s*"(features_info|ctr_data|model_info|oblivious_trees)"\s*:'), CATBOOST),
    (
        _starts("<!doctype html", "<html"),
        Foreign("a web page, such as an error page saved by a download", "download it again"),
    ),
    (_starts("<?xml"), Foreign("an XML file, such as OpenVINO's", _SOURCE)),
    (
        _matches(rb"\s*<\s*ir_version"),
        Foreign("a model in ONNX's textual form", "read it with onnx.parser.parse_model"),
    ),
    (_starts("{", "["), Foreign("a JSON file", "it describes something, but holds no model")),
    (_is_tensorflow, Foreign("a graph of TensorFlow", _GIVE, framework="tensorflow")),
    (is_text_of_graph, Foreign("a graph of TensorFlow as text", _GIVE, framework="tensorflow")),
    (_is_stablehlo, Foreign("a function that jax.export wrote", _GIVE, framework="jax")),
)
