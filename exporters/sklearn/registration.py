"""Converters that users bring for their own estimators and functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from entrepot.ir.arguments import expected

Converter: TypeAlias = Callable[[Any, Any], Mapping[str, Any]]

REGISTERED: dict[Any, Any] = {}
"""By class, or by function."""


def register_converter(kind: Any) -> Callable[[Any], Any]:
    """Say how an estimator class of yours, or a function in a ``FunctionTransformer``, is written in NumPy.

    Often nothing has to be registered: an estimator whose methods use NumPy is exported by running them. Where they use
    something else, register the formula::

        @ep.register_converter(Scaled)
        def scaled(estimator, x):
            return {"transform": x * estimator.scale_}

    Args:
        kind: A class, whose converter takes a fitted estimator and its input and returns arrays by the names of its
            methods; or a function, which is replaced by another of the same arguments.

    Returns:
        A decorator for the converter, which is returned as it is.

    Raises:
        InputError: It is neither a class nor a function.
    """
    if not callable(kind):
        raise expected("kind", "a class of estimators or a function", kind)

    def register(converter: Any) -> Any:
        if not callable(converter):
            raise expected("converter", "a function", converter)
        REGISTERED[kind] = converter
        return converter

    return register
