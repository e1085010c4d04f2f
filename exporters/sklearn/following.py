"""Users' code run on arrays that write a graph, where it asks for an array of NumPy: ``X = np.asarray(X)``.

NumPy hands a conversion to nobody else, and scikit-learn's checks look at values. In copies of users' functions, which
refer to copies of their globals, the names of such functions stand for others, that let arrays of a graph pass.
"""

from __future__ import annotations

import copy
import functools
import inspect
import sys
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any

import numpy as np
from sklearn.utils import check_array, validation

from entrepot.exporters.sklearn.array import Array, lifted
from entrepot.exporters.sklearn.asking import answering, is_fitted
from entrepot.exporters.sklearn.counts import MAKING, length
from entrepot.exporters.sklearn.series import Series
from entrepot.exporters.sklearn.tables import PANDAS, as_array, of_pandas, side_by_side

_LIBRARIES = ("-packages", "/lib/python")


def followed(model: Any) -> Any:
    """An estimator of a user's class, with the same state, whose methods let arrays of a graph pass."""
    known: dict[int, dict[str, Any]] = {}
    changed = {
        name: _copied(function, known)
        for cls in reversed(type(model).__mro__)
        for name, function in ((name, _unwrapped(value)) for name, value in [*vars(cls).items()])
        if isinstance(function, FunctionType) and _is_of_user(function)
    }
    result = copy.copy(model)
    result.__class__ = type(type(model).__name__, (type(model),), changed)
    for name, value in vars(model).items():
        setattr(result, name, answering(_held(value)))
    return result


class _Held(np.ndarray):
    """An array of an estimator, of which an array of a graph may choose elements: ``self.classes_[places]``."""

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, Array) and key.dtype.kind in "iu":
            return lifted(key.build, np.asarray(self)).take(key, 0)
        return super().__getitem__(key)


def _unwrapped(value: Any) -> Any:
    """A method without what scikit-learn puts around it, which makes data frames of results."""
    return inspect.unwrap(value) if isinstance(value, FunctionType) else value


def followed_function(function: Any) -> Any:
    """The same for a function."""
    if isinstance(function, functools.partial):
        return functools.partial(followed_function(function.func), *function.args, **function.keywords)
    return _copied(function, {}) if isinstance(function, FunctionType) and _is_of_user(function) else function


def _is_of_user(function: FunctionType) -> bool:
    file, name = (str(function.__globals__.get(each, "")) for each in ("__file__", "__name__"))
    return not any(part in file for part in _LIBRARIES) and not name.startswith("entrepot.")


def _copied(function: FunctionType, known: dict[int, dict[str, Any]]) -> FunctionType:
    inside = known.get(id(function.__globals__))
    if inside is None:
        inside = known[id(function.__globals__)] = dict(function.__globals__)
        inside.update({name: _stood_for(value, known) for name, value in [*function.__globals__.items()]})
        inside.setdefault("len", length)
    made = FunctionType(function.__code__, inside, function.__name__, function.__defaults__, function.__closure__)
    made.__kwdefaults__ = function.__kwdefaults__
    return made


def _stood_for(value: Any, known: dict[int, dict[str, Any]]) -> Any:
    if value is np:
        return _NUMPY
    if value is sys.modules.get("pandas"):
        return PANDAS
    if is_fitted(value):
        return answering(value)
    if type(value) is np.ndarray:
        return _held(value)
    if isinstance(value, FunctionType) and value not in _PASSING and _is_of_user(value):
        return _copied(value, known)
    passing = {**_PASSING, **of_pandas()}
    return passing.get(value, value) if callable(value) and getattr(value, "__hash__", None) else value


class _Passing(ModuleType):
    """NumPy, whose functions let arrays of a graph pass."""

    def __getattr__(self, name: str) -> Any:
        if name == "c_":
            return _SIDE_BY_SIDE
        found = getattr(np, name)
        if name in _OF_MANY:
            return functools.partial(_of_many, found)
        return _PASSING.get(found, found) if callable(found) else found


_OF_MANY = frozenset({
    "mean", "sum", "max", "min", "prod", "median", "std", "var", "average", "any", "all", "argmax", "argmin", "amax",
    "amin", "quantile", "percentile", "ptp", "round", "nanmean", "nansum", "nanmax", "nanmin", "nanmedian",
})  # fmt: skip
"""Functions of one array, which a list of arrays may stand for."""


def _of_many(function: Callable[..., Any], x: Any, *args: Any, **kwargs: Any) -> Any:
    """``np.mean([model.predict(X) for model in models], axis=0)``."""
    many = isinstance(x, list | tuple) and any(isinstance(each, Array | Series) for each in x)
    return function(np.stack([as_array(each) for each in x]) if many else x, *args, **kwargs)


class _SideBySide:
    """``np.c_``."""

    def __getitem__(self, parts: Any) -> Any:
        return side_by_side(parts)


_SIDE_BY_SIDE = _SideBySide()


_NUMPY = _Passing("numpy")


def _array(function: Callable[..., Any], x: Any, dtype: Any = None, *args: Any, **kwargs: Any) -> Any:
    x = as_array(x)
    if isinstance(x, list | tuple) and any(isinstance(each, Array | Series) for each in x):
        x = np.stack([as_array(each) for each in x])
    if isinstance(x, Array):
        return x.copy() if dtype is None else x.copy().astype(dtype)
    return _held(function(x, dtype, *args, **kwargs) if dtype is not None or args else function(x, **kwargs))


def _held(x: Any) -> Any:
    """An array that an array of a graph may choose elements of."""
    return x.view(_Held) if type(x) is np.ndarray else x


def _same_array(function: Callable[..., Any], x: Any, dtype: Any = None, *args: Any, **kwargs: Any) -> Any:
    x = as_array(x)
    if isinstance(x, Array):
        return x if dtype is None else x.astype(dtype)
    return _array(function, x, dtype, *args, **kwargs)


def _at_least_2d(function: Callable[..., Any], *arrays: Any) -> Any:
    if len(arrays) == 1 and isinstance(arrays[0], Array):
        return arrays[0] if arrays[0].ndim > 1 else arrays[0].expand(0)
    return function(*arrays)


def _checked(function: Callable[..., Any], x: Any, *args: Any, dtype: Any = "numeric", **kwargs: Any) -> Any:
    """What scikit-learn makes of a table: of the type that is asked for, of the first one if there are several."""
    x = as_array(x)
    if not isinstance(x, Array):
        return function(x, *args, dtype=dtype, **kwargs)
    if isinstance(dtype, list | tuple):
        return x if x.dtype in [np.dtype(each) for each in dtype] else x.astype(dtype[0])
    if dtype is None or (dtype == "numeric" and x.dtype.kind != "O"):
        return x
    return x.astype(np.float64 if dtype == "numeric" else dtype)


def _validated(function: Callable[..., Any], model: Any, x: Any = "no_validation", *args: Any, **kwargs: Any) -> Any:
    x = as_array(x)
    if not isinstance(x, Array):
        return function(model, x, *args, **kwargs)
    return _checked(check_array, x, dtype=kwargs.get("dtype", "numeric"))


_PASSING: dict[Any, Any] = {
    **MAKING,
    np.eye: lambda *args, **kwargs: _held(np.eye(*args, **kwargs)),
    np.array: functools.partial(_array, np.array),
    np.asarray: functools.partial(_same_array, np.asarray),
    np.asanyarray: functools.partial(_same_array, np.asanyarray),
    np.ascontiguousarray: functools.partial(_same_array, np.ascontiguousarray),
    np.atleast_2d: functools.partial(_at_least_2d, np.atleast_2d),
    check_array: functools.partial(_checked, check_array),
    validation.validate_data: functools.partial(_validated, validation.validate_data),
}
"""By the function that they stand for."""
