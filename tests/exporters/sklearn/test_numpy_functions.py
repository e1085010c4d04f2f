"""NumPy's functions in users' own, on ordinary rows and on edge values, compared with NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.preprocessing import FunctionTransformer

import entrepot as ep

ROWS = np.random.default_rng(0).normal(size=(40, 5)) + 0.3
EDGES = np.array(
    [
        [0.0, -0.0, 1.0, -1.0, 0.5],
        [np.nan, 1.0, 2.0, 2.0, -3.0],
        [np.inf, -np.inf, 0.0, 1e-300, 1e9],
        [-0.0, -2.0, np.inf, np.inf, 4.0],
        [2.0, 2.0, 2.0, 2.0, 2.0],
        [1e200, -3e200, 3e-160, 1e-160, -700.0],
    ]
)
TABLE = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])


def _in_place(x):
    y = np.array(x)
    y[y < 0] *= -1
    y[:, 0] = np.log1p(y[:, 0])
    y += 1
    y[:, 1:3] = y[:, 1:3] ** 2
    y[np.isnan(y)] = -1
    return y


FUNCTIONS = {
    "squeeze": lambda x: np.squeeze(x[:, :1])[:, None],
    "diff": lambda x: np.diff(x, axis=1, n=2),
    "nansum": lambda x: np.nansum(x, axis=1, keepdims=True),
    "nanmean": lambda x: np.nanmean(x, axis=1)[:, None],
    "nanmax": lambda x: np.nanmax(x, axis=1)[:, None],
    "nanmin": lambda x: np.nanmin(x, axis=1)[:, None],
    "median": lambda x: np.median(x, axis=1)[:, None],
    "percentile": lambda x: np.percentile(x[:, 1:4], [10, 50, 100], axis=1).T,
    "select": lambda x: np.select([x > 1, x < -1], [x * 2, -1.0], default=0.5),
    "piecewise": lambda x: np.piecewise(x, [x < 0, x > 1], [lambda v: -v, 3.0, lambda v: v * 2]),
    "digitize": lambda x: np.digitize(x, [-1.0, 0.0, 1.0]),
    "digitize downwards": lambda x: np.digitize(x, [1.0, 0.0, -1.0], right=True),
    "searchsorted": lambda x: np.searchsorted([-1.0, 0.0, 1.0], x, side="right"),
    "isin": lambda x: np.isin(np.round(x), [0, 1]),
    "tile": lambda x: np.tile(x, (1, 2)),
    "repeat": lambda x: np.repeat(x, 2, axis=1),
    "append": lambda x: np.append(x, x[:, :1], axis=1),
    "delete": lambda x: np.delete(x, [1, -1], axis=1),
    "insert": lambda x: np.insert(x, 1, 7.0, axis=1),
    "flip": lambda x: np.flip(x, axis=1),
    "roll": lambda x: np.roll(x, 2, axis=1),
    "split": lambda x: np.hstack(np.array_split(x, 2, axis=1)[::-1]),
    "count_nonzero": lambda x: np.count_nonzero(x > 0, axis=1)[:, None],
    "average": lambda x: np.average(x[:, 2:], axis=1, weights=[1, 2, 3])[:, None],
    "ptp": lambda x: np.ptp(x, axis=1)[:, None],
    "swapaxes": lambda x: np.swapaxes(x, 0, 1).T,
    "interp": lambda x: np.interp(x, [-1.0, 0.0, 2.0], [0.0, 3.0, 1.0], left=-9.0),
    "cumprod": lambda x: np.cumprod(x, axis=1),
    "std of a sample": lambda x: x.std(axis=1, ddof=1)[:, None],
    "trapezoid": lambda x: np.trapezoid(x, axis=1)[:, None],
    "rows of ones": lambda x: np.c_[np.ones(len(x)), np.zeros((x.shape[0], 2)), x],
    "broadcast_to": lambda x: x[:, :2] + np.broadcast_to([1.0, 2.0], (len(x), 2)),
    "elements of a table": lambda x: TABLE[np.clip(np.nan_to_num(x[:, 0]), 0, 2).astype(int)],
    "elements of a unit matrix": lambda x: np.eye(3)[(x[:, 1] > 0).astype(int)],
    "arctan2": lambda x: np.arctan2(x[:, :4], x[:, 1:]),
    "sinc": np.sinc,
    "remainder": lambda x: np.remainder(x[:, 1:], 0.75) - np.fmod(x[:, 1:], 0.75),
    "signs": lambda x: np.column_stack([np.signbit(x), np.copysign(1.5, x), np.heaviside(x, 0.5)]),
    "arctan": np.arctan,
    "hyperbolic": lambda x: np.column_stack([np.sinh(x[:, 2:]), np.arcsinh(x), np.cosh(x[:, :3])]),
    "their inverses": lambda x: np.arccosh(np.abs(x) + 1.5),
    "hypot": lambda x: np.hypot(x[:, :1], x[:, 1:]),
    "logaddexp": lambda x: np.logaddexp(x[:, :1], x[:, 1:]),
    "fmax": lambda x: np.fmax(x[:, :1], x[:, 1:]) - np.fmin(x[:, :1], 0),
    "argsort": lambda x: np.argsort(x[:, 1:2] * np.arange(1, 4), axis=1),
    "norm": lambda x: x / np.linalg.norm(x, axis=1, keepdims=True),
    "polyval": lambda x: np.polyval([1.0, -2.0, 3.0], x),
    "vander": lambda x: np.vander(x[:, 0], 3),
    "log where": lambda x: np.log(x, where=x > 0, out=np.zeros_like(x)),
    "in place": _in_place,
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_of_numpy_is_computed_as_numpy_does(name):
    transformer = FunctionTransformer(FUNCTIONS[name]).fit(ROWS)
    session = ep.Session(ep.export(transformer, ROWS[:7], progress=False), providers=["onnxruntime"])
    for rows in (ROWS, EDGES):
        (found,) = session.run({"X": rows}).values()
        np.testing.assert_allclose(found, transformer.transform(rows.copy()), rtol=1e-12, atol=1e-15)
