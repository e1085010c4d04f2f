"""Functions of users, run on an array that writes a graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from entrepot.exporters.calls import MODEL_ERRORS, call, user_line
from entrepot.exporters.sklearn.array import Array
from entrepot.exporters.sklearn.columns import as_double
from entrepot.exporters.sklearn.counts import rows_of
from entrepot.exporters.sklearn.following import followed_function
from entrepot.exporters.sklearn.registration import REGISTERED
from entrepot.exporters.sklearn.table import Results, converts
from entrepot.exporters.sklearn.tables import as_columns, as_table
from entrepot.ir.errors import ConversionError, EntrepotError


@converts("sklearn.FunctionTransformer")
def function_transformer(model: Any, x: Any) -> Results:
    """What the function makes of the table."""
    return {"transform": x if model.func is None else called(model.func, x, model.kw_args or {})}


def called(function: Any, x: Any, given: Mapping[str, Any]) -> Any:
    """A function, or what is registered in its stead, run on arrays of a graph.

    Raises:
        ConversionError: It does something that a graph has no words for.
    """
    inner = getattr(function, "func", function)
    if getattr(inner, "__module__", "").startswith("sklearn.") and inner.__name__ == "check_array":
        return as_double(x)  # how HistGradientBoosting passes on what are no categories
    name = getattr(function, "__name__", type(function).__name__)
    hint = f"register another in its place, written with NumPy: ep.register_converter({name})"
    try:
        with rows_of(x):
            stands = REGISTERED.get(function, followed_function(function))
            found = as_columns(call(stands, (as_table(x),), given))
    except EntrepotError as error:
        raise ConversionError(f"the function '{name}' cannot be followed: {error.message}", hint=hint) from error
    except MODEL_ERRORS as error:
        line = user_line(error)
        raise ConversionError(
            f"the function '{name}' cannot be followed: {type(error).__name__}: {error}{line and f', at {line}'}",
            hint=hint,
        ) from error
    if isinstance(found, Array) or hasattr(found, "arrays"):
        return found
    raise ConversionError(f"the function '{name}' does not return what it makes of its argument", hint=hint)
