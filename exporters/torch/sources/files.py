"""Files that torch writes: exported programs (``.pt2``) and TorchScript (``.pt``, ``.ts``)."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import torch

from entrepot.exporters.torch.running.errors import MODEL_ERRORS
from entrepot.exporters.torch.running.guard import quiet
from entrepot.ir.errors import InputError, MissingFileError, ModelFormatError


def read(path: str | os.PathLike[str]) -> torch.export.ExportedProgram | torch.jit.ScriptModule:
    """What a file contains, judged by its contents; a pickle is not opened.

    Raises:
        MissingFileError: There is no such file.
        InputError: It contains pickled objects, and loading those runs whatever code they name.
        ModelFormatError: It is not in any of torch's formats, or torch cannot read it.
    """
    path = Path(path)
    if not path.is_file():
        raise MissingFileError("there is no such file", path=path)
    kind = _kind(path)
    try:
        with quiet():
            return torch.export.load(path) if kind == "program" else torch.jit.load(str(path), map_location="cpu")
    except MODEL_ERRORS as error:
        first = next(iter(str(error).splitlines()), type(error).__name__)
        raise ModelFormatError(f"torch cannot read it: {first}", path=path) from error


def _kind(path: Path) -> str:
    if not zipfile.is_zipfile(path):
        raise ModelFormatError("neither an exported program nor TorchScript: not a zip archive", path=path)
    with zipfile.ZipFile(path) as archive:
        parts = {part for name in archive.namelist() for part in name.split("/")[1:]}
    if "models" in parts or "serialized_exported_program.json" in parts:
        return "program"
    if "constants.pkl" in parts and "code" in parts:
        return "script"
    raise InputError(
        "the file contains pickled objects, and loading those can run any code",
        path=path,
        hint="load it yourself and export the module, or save it with torch.export.save or torch.jit.save",
    )
