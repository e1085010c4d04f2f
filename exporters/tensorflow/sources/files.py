"""Files and folders of TensorFlow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from entrepot.exporters.exporter import Source
from entrepot.exporters.recognition import Found, checkpoint_prefix, split_signature
from entrepot.exporters.tensorflow.sources.callable import CallableSource
from entrepot.exporters.tensorflow.sources.frozen import opened_checkpoint, opened_graph
from entrepot.exporters.tensorflow.sources.lite import opened_lite
from entrepot.exporters.tensorflow.sources.saved import opened_folder


def read(name: str, sample: Any) -> Source:
    """The source for a SavedModel, a frozen graph or a checkpoint.

    Args:
        name: Where it is; of a SavedModel, a signature may follow: ``folder#name``.
        sample: What it is called with; it may be left out where the file says which shapes it takes.

    Raises:
        ModelFormatError: It cannot be read.
        InputError: It has no such signature.
    """
    path, signature = split_signature(Path(name))
    if path.name == "saved_model.pb":
        path = path.parent
    if (path / "saved_model.pb").is_file():
        return CallableSource(opened_folder(path, signature), sample)
    if Found.of(path).head[4:8] == b"TFL3":
        return CallableSource(opened_lite(path), sample)
    prefix = checkpoint_prefix(path)
    if prefix is not None:
        return CallableSource(opened_checkpoint(prefix), sample)
    return CallableSource(opened_graph(path), sample)
