"""Maps whose products are like a kernel."""

from __future__ import annotations

from typing import Any

import numpy as np

from entrepot.exporters.sklearn.array import Symbolic
from entrepot.exporters.sklearn.columns import as_double, as_float
from entrepot.exporters.sklearn.table import Results, converts


@converts("sklearn.AdditiveChi2Sampler")
def additive_chi2(model: Any, x: Any) -> Results:
    """A map whose products are like those of a chi-squared kernel."""
    x, interval = as_float(x), model.sample_interval
    interval = {1: 0.8, 2: 0.5, 3: 0.4}[model.sample_steps] if interval is None else interval
    positive = x > 0
    clear = np.where(positive, x, x.dtype.type(1))
    parts = [np.sqrt(clear * interval)]
    log, twice = interval * np.log(clear), 2 * clear * interval
    for step in range(1, model.sample_steps):
        factor = np.sqrt(twice / np.cosh(np.pi * step * interval))
        parts += [factor * np.cos(step * log), factor * np.sin(step * log)]
    return {"transform": np.concatenate([np.where(positive, part, x.dtype.type(0)) for part in parts], axis=1)}


@converts("sklearn.SkewedChi2Sampler")
def skewed_chi2(model: Any, x: Any) -> Results:
    """Cosines of random directions of logarithms."""
    logs = np.log(as_float(x) + model.skewedness)
    return {"transform": np.cos(logs @ model.random_weights_ + model.random_offset_) * np.sqrt(2 / model.n_components)}


@converts("sklearn.RBFSampler")
def random_cosines(model: Any, x: Any) -> Results:
    """Cosines of random directions."""
    turned = as_float(x) @ model.random_weights_ + model.random_offset_
    return {"transform": np.cos(turned) * (2.0 / model.n_components) ** 0.5}


@converts("sklearn.PolynomialCountSketch")
def count_sketch(model: Any, x: Any) -> Results:
    """Circular convolutions of sketches, which are products under the Fourier transform."""
    x = as_double(x)
    count, size = model.degree, model.n_components
    if model.coef0 != 0:
        x = np.concatenate([np.sqrt(model.gamma) * x, x.rows(np.full(1, np.sqrt(model.coef0)))], axis=1)
    else:
        x = np.sqrt(model.gamma) * x
    total = None
    for d in range(count):
        spread = np.zeros((model.indexHash_.shape[1], size))
        spread[np.arange(model.indexHash_.shape[1]), model.indexHash_[d]] = model.bitHash_[d]
        sketch = x @ spread
        total = sketch if total is None else _convolved(total, sketch, size)
    return {"transform": total}


def _convolved(a: Symbolic, b: Symbolic, size: int) -> Symbolic:
    turned = (np.arange(size)[:, None] - np.arange(size)[None, :]) % size  # of b, for each place of the result and of a
    return (b.take(turned, 1) * a[:, None, :]).sum(2)
