"""A module as a folder: its text, its weights, and what it needs."""

from __future__ import annotations

import os
from pathlib import Path

from entrepot.importers.torch.source import Text
from entrepot.ir.io.destination import destination, write_file
from entrepot.runtime.providers.torch.dtypes import tensor_of

_NEEDS = (("import numpy", "numpy"), ("import ml_dtypes", "ml_dtypes"), ("import onnx_ir", "onnx-ir"))


def save(folder: Path, text: Text) -> None:
    """Write all three; the weights first, as a text without them does not run."""
    from safetensors.torch import save as packed

    place = destination(folder / "model.py")
    with place.errors():
        os.makedirs(folder, exist_ok=True)
    kept = {name: array for name, array in text.tensors.items() if name not in {*text.ties, *text.unsaved}}
    weights = packed({name: tensor_of(array).contiguous().clone() for name, array in kept.items()})
    needed = ["torch>=2.4", "safetensors", *(name for line, name in _NEEDS if line in text.module)]
    write_file(folder / "model.safetensors", lambda file: file.write(weights))
    write_file(folder / "requirements.txt", lambda file: file.write(("\n".join(needed) + "\n").encode()))
    write_file(folder / "model.py", lambda file: file.write(text.module.encode()))
