"""Which exporter takes a thing: ours first, then those that other distributions register."""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from entrepot.exporters.recognition import Found, is_jax, is_keras, is_onnx, is_sklearn, is_tensorflow, is_torch
from entrepot.ir.arguments import as_path
from entrepot.ir.errors import EntrepotError, InputError, MissingDependencyError
from entrepot.ir.plugins import plugins

if TYPE_CHECKING:
    from entrepot.exporters.exporter import Exporter

_NEEDED = ("name", "recognises", "export", "verify")


@dataclass(frozen=True)
class Room:
    """An exporter of ours, which is imported when it is needed.

    Attributes:
        home: The module whose ``EXPORTER`` it is.
        recognises: Whether a thing is for it, told without importing the framework.
        extra: What to install for it.
        framework: The package of its framework.
        oldest: The oldest release of that which is supported.
    """

    home: str
    recognises: Callable[[Found], bool]
    extra: str = ""
    framework: str = ""
    oldest: str = ""

    def open(self) -> Exporter:
        """The exporter.

        Raises:
            MissingDependencyError: Its framework is not installed, or is too old.
        """
        try:
            self._check_release()
            exporter: Exporter = importlib.import_module(self.home).EXPORTER
        except ModuleNotFoundError as error:
            if (error.name or "").startswith("entrepot"):
                raise
            raise MissingDependencyError(
                f"'{error.name}' is needed to export this", hint=f"pip install 'entrepot[{self.extra}]'"
            ) from error
        return exporter

    def _check_release(self) -> None:
        """Refuse a framework that is too old before anything is imported that it may lack."""
        if not self.framework:
            return
        release = str(importlib.import_module(self.framework).__version__)
        if _numbers(release) < _numbers(self.oldest):
            raise MissingDependencyError(
                f"{self.framework} {release} is installed, and exports need {self.oldest} or newer",
                hint=f"pip install --upgrade 'entrepot[{self.extra}]'",
            )


def _numbers(release: str) -> tuple[int, ...]:
    """The first two numbers of a release."""
    return tuple(int(each) for each in re.findall(r"\d+", release)[:2])


ROOMS = (
    Room("entrepot.exporters.onnx.exporter", is_onnx),
    Room("entrepot.exporters.keras.exporter", is_keras, "tensorflow", "keras", "3.15"),  # its backend's models, too
    Room("entrepot.exporters.torch.exporter", is_torch, "torch", "torch", "2.13"),
    Room("entrepot.exporters.sklearn.exporter", is_sklearn, "sklearn", "sklearn", "1.9"),
    Room("entrepot.exporters.tensorflow.exporter", is_tensorflow, "tensorflow", "tensorflow", "2.21"),
    Room("entrepot.exporters.jax.exporter", is_jax, "jax", "jax", "0.10"),
)
"""In the order in which they are asked; a new framework adds a line."""


def exporter_of(obj: Any, sample: Any = None) -> Exporter:
    """The exporter that takes an object, a file or a folder.

    Raises:
        InputError: None does.
        MissingDependencyError: Its framework is not installed.
        PluginError: None does, and one that somebody else registers is broken.
    """
    found = Found.of(obj, sample)
    if found.path is not None:
        as_path(obj, "the model")
    is_model = not isinstance(obj, type)  # which may be of a framework by its metaclass
    room = next((room for room in ROOMS if is_model and room.recognises(found)), None)
    return room.open() if room is not None else _registered(found)


def _registered(found: Found) -> Exporter:
    broken: EntrepotError | None = None
    for plugin in plugins("exporters"):
        try:
            exporter: Exporter = plugin.load(needs=_NEEDED)
        except EntrepotError as error:
            broken = broken or error
            continue
        if exporter.recognises(found):
            return exporter
    raise broken or _unknown(found)


_FOLDERS = "a folder may hold a SavedModel, in saved_model.pb, or a checkpoint of transformers, beside config.json"
_FILES = (
    "give an ONNX model, or a file of PyTorch (.pt2), Keras (.keras, .h5), TensorFlow (.pb, .meta, .tflite), "
    "jax.export, XGBoost, LightGBM or CatBoost"
)


def _unknown(found: Found) -> InputError:
    hint = "give a model of PyTorch, Keras, TensorFlow, JAX or scikit-learn, a function of tensors, or a model file"
    if isinstance(found.obj, type):
        name = found.obj.__name__
        return InputError(f"{name} is a class, not a model", hint=f"export an instance: ep.export({name}(...), sample)")
    if found.path is None and callable(found.obj):
        name = getattr(found.obj, "__name__", type(found.obj).__name__)
        return InputError(
            f"neither '{name}' nor its sample says of which framework it is",
            hint=f"give a Python function and the framework's tensors: ep.export(lambda x: {name}(x), torch.ones(2))",
        )
    if found.path is None:
        kind = type(found.obj)
        return InputError(f"cannot export a {kind.__module__}.{kind.__qualname__}", hint=hint)
    if not os.path.exists(found.path):
        return InputError(f"cannot tell what '{found.path}' is: it does not exist", hint="check the path")
    if found.foreign is None:
        return InputError(f"cannot tell what '{found.path}' is", hint=_FOLDERS if found.is_folder else _FILES)
    return InputError(f"cannot export '{found.path}': it is {found.foreign.kind}", hint=found.foreign.hint)
