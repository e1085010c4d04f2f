"""A module as a folder: its text, its weights, and what it needs."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import BinaryIO

from entrepot.importers.torch.source import Text
from entrepot.ir.io.destination import write_folder
from entrepot.runtime.providers.torch.dtypes import tensor_of

_NEEDS = (("import numpy", "numpy"), ("import ml_dtypes", "ml_dtypes"), ("import onnx_ir", "onnx-ir"))


def save(folder: Path, text: Text) -> None:
    """Write all three or, where one cannot be written, none."""
    from safetensors.torch import save as packed

    kept = {name: array for name, array in text.tensors.items() if name not in {*text.ties, *text.unsaved}}
    weights = packed({name: tensor_of(array).contiguous().clone() for name, array in kept.items()})
    needed = ["torch>=2.4", "safetensors", *(name for line, name in _NEEDS if line in text.module)]
    contents = {
        "model.safetensors": weights,
        "requirements.txt": ("\n".join(needed) + "\n").encode(),
        "model.py": text.module.encode(),
    }
    write_folder(folder, {name: partial(_put, content) for name, content in contents.items()})


def _put(content: bytes, file: BinaryIO) -> None:
    file.write(content)
