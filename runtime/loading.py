"""``load``: a model from a file, or a package from a folder."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from entrepot.ir.limits import Limits

if TYPE_CHECKING:
    import onnx
    import onnx_ir

    from entrepot.ir.arguments import PathLike
    from entrepot.ir.io.read import Trust
    from entrepot.ir.model import Model


@overload
def load(
    source: bytes | onnx.ModelProto | onnx_ir.Model | Model, *, limits: Limits | None = ..., trust: Trust = ...
) -> Model: ...


@overload
def load(source: PathLike, *, limits: Limits | None = ..., trust: Trust = ...) -> Any: ...


def load(source: Any, *, limits: Limits | None = None, trust: Trust = "untrusted") -> Any:
    """Read a model, or the folder of a ``Package``.

    Nothing in it is changed, no code in it is run, and its weights files are mapped, not copied.

    Args:
        source: Path of an ``.onnx`` file, of any opset and with its nodes in any order; its bytes, an
            ``onnx.ModelProto``, an ``onnx_ir.Model`` or a ``Model``; or a folder that ``Package.save`` wrote. An
            ``onnx_ir.Model`` and a ``Model`` are taken as they are; the others are checked thoroughly.
        limits: Bounds on what the file may ask for; the defaults admit every real model.
        trust: ``"trusted"`` lifts the limits, and the rule that external data stays in the model's folder even by
            links. Validity is checked all the same.

    Returns:
        A ``Model``, or a ``Package`` for a folder; neither depends on ``source`` any longer, except for weights files.

    Raises:
        ModelFormatError: The source is not a valid model; the message names file, graph, node and cause.
        ResourceLimitError: It asks for more than ``limits`` allows.
        MissingFileError: There is no such file (a ``FileNotFoundError``).
        StorageError: The file cannot be read (an ``OSError``).
        InputError: ``source`` or ``trust`` is none of the things above.
    """
    from entrepot.ir.io import read

    if isinstance(source, str | os.PathLike) and not os.path.isfile(source):
        from entrepot.runtime.generation import folder

        folder.check_whole(Path(os.fspath(source)))
        if folder.is_package(os.fspath(source)):
            return folder.load(os.fspath(source), limits=limits)
    return read.load(source, limits=limits, trust=trust)
