"""Gaussian processes: their kernels as formulas."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from entrepot.exporters.sklearn.array import Symbolic
from entrepot.exporters.sklearn.blocks import by_sign, distances
from entrepot.exporters.sklearn.blocks import kernel as named_kernel
from entrepot.exporters.sklearn.columns import as_float
from entrepot.exporters.sklearn.table import Results, class_name, converts
from entrepot.ir.errors import UnsupportedOpError


def covariance(kernel: Any, x: Symbolic, known: Any) -> Symbolic:
    """``kernel(x, known)``.

    Raises:
        UnsupportedOpError: It is a kernel of somebody else.
    """
    for cls in type(kernel).__mro__:
        if class_name(cls) in _KERNELS:
            return _KERNELS[class_name(cls)](kernel, x, known)
    raise UnsupportedOpError(
        f"the kernel {type(kernel).__name__} cannot be written", hint="use the kernels of sklearn.gaussian_process"
    )


def _apart(kernel: Any, x: Symbolic, known: Any, metric: str = "euclidean") -> Symbolic:
    scale = np.asarray(kernel.length_scale, float)
    return distances(x / scale, known / scale, metric)


def _matern(kernel: Any, x: Symbolic, known: Any) -> Symbolic:
    away = _apart(kernel, x, known)
    if kernel.nu == 0.5:
        return np.exp(-away)
    if kernel.nu == 1.5:
        near = away * math.sqrt(3)
        return (1.0 + near) * np.exp(-near)
    if kernel.nu == 2.5:
        near = away * math.sqrt(5)
        return (1.0 + near + near * near / 3.0) * np.exp(-near)
    if kernel.nu == np.inf:
        return np.exp(-(away * away) / 2.0)
    raise UnsupportedOpError(f"Matern with nu={kernel.nu} is a Bessel function", hint="use 0.5, 1.5, 2.5 or inf")


def _rational(kernel: Any, x: Symbolic, known: Any) -> Symbolic:
    square = distances(x, known, "sqeuclidean")
    return (1 + square / (2 * kernel.alpha * kernel.length_scale**2)) ** -float(kernel.alpha)


def _periodic(kernel: Any, x: Symbolic, known: Any) -> Symbolic:
    turned = np.sin(distances(x, known) * (np.pi / kernel.periodicity)) / kernel.length_scale
    return np.exp(turned * turned * -2)


def _constant(kernel: Any, x: Symbolic, known: Any) -> Symbolic:
    return x.rows(np.full(len(known), kernel.constant_value, x.dtype))


_KERNELS: dict[str, Callable[[Any, Symbolic, Any], Symbolic]] = {
    "sklearn.Matern": _matern,
    "sklearn.RBF": lambda k, x, known: np.exp(_apart(k, x, known, "sqeuclidean") * -0.5),
    "sklearn.RationalQuadratic": _rational,
    "sklearn.ExpSineSquared": _periodic,
    "sklearn.ConstantKernel": _constant,
    "sklearn.WhiteKernel": lambda k, x, known: x.rows(np.zeros(len(known), x.dtype)),
    "sklearn.DotProduct": lambda k, x, known: x @ known.T + k.sigma_0**2,
    "sklearn.Sum": lambda k, x, known: covariance(k.k1, x, known) + covariance(k.k2, x, known),
    "sklearn.Product": lambda k, x, known: covariance(k.k1, x, known) * covariance(k.k2, x, known),
    "sklearn.Exponentiation": lambda k, x, known: covariance(k.kernel, x, known) ** float(k.exponent),
    "sklearn.PairwiseKernel": lambda k, x, known: named_kernel(x, known, k.metric, gamma=k.gamma),
}


def _own_variance(kernel: Any, x: Symbolic) -> Symbolic:
    """``kernel.diag(x)``."""
    name = class_name(type(kernel))
    if name == "sklearn.Sum":
        return _own_variance(kernel.k1, x) + _own_variance(kernel.k2, x)
    if name == "sklearn.Product":
        return _own_variance(kernel.k1, x) * _own_variance(kernel.k2, x)
    if name == "sklearn.Exponentiation":
        return _own_variance(kernel.kernel, x) ** float(kernel.exponent)
    if name == "sklearn.DotProduct":
        return (x * x).sum(1) + kernel.sigma_0**2
    return x.rows(x.dtype.type(kernel.diag(np.zeros((1, x.shape[1] or 1)))[0]))


@converts("sklearn.GaussianProcessRegressor")
def regressor(model: Any, x: Any) -> Results:
    """The mean, given what was seen."""
    x = as_float(x)
    mean = covariance(model.kernel_, x, model.X_train_) @ model.alpha_
    mean = mean * model._y_train_std + model._y_train_mean
    return {"predict": mean[:, 0] if mean.ndim > 1 and mean.shape[1] == 1 else mean}


@converts("sklearn.GaussianProcessClassifier")
def classifier(model: Any, x: Any) -> Results:
    """One process, or one for each class or pair of classes."""
    from entrepot.exporters.sklearn.converters.multiclass import one_versus_one, one_versus_rest

    inner = model.base_estimator_
    if hasattr(inner, "estimators_"):
        many = one_versus_rest if model.multi_class == "one_vs_rest" else one_versus_one
        return {name: value for name, value in many(inner, x).items() if name != "decision_function"}
    return laplace(inner, x)


@converts("sklearn._BinaryGaussianProcessClassifierLaplace")
def laplace(model: Any, x: Any) -> Results:
    """Two classes, by Laplace's approximation."""
    from scipy.special import erf  # a ufunc, which arrays of a graph take
    from sklearn.gaussian_process._gpc import COEFS, LAMBDAS

    x = as_float(x)
    near = covariance(model.kernel_, x, model.X_train_)
    mean = near @ (model.y_train_ - model.pi_)
    solved = (near * model.W_sr_) @ np.linalg.inv(model.L_).T
    variance = _own_variance(model.kernel_, x) - (solved * solved).sum(1)
    alpha = 1 / (2 * variance)
    sizes, coefficients = LAMBDAS.reshape(-1, 1), COEFS.reshape(-1, 1)
    terms = erf(mean * sizes * np.sqrt(alpha / (alpha + sizes**2))) * (coefficients / (2 * math.sqrt(2 * np.pi)))
    total = 0.5 * COEFS.sum() + terms.sum(0) * np.sqrt(np.pi / alpha) / np.sqrt(variance)
    return {"predict": by_sign(model.classes_, mean), "predict_proba": np.stack([1 - total, total], axis=1)}
