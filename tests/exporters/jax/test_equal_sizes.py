"""What a function does where two sizes are the same is exported as that, or these sizes are refused."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

import entrepot as ep
from entrepot.ir.errors import EntrepotError

WAYS = {16: 3.0}


def _sixteen(x):
    return x * 2 if x.shape[0] == 16 else x


def _other(x):
    return x * 2 if x.shape[0] != 16 else x


def _among(x):
    return x * 2 if x.shape[0] in (3, 16) else x


def _multiple(x):
    return x * 2 if x.shape[0] % 4 == 0 else x


def _got(x):
    return x * WAYS.get(x.shape[0], 1.0)


def _matched(x):
    match x.shape:
        case (16, _):
            return x * 2
        case _:
            return x


def _shapes(x, y):
    return x.sum() + y.sum() if x.shape == y.shape else x.sum() - y.sum()


_unread = eval("lambda x: x * 2 if x.shape[0] == 16 else x")

FUNCTIONS = {
    function.__name__: function for function in (_sixteen, _other, _among, _multiple, _got, _matched, _shapes)
} | {"without a source": _unread}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_equal_sizes_are_right_or_refused(name):
    function = FUNCTIONS[name]
    rng = np.random.default_rng(0)
    count = 2 if function is _shapes else 1
    sample = [rng.uniform(-1, 1, (5 + 2 * at, 4)).astype(np.float32) for at in range(count)]
    model = ep.export(function, tuple(map(jnp.asarray, sample)), progress=False)
    session = ep.Session(model, providers=["onnxruntime"])
    right = 0
    for size in (3, 4, 5, 7, 8, 15, 16, 17):
        feeds = [rng.uniform(-1, 1, (size, 4)).astype(np.float32) for _ in sample]
        try:
            (found,) = session.run(dict(zip([each.name for each in session.inputs], feeds, strict=True))).values()
        except EntrepotError:
            continue
        right += 1
        np.testing.assert_allclose(found, function(*map(jnp.asarray, feeds)), rtol=1e-5, atol=1e-5)
    assert right > 1 or name in ("_multiple", "_shapes")


def test_a_comparison_that_makes_no_difference_fixes_nothing():
    def function(x):
        return x if x.shape[0] == 16 else jnp.pad(x, ((0, 0), (0, 0)))

    model = ep.export(function, jnp.ones((5, 4)), progress=False)
    assert model.inputs[0].shape == ("batch", "x_dim1")
    assert "entrepot.conditions" not in model.metadata


def test_other_sizes_vary_meanwhile():
    def function(x):
        return x.reshape(-1, 4) if x.shape[0] == 16 else x

    model = ep.export(function, jnp.ones((5, 4)), progress=False)
    assert "batch <= 15" in model.metadata["entrepot.conditions"] or model.inputs[0].shape[1] == 4


def test_a_size_that_decides_is_compared_in_the_graph():
    def function(x):
        return x * 2 if x.shape[0] == 16 else x

    session = ep.Session(ep.export(function, jnp.ones((16, 4)), progress=False))
    for rows in (1, 15, 16, 17):
        (found,) = session.run({"x": np.ones((rows, 2), np.float32)}).values()
        assert (found == function(np.ones((rows, 2)))).all()
