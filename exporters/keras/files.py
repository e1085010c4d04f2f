"""Files that Keras writes: ``.keras`` and ``.h5``. Nothing in them is run, and nothing is unpacked without bounds."""

from __future__ import annotations

import json
import os
import warnings
import zipfile
from pathlib import Path
from typing import Any

import h5py
import keras

from entrepot.exporters.keras.reading.reader import FAULTS
from entrepot.ir.errors import InputError, MissingFileError, ModelFormatError
from entrepot.ir.limits import Limits

_CODE = "load it yourself, if you trust it, with keras.models.load_model(path, safe_mode=False), and export the model"
_WEIGHTS = "build the model, model.load_weights(path), and export the model"
_RATIO = 1_000
"""How many times as large as the file what is packed in it may be; weights hardly shrink."""


def read(path: str | os.PathLike[str], limits: Limits | None = None) -> Any:
    """The model in a file, judged by its contents.

    Raises:
        MissingFileError: There is no such file.
        InputError: It holds weights alone, or code, or layers of somebody else, or is of a later Keras.
        ModelFormatError: Keras cannot read it, or it is larger inside than it should be.
    """
    path = Path(path)
    if not path.is_file():
        raise MissingFileError("there is no such file", path=path)
    config = _zipped(path, Limits.of(limits)) if zipfile.is_zipfile(path) else _plain(path)
    if code := _first(config, "Lambda"):
        raise InputError(f"layer '{code}' of '{path}' is a Lambda, whose code would be run", hint=_CODE)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return keras.models.load_model(path, compile=False, safe_mode=True)
    except (*FAULTS, OSError) as error:
        raise _refusal(path, str(error)) from error


def _refusal(path: Path, why: str) -> InputError | ModelFormatError:
    first = next((line for line in why.strip().splitlines() if line), "no reason")
    if "registered" in why or "custom" in why or "Unknown layer" in why:
        return InputError(
            f"'{path}' has layers that are not Keras' own: {first}",
            hint="keras.models.load_model(path, custom_objects={...}), and export the model",
        )
    return ModelFormatError(f"keras {keras.__version__} cannot read it: {first}", path=path)


def _zipped(path: Path, limits: Limits) -> Any:
    """The description of a model in a ``.keras`` file."""
    with zipfile.ZipFile(path) as archive:
        whole = sum(member.file_size for member in archive.infolist())
        if whole > min(limits.total_bytes, max(_RATIO * path.stat().st_size, 1 << 20)):
            raise ModelFormatError(f"it would unpack to {whole} bytes from {path.stat().st_size}", path=path)
        try:
            described = json.loads(archive.read("config.json"))
            written = json.loads(archive.read("metadata.json"))["keras_version"]
        except (KeyError, ValueError, TypeError) as error:
            raise ModelFormatError(
                "it has no description of a model, config.json and metadata.json", path=path
            ) from error
    needed, here = _major(str(written)), _major(keras.__version__)
    if needed > here:
        raise InputError(
            f"'{path}' was written by keras {written}, and keras {keras.__version__} is installed",
            hint=f"pip install 'keras>={needed}', or save the model with keras {here}",
        )
    return described


def _major(release: str) -> int:
    """The first number of a release, with which what a layer means may change."""
    first = release.partition(".")[0]
    return int(first) if first.isdecimal() else 0


def _plain(path: Path) -> Any:
    """The description of a model in an ``.h5`` file."""
    if path.suffix == ".keras":
        raise ModelFormatError("it is no archive of Keras, or is cut off", path=path)
    try:
        with h5py.File(path, "r") as file:
            text = file.attrs.get("model_config")
    except OSError as error:
        raise ModelFormatError(f"it is no HDF5 file: {error}", path=path) from error
    if text is None:
        raise InputError(f"'{path}' holds weights without a model", hint=_WEIGHTS)
    try:
        return json.loads(text)
    except ValueError as error:
        raise ModelFormatError("the description of its model is no JSON", path=path) from error


def _first(config: Any, kind: str) -> str:
    """The name of the first layer of a class in a description."""
    pending = [config]
    while pending:
        item = pending.pop()
        if isinstance(item, dict):
            if item.get("class_name") == kind:
                inner = item.get("config")
                return str(inner.get("name", kind) if isinstance(inner, dict) else kind)
            pending.extend(item.values())
        elif isinstance(item, list):
            pending.extend(item)
    return ""
