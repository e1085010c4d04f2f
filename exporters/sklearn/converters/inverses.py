"""Transformations the other way, as ``TransformedTargetRegressor`` needs them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from entrepot.exporters.sklearn.columns import as_double
from entrepot.exporters.sklearn.converters.functions import called
from entrepot.ir.errors import UnsupportedOpError


def inverse(model: Any, x: Any) -> Any:
    """``model.inverse_transform(x)``.

    Raises:
        UnsupportedOpError: It is not known for this class.
    """
    from entrepot.exporters.sklearn.table import class_name

    for cls in type(model).__mro__:
        if class_name(cls) in _INVERSES:
            return _INVERSES[class_name(cls)](model, x)
    raise UnsupportedOpError(
        f"the inverse of {type(model).__name__} cannot be written", hint=f"there are {', '.join(sorted(_INVERSES))}"
    )


def _function(model: Any, x: Any) -> Any:
    return x if model.inverse_func is None else called(model.inverse_func, x, model.inv_kw_args or {})


def _standard(model: Any, x: Any) -> Any:
    x = as_double(x)
    x = x * model.scale_ if model.with_std else x
    return x + model.mean_ if model.with_mean else x


def _min_max(model: Any, x: Any) -> Any:
    return (as_double(x) - model.min_) / model.scale_


def _robust(model: Any, x: Any) -> Any:
    x = as_double(x)
    x = x * model.scale_ if model.with_scaling else x
    return x + model.center_ if model.with_centering else x


def _power(model: Any, x: Any) -> Any:
    x = _standard(model._scaler, x) if model.standardize else as_double(x)
    columns = [_of_power(model.method, x[:, at], float(lam)) for at, lam in enumerate(model.lambdas_)]
    return np.stack(columns, axis=1)


def _of_power(method: str, x: Any, lam: float) -> Any:
    if method == "box-cox":
        return np.exp(x) if lam == 0 else (x * lam + 1) ** (1 / lam)
    safe_up, safe_down = np.maximum(x, 0.0), np.minimum(x, 0.0)
    up = np.expm1(safe_up) if abs(lam) < 1e-15 else (safe_up * lam + 1) ** (1 / lam) - 1
    two = 2 - lam
    down = 1 - (1 - safe_down * two) ** (1 / two) if abs(two) > 1e-15 else -np.expm1(-safe_down)
    return np.where(x >= 0, up, down)


def _quantile(model: Any, x: Any) -> Any:
    from entrepot.exporters.sklearn.converters.preprocessing import interpolated

    x = as_double(x)
    if model.output_distribution == "normal":
        from scipy.special import ndtr  # a ufunc, which arrays of a graph take

        x = ndtr(x)
    columns = [interpolated(x[:, at], model.references_, model.quantiles_[:, at]) for at in range(x.shape[1] or 0)]
    return np.stack(columns, axis=1)


_INVERSES: dict[str, Callable[[Any, Any], Any]] = {
    "sklearn.FunctionTransformer": _function,
    "sklearn.StandardScaler": _standard,
    "sklearn.MinMaxScaler": _min_max,
    "sklearn.MaxAbsScaler": lambda model, x: as_double(x) * model.scale_,
    "sklearn.RobustScaler": _robust,
    "sklearn.PowerTransformer": _power,
    "sklearn.QuantileTransformer": _quantile,
}
