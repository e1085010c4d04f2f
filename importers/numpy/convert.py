"""A model as Python over NumPy: a function of its own, in memory or as a folder that runs without the model."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from entrepot.importers.numpy.source import written
from entrepot.importers.numpy.weights import load_weights, write_weights
from entrepot.ir.arguments import as_path
from entrepot.ir.errors import InputError
from entrepot.ir.io.destination import destination, write_file
from entrepot.ir.io.read import load
from entrepot.ir.limits import Limits
from entrepot.runtime.emitting.emit import executed

if TYPE_CHECKING:
    from entrepot.ir.io.read import Source


@dataclass(frozen=True, repr=False)
class NumpyModel:
    """A model as a function on NumPy arrays: ``y = model(x)``; several results are a tuple.

    Attributes:
        source: Its text, which stands for itself next to the weights.
        weights: The arrays that the text refers to by name.
    """

    source: str
    weights: dict[str, np.ndarray[Any, Any]]
    _function: Any

    def __call__(self, *arrays: Any, **named: Any) -> Any:
        """Run it.

        Args:
            arrays: The first inputs, in order; NumPy arrays of the types that the model declares.
            named: Other inputs, by the names that the function gives them.

        Raises:
            InputError: Inputs are missing, or there are more than the function takes.
        """
        try:
            bound = self._signature.bind(*arrays, **named)
        except TypeError as error:
            raise InputError(f"{error}", hint=f"it is called as {self._function.__name__}{self._signature}") from error
        return self._function(*bound.args, **bound.kwargs)

    def __repr__(self) -> str:
        return f"<NumpyModel {self._function.__name__}{self._signature}>"

    @property
    def _signature(self) -> Any:
        import inspect

        return inspect.signature(self._function)


def to_numpy(
    model: Source, *, source: str | os.PathLike[str] | None = None, limits: Limits | None = None
) -> NumpyModel:
    """The model as a function on NumPy arrays, which can be read, changed and kept without the model.

    Args:
        model: A ``Model``, or anything ``load`` reads.
        source: A folder to write ``model.py`` and ``weights.npz`` to, made if it is missing. The file has one function,
            named after the graph, which needs NumPy and entrepot's kernels and nothing of the model.
        limits: Bounds on what the model may cost.

    Returns:
        The function; what is in the folder is the same text.

    Raises:
        UnsupportedOpError: Nodes have no kernel; all of them are named.
        ConversionError: The model cannot be brought to the hub's opset.
        StorageError: The folder cannot be written.
    """
    folder = None if source is None else Path(as_path(source, "source"))
    loaded = load(model, limits=limits)
    text = written(loaded, Limits.of(limits))
    if folder is None:
        space = executed(text.module.replace(text.loading, "weights = {}", 1), f"<entrepot {text.name}>", {})
        space["weights"].update(text.weights)
        return NumpyModel(text.module, text.weights, space[text.name])
    _save(folder, text.module, text.weights)
    file = folder / "model.py"
    space = executed(text.module, str(file), {"__file__": os.path.abspath(file), "__name__": "model"})
    return NumpyModel(text.module, space["weights"], space[text.name])


def _save(folder: Path, module: str, weights: dict[str, np.ndarray[Any, Any]]) -> None:
    """The weights first: a text without them does not run."""
    place = destination(folder / "model.py")
    with place.errors():
        os.makedirs(folder, exist_ok=True)
    write_file(folder / "weights.npz", lambda file: write_weights(file, weights))
    write_file(folder / "model.py", lambda file: file.write(module.encode()))


__all__ = ["NumpyModel", "load_weights", "to_numpy"]
