"""Which formula is whose: a converter per class, found by name, so that no library has to be imported for it."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any, TypeAlias

from entrepot.exporters.calls import MODEL_ERRORS, call, user_line
from entrepot.exporters.cutting import CUT, REFUSALS
from entrepot.exporters.recognition import TABULAR
from entrepot.exporters.sklearn.registration import REGISTERED, Converter
from entrepot.ir.errors import ConversionError, EntrepotError, UnsupportedOpError

Results: TypeAlias = "Mapping[str, Any]"

METHODS = {
    "predict": "label",
    "predict_proba": "probabilities",
    "decision_function": "scores",
    "transform": "transformed",
    "score_samples": "sample_scores",
}
"""What is exported of an estimator that has it, and what the output is called; a regressor's is ``prediction``."""

CONVERTERS: dict[str, Converter] = {}
"""By ``package.Class``."""


def converts(*names: str) -> Callable[[Converter], Converter]:
    """Register the formulas of classes, ``sklearn.Ridge``: from an estimator and its input to results by method.

    What nobody asks for is cleaned up, so that a converter returns all that it knows.
    """

    def register(converter: Converter) -> Converter:
        CONVERTERS.update(dict.fromkeys(names, converter))
        return converter

    return register


def results(model: Any, x: Any) -> Results:
    """What the methods of an estimator return, written into the graph of ``x``.

    Raises:
        UnsupportedOpError: Nothing is known about its class.
        ConversionError: It is fitted in a way that a graph cannot express.
    """
    cut = CUT_OFF.get()
    return _written(model, x) if cut is None else cut(model, x, _written)


CUT_OFF: ContextVar[Callable[[Any, Any, Converter], Results] | None] = ContextVar("cut_off", default=None)
"""What answers in place of formulas, where a model is exported from behind its steps of text."""


def _written(model: Any, x: Any) -> Results:
    try:
        return _converter(model)(model, x)
    except REFUSALS as error:
        if error.node is None:  # else it was one of the estimators in this one
            error.node = f"estimator {type(model).__name__}"
            if hasattr(model, "transform") and _has_text(x):
                error.hint = CUT
        raise


def _has_text(x: Any) -> bool:
    return any(array.dtype == object for array in getattr(x, "arrays", [x]))


def result(model: Any, x: Any, method: str) -> Any:
    """What one method returns."""
    found = results(model, x)
    if method not in found:
        raise UnsupportedOpError(
            f"no converter for {method} of {_named(type(model))}", hint="register one: ep.register_converter"
        )
    return found[method]


def class_name(cls: type) -> str:
    """``sklearn.Ridge``."""
    return f"{cls.__module__.partition('.')[0]}.{cls.__name__}"


def _converter(model: Any) -> Converter:
    _load()
    own: set[str] = set()
    for cls in type(model).__mro__:
        if cls in REGISTERED:
            return REGISTERED[cls]
        found = CONVERTERS.get(class_name(cls))
        if found is not None and not own:
            return found
        if not cls.__module__.startswith(_LIBRARIES):
            own |= METHODS.keys() & vars(cls).keys()
    if own:
        return _traced
    raise UnsupportedOpError(
        f"no converter for {_named(type(model))}", hint="write its formula with NumPy: ep.register_converter"
    )


_LIBRARIES = tuple(f"{name}." for name in TABULAR)
"""What the modules of classes begin with whose formulas have to be known."""


@functools.cache
def _load() -> None:
    package = importlib.import_module("entrepot.exporters.sklearn.converters")
    for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        importlib.import_module(module.name)


def _traced(model: Any, x: Any) -> Results:
    """A user's own class, run on an array that writes a graph."""
    from entrepot.exporters.sklearn.counts import rows_of
    from entrepot.exporters.sklearn.following import followed
    from entrepot.exporters.sklearn.tables import as_columns, as_table

    inside = followed(model)
    try:
        asked = [method for method in METHODS if hasattr(model, method)]
        with rows_of(x):
            return {method: as_columns(call(getattr(inside, method), (as_table(x).copy(),), {})) for method in asked}
    except EntrepotError as error:
        raise ConversionError(
            f"{_named(type(model))} does something that cannot be written into a graph: {error.message}",
            hint="write its formula with NumPy: ep.register_converter",
        ) from error
    except MODEL_ERRORS as error:
        line = user_line(error)
        raise ConversionError(
            f"{_named(type(model))} does not take an array that stands for others: {type(error).__name__}: {error}"
            f"{line and f', at {line}'}",
            hint="write its formula with NumPy: ep.register_converter",
        ) from error


def _named(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"
