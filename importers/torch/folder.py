"""A module as a folder: its text, its weights, and what it needs."""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import partial
from pathlib import Path
from typing import BinaryIO

from entrepot.importers.torch.text.source import Text
from entrepot.ir.io.destination import write_folder
from entrepot.runtime.providers.torch.dtypes import tensor_of

_NEEDS = (("import numpy", "numpy"), ("import ml_dtypes", "ml_dtypes"), ("import onnx_ir", "onnx-ir"))

_UNSHIFTED = re.compile(r"nn\.(Batch|Group|Instance)Norm\w*(\(|\):(?s:.*?)super\(\)\.__init__\().*bias=False")
"""Norms of channels with a weight and no bias, which came to torch after those of rows."""


def save(folder: Path, text: Text) -> None:
    """Write all of them or, where one cannot be written, none."""
    from safetensors.torch import save as packed

    def pack(names: Collection[str]) -> bytes:
        return packed({name: tensor_of(text.tensors[name]).contiguous().clone() for name in sorted(names)})

    own = text.tensors.keys() - text.ties.keys() - text.written
    oldest = "2.13" if _UNSHIFTED.search(text.module) else "2.4"
    needed = [f"torch>={oldest}", "safetensors", *(name for line, name in _NEEDS if line in text.module)]
    contents = {
        "model.safetensors": pack(own - text.beside),
        **({"buffers.safetensors": pack(own & text.beside)} if text.beside else {}),
        "requirements.txt": ("\n".join(needed) + "\n").encode(),
        "model.py": text.module.encode(),
    }
    write_folder(folder, {name: partial(_put, content) for name, content in contents.items()})


def _put(content: bytes, file: BinaryIO) -> None:
    file.write(content)
