"""What Keras writes: ``.keras``, ``.h5``, folders, and weights beside a description of their model.

Nothing in them is run, and nothing is unpacked without bounds.
"""

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
_WEIGHTS = "put what model.to_json() returns beside it, as '{}', or load the weights yourself and export the model"
_RATIO = 1_000
"""How many times as large as the file what is packed in it may be; weights hardly shrink."""


def read(path: str | os.PathLike[str], limits: Limits | None = None) -> Any:
    """The model in a file or folder, judged by its contents.

    Args:
        path: An archive, an HDF5 file of a model, a folder that an archive was unpacked to, or weights with the JSON
            description of their model beside them: ``net.json`` or ``config.json`` for ``net.weights.h5``.
        limits: How much may be read.

    Raises:
        MissingFileError: There is no such file.
        InputError: It holds weights alone, or code, or layers of somebody else, or is of a later Keras.
        ModelFormatError: Keras cannot read it, or it is larger inside than it should be.
    """
    path = Path(path)
    if not path.exists():
        raise MissingFileError("there is no such file", path=path)
    config, weights = _described(path, Limits.of(limits))
    if code := _first(config, "Lambda"):
        raise InputError(f"layer '{code}' of '{path}' is a Lambda, whose code would be run", hint=_CODE)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if not weights:
                return keras.models.load_model(path, compile=False, safe_mode=True)
            model = keras.saving.deserialize_keras_object(config, safe_mode=True)
            model.load_weights(path)
            return model
    except (*FAULTS, OSError) as error:
        raise _refusal(path, str(error)) from error


def _described(path: Path, limits: Limits) -> tuple[Any, bool]:
    """The description of a model, and whether it lay beside a file of weights."""
    if path.is_dir():
        return _checked(path, *((path / name).read_bytes() for name in _PARTS)), False
    if zipfile.is_zipfile(path):
        return _zipped(path, limits), False
    inside = _plain(path)
    if inside is not None:
        return inside, False
    stem = path.name.removesuffix(path.suffix).removesuffix(".weights")
    beside = [path.with_name(name) for name in (f"{stem}.json", "config.json")]
    found = next((each for each in beside if each.is_file()), None)
    if found is None:
        raise InputError(f"'{path}' holds weights without a model", hint=_WEIGHTS.format(beside[0]))
    return _json(found.read_bytes(), found), True


def _refusal(path: Path, why: str) -> InputError | ModelFormatError:
    lines = [line.strip() for line in why.splitlines() if line.strip()] or ["no reason"]
    first = " ".join(lines[:2]) if lines[0].endswith(":") else lines[0]
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
            return _checked(path, *(archive.read(name) for name in _PARTS))
        except KeyError as error:
            raise ModelFormatError(_UNDESCRIBED, path=path) from error


_PARTS = ("config.json", "metadata.json")
_UNDESCRIBED = "it has no description of a model, config.json and metadata.json"


def _checked(path: Path, config: bytes, metadata: bytes) -> Any:
    """The description of a model, unless a later Keras wrote it."""
    try:
        described = json.loads(config)
        written = json.loads(metadata)["keras_version"]
    except (KeyError, ValueError, TypeError) as error:
        raise ModelFormatError(_UNDESCRIBED, path=path) from error
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
    """The description of a model in an ``.h5`` file; nothing where it holds weights alone."""
    if path.suffix == ".keras":
        raise ModelFormatError("it is no archive of Keras, or is cut off", path=path)
    try:
        with h5py.File(path, "r") as file:
            text = file.attrs.get("model_config")
    except OSError as error:
        raise ModelFormatError(f"it is no HDF5 file: {error}", path=path) from error
    return None if text is None else _json(text, path)


def _json(text: str | bytes, path: Path) -> Any:
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
