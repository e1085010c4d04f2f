"""A model as a ``torch.nn.Module`` to read, train and keep, built from the text that it shows."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from entrepot.ir.arguments import as_flag, as_path
from entrepot.ir.errors import MissingDependencyError
from entrepot.ir.io.read import load
from entrepot.ir.limits import Limits
from entrepot.parity.tolerance import Tolerance

if TYPE_CHECKING:
    from torch import nn

    from entrepot.ir.io.read import Source
    from entrepot.parity.tolerance import ToleranceLike


def to_torch(
    model: Source,
    *,
    source: str | os.PathLike[str] | None = None,
    verify: bool = True,
    sample: Any = None,
    tolerance: ToleranceLike | None = None,
    limits: Limits | None = None,
) -> nn.Module:
    """The model as a module of torch, with the layers, the names and the weights of the network that it was.

    Its ``source()`` is the text that it was built from, and its ``report`` the proof that it computes the same thing.

    Args:
        model: A ``Model``, or anything ``load`` reads.
        source: A folder to write ``model.py``, ``model.safetensors`` and ``requirements.txt`` to, made if it is
            missing; and ``buffers.safetensors`` where large buffers are in no state. The text needs torch and
            safetensors, and nothing of the model.
        verify: Whether to run the module beside the model, on our cpu provider and on onnxruntime where it is
            installed, at several sizes of every axis that varies.
        sample: What to run them on, in any form that a session takes; made up if left out.
        tolerance: See ``compare``.
        limits: Bounds on what the model may cost.

    Returns:
        The module, in evaluation mode; it takes the model's inputs by position, or by the names of its ``forward``.

    Raises:
        UnsupportedOpError: Nodes have neither a word of torch, nor a meaning of ours.
        ConversionError: The model cannot be brought to the hub's opset, or torch refuses the arguments of a layer.
        VerificationError: The module computes something different, or nothing could be run; it carries the report.
        StorageError: The folder cannot be written.
    """
    _require_torch()
    from entrepot.importers.torch.build import built
    from entrepot.importers.torch.folder import save
    from entrepot.importers.torch.proof import prove
    from entrepot.importers.torch.text.source import written

    folder = None if source is None else Path(as_path(source, "source"))
    agreed = Tolerance.of(tolerance)
    wanted = as_flag(verify, "verify")
    loaded = load(model, limits=limits)
    text = written(loaded, Limits.of(limits))
    module = built(text)
    if wanted:
        report = prove(module, loaded, sample, agreed)
        if hasattr(type(module), "report"):  # no layer has the name
            module.report = report  # type: ignore[assignment]
    if folder is not None:
        save(folder, text)
    return module


def _require_torch() -> None:
    if find_spec("torch") is None:
        raise MissingDependencyError("torch is not installed", hint="pip install 'entrepot[torch]'")
