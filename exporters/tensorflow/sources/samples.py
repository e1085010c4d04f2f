"""A sample for what says itself which shapes and types it takes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from entrepot.exporters.sample import Sample
from entrepot.exporters.tensorflow.dtypes import numpy_type
from entrepot.ir.errors import InputError

_SIZES: Sequence[tuple[int, int]] = ((2, 5), (2, 32), (1, 5), (1, 32), (2, 2), (2, 1), (1, 1), (2, 64), (2, 224))
"""Sizes that are tried for axes that vary: for the first one, and for the others."""


def made_sample(takes: tuple[Any, Any], call: Callable[..., Any], failures: tuple[type[BaseException], ...]) -> Sample:
    """Arrays for the tensors that a function takes, at the first sizes that it accepts.

    Args:
        takes: Its positional and keyword arguments, with a ``tf.TensorSpec`` for each tensor.
        call: The function.
        failures: What it may raise.

    Raises:
        InputError: It accepts none of them.
    """
    last: BaseException | None = None
    for first, other in _SIZES:
        generator = np.random.default_rng(0)
        args, kwargs = tf.nest.map_structure(lambda spec: _array(spec, first, other, generator), takes)  # noqa: B023
        try:
            call(*args, **kwargs)
        except failures as error:
            last = error
        else:
            return Sample(tuple(args), kwargs)
    text = next(iter(str(last).splitlines()), "")
    raise InputError(f"no sample was given, and none of ours is accepted: {text}", hint="give one: ep.export(path, x)")


def hold_to(
    stated: Sequence[Any], function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> None:
    """Hold a call of a function in Python to the sizes that it was told it takes, as its graph does.

    Raises:
        ValueError: A tensor has another one.
    """
    given = inspect.signature(function).bind(*args, **kwargs).arguments
    for (name, argument), taken in zip(given.items(), stated, strict=False):
        for tensor, spec in zip(tf.nest.flatten(argument), tf.nest.flatten(taken), strict=False):
            if isinstance(spec, tf.TensorSpec) and not spec.shape.is_compatible_with(np.shape(tensor)):
                raise ValueError(f"'{name}' is {tuple(np.shape(tensor))}, and the function takes {spec.shape}")


def _array(spec: Any, first: int, other: int, generator: np.random.Generator) -> Any:
    if not isinstance(spec, tf.TensorSpec):
        if isinstance(spec, tf.TypeSpec):
            raise InputError(
                f"it takes a {type(spec).__name__.removesuffix('Spec')}, which cannot be an input of a graph",
                hint="export a function that takes dense tensors",
            )
        return spec
    if spec.shape.rank is None:
        raise InputError(f"the rank of input '{spec.name}' is not known", hint="give a sample: ep.export(path, x)")
    shape = [size or (other if axis else first) for axis, size in enumerate(spec.shape.as_list())]
    if spec.dtype == tf.string:
        return np.full(shape, "a", object)
    dtype = numpy_type(spec.dtype)
    if dtype.kind in "iu":
        return generator.integers(0, 2, shape).astype(dtype)
    if dtype.kind == "b":
        return generator.integers(0, 2, shape).astype(bool)
    return generator.standard_normal(shape).astype(dtype)
