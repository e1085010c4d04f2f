"""Safe reading: a file becomes a ``Model`` or a typed error, and nothing in it is run."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any, Literal, TypeAlias

import onnx
import onnx_ir
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

from entrepot.ir.arguments import expected
from entrepot.ir.collector import collector_paused
from entrepot.ir.errors import MissingFileError, ModelFormatError, StorageError
from entrepot.ir.io.build import build_model
from entrepot.ir.io.bulk import InMemory, split
from entrepot.ir.io.context import Context
from entrepot.ir.io.external import DataFolder, read_file
from entrepot.ir.io.foreign import recognised
from entrepot.ir.io.parsed import Parsed
from entrepot.ir.io.survey import survey
from entrepot.ir.io.tensors import TensorReader
from entrepot.ir.limits import Limits
from entrepot.ir.model import Model

Source: TypeAlias = "str | os.PathLike[str] | bytes | onnx.ModelProto | onnx_ir.Model | Model"
_PROTOBUF_LIMIT = (1 << 31) - 1

Trust: TypeAlias = Literal["untrusted", "trusted"]


def load(source: Source, *, limits: Limits | None = None, trust: Trust = "untrusted") -> Model:
    """Read a model; nothing in it is changed, no code in it is run, and its weights files are mapped, not copied.

    A file may be of any opset, and its nodes in any order.

    Args:
        source: Path of an ``.onnx`` file, its bytes, an ``onnx.ModelProto``, an ``onnx_ir.Model`` or a ``Model``.
            The last two are taken as they are; the others are checked thoroughly.
        limits: Bounds on what the file may ask for; the defaults admit every real model.
        trust: ``"trusted"`` lifts the limits, and the rule that external data stays in the model's folder even by
            links. Validity is checked all the same.

    Returns:
        A model that no longer depends on ``source``, except for the weights files.

    Raises:
        ModelFormatError: The source is not a valid model; the message names file, graph, node and cause.
        ResourceLimitError: It asks for more than ``limits`` allows.
        MissingFileError: There is no such file (a ``FileNotFoundError``).
        StorageError: The file cannot be read (an ``OSError``).
        InputError: ``source`` or ``trust`` is none of the things above.
    """
    asked: Any = trust
    if not (isinstance(asked, str) and asked in ("untrusted", "trusted")):
        raise expected("trust", "'untrusted' or 'trusted'", trust)
    limits = Limits.of(limits) if limits is not None or trust == "untrusted" else Limits.unlimited()
    if isinstance(source, Model):
        return source
    if isinstance(source, onnx_ir.Model):
        return Model(source)
    path = _path(source) if isinstance(source, str | os.PathLike) else None
    context = Context(path, limits)
    if path is not None:
        proto = _parse(_content(path, context), context)
    elif isinstance(source, bytes | bytearray | memoryview):
        content, context.bulk = split(InMemory(bytes(source)))
        proto = _parse(content, context)
    elif isinstance(source, onnx.ModelProto):
        proto = source
    else:
        hint = "ep.export converts a framework's model"
        raise expected("the model", "a path, bytes, a ModelProto, an onnx_ir.Model or a Model", source, hint)
    base, links = None if path is None else Path(os.path.abspath(path)).parent, trust == "trusted"
    with collector_paused():
        if proto is not source and (parsed := _survey(proto, context, base, links)) is not None:
            return Model(parsed, path=path)
        return Model(build_model(proto, context, base, follow_links=links), path=path)


def _survey(proto: onnx.ModelProto, context: Context, base: Path | None, links: bool) -> Parsed | None:
    budget = Context(context.path, context.limits)  # what counts here, counts again when the graph is made
    budget.bulk = context.bulk
    return survey(proto, budget, TensorReader(budget, DataFolder(budget, base, follow_links=links)))


def _path(source: str | os.PathLike[str]) -> Path:
    try:
        return Path(source)
    except TypeError:  # a path as bytes
        raise expected("the model", "a path as text", source) from None


def _content(path: Path, context: Context) -> bytes:
    try:
        content, context.bulk = read_file(path, _PROTOBUF_LIMIT)
    except FileNotFoundError:
        raise MissingFileError("there is no such file", path=path) from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        number = getattr(error, "errno", None) or errno.EINVAL
        if number == errno.EFBIG:
            hint = "weights beyond 2 GiB lie in files beside the model"
            raise _foreign(path, context) or context.error("it is larger than a protobuf can be", hint=hint) from error
        if os.path.isdir(path):
            raise _foreign(path, context) or StorageError(
                "the file cannot be read: it is a folder, and has no entrepot.json as packages have",
                path=path,
                errno=errno.EISDIR,
                hint="name an .onnx file in it",
            ) from error
        raise StorageError(f"the file cannot be read: {error}", path=path, errno=number) from error
    return content


def _parse(content: bytes, context: Context) -> onnx.ModelProto:
    try:
        proto = onnx.ModelProto.FromString(content)
    except DecodeError as error:
        hint = "the file is truncated, damaged, nested too deeply, or not an ONNX model"
        what = f"it is not a protobuf of an ONNX model ({len(content)} bytes)"
        raise _foreign(content, context) or context.error(what, hint=hint) from error
    if not proto.HasField("graph") and (foreign := _foreign(content, context)) is not None:
        raise foreign  # other protobufs, and short files, can be read as a model in which nothing is
    return proto


def _foreign(content: Path | bytes, context: Context) -> ModelFormatError | None:
    """The error for a file that is something else, and says so."""
    found = recognised(content)
    return None if found is None else context.error(f"it is not an ONNX model, but {found.kind}", hint=found.hint)
