"""How a model is called: with what the caller gave, or with what its inputs say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import keras
import numpy as np
from keras import tree

from entrepot.exporters.keras import upstream
from entrepot.exporters.sample import Sample
from entrepot.ir.errors import InputError

_SIZES = (2, 7, 9, 6, 5)
"""For axes of unknown size: of the batch, then of others."""
_LARGE = 32
"""For the unknown sizes of images, which have to last through a network's strides."""


def given_arrays(model: Any, sample: Any) -> list[Any]:
    """The arrays of a sample, in the order of a functional model's inputs.

    Raises:
        InputError: There are more or fewer, or others.
    """
    names = upstream.input_names(model)
    call = Sample.of(sample)
    if len(call.args) == 1 and not call.kwargs:
        items = call.args[0]
        if isinstance(items, Mapping):
            return _by_name(items, names, model)
        if len(names) == 1:
            return [_one(items, len(model.inputs[0].shape))]
        return _as_many(tree.flatten(items) if isinstance(items, list | tuple) else [items], names)
    if call.kwargs and not call.args:
        return _by_name(call.kwargs, names, model)
    return _as_many([*call.args, *call.kwargs], names)


def _as_many(items: Sequence[Any], names: Sequence[str]) -> list[Any]:
    if len(items) != len(names):
        raise InputError(f"the sample has {len(items)} arrays, the model takes {len(names)}: {', '.join(names)}")
    return list(items)


def _one(items: Any, rank: int) -> Any:
    """The only array, which may be alone in a list; a list of lists may be the array itself."""
    alone = isinstance(items, list | tuple) and len(items) == 1
    return items[0] if alone and not (_depth(items) == rank and isinstance(items[0], list | int | float)) else items


def _depth(items: Any) -> int:
    return 1 + _depth(items[0]) if isinstance(items, list | tuple) and items else 0


def _by_name(items: Mapping[str, Any], names: Sequence[str], model: Any) -> list[Any]:
    structure = upstream.input_structure(model)
    keys = list(structure) if isinstance(structure, Mapping) else []
    for wanted in (names, keys):
        if wanted and set(wanted) == set(items):
            return [items[name] for name in names] if wanted is names else list(tree.flatten(dict(items)))
    raise InputError(f"the sample has {', '.join(items)}, the model takes {', '.join(keys or names)}")


def made_arrays(model: Any) -> list[np.ndarray[Any, Any]]:
    """Arrays as the inputs of a functional model say.

    Raises:
        InputError: One is of text, for which nothing can be made up.
    """
    most = _smallest_vocabulary(model)
    generator = np.random.default_rng(0)
    return [_made(tensor, most, generator) for tensor in model.inputs]


def _smallest_vocabulary(model: Any) -> int:
    """Up to which number indices may go: as far as the smallest table of the model does."""
    layers = upstream.nested_layers(model)
    sizes = [layer.input_dim for layer in layers if isinstance(layer, keras.layers.Embedding)]
    return min([int(size) for size in sizes], default=8)


def _made(tensor: Any, most: int, generator: np.random.Generator) -> np.ndarray[Any, Any]:
    dtype = keras.backend.standardize_dtype(tensor.dtype)
    if dtype == "string":
        raise InputError(
            f"no text can be made up for input '{tensor.name}'",
            hint="give a sample: ep.export(model, np.array([['some words']], object))",
        )
    shape = [size or _size(axis, len(tensor.shape)) for axis, size in enumerate(tensor.shape)]
    if dtype == "bool":
        return generator.random(shape) < 0.7
    if "int" in dtype:
        return generator.integers(0, most, shape).astype(dtype)
    return generator.standard_normal(shape).astype(np.float32).astype(keras_numpy(dtype))


def _size(axis: int, rank: int) -> int:
    return _LARGE if rank == 4 and axis else _SIZES[min(axis, len(_SIZES) - 1)]


def keras_numpy(dtype: str) -> Any:
    """NumPy's type of Keras' name."""
    from entrepot.exporters.keras.dtypes import element_of

    return element_of(dtype).numpy()
