"""Functions and modules of JAX: weights under their paths, axes that vary, modules in the names of nodes."""

from __future__ import annotations

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import onnxruntime
import pytest
from flax import linen, nnx

import entrepot as ep

KEY = jax.random.key(0)
X = np.linspace(-1, 1, 10, dtype=np.float32).reshape(2, 5)


def dense(params, x):
    for layer in params["layers"]:
        x = jnp.tanh(x @ layer["kernel"] + layer["bias"])
    return x


PARAMS = {
    "layers": [
        {"kernel": jax.random.normal(KEY, (5, 7)), "bias": jnp.ones(7)},
        {"kernel": jax.random.normal(KEY, (7, 3)), "bias": jnp.zeros(3)},
    ]
}


class Linen(linen.Module):
    @linen.compact
    def __call__(self, x):
        return linen.Dense(3)(linen.relu(linen.Dense(4, name="first")(x)))


class Block(nnx.Module):
    def __init__(self, rngs):
        self.inner = nnx.List([nnx.Linear(5, 5, rngs=rngs) for _ in range(2)])
        self.norm = nnx.BatchNorm(5, use_running_average=True, rngs=rngs)

    def __call__(self, x):
        for layer in self.inner:
            x = nnx.relu(layer(x))
        return self.norm(x)


LINEN = Linen()
VARIABLES = LINEN.init(KEY, X)
EQUINOX = eqx.nn.MLP(5, 3, 4, 2, key=KEY)
LAYERS = {"layers/0/kernel", "layers/0/bias", "layers/1/kernel", "layers/1/bias"}
DENSE = {"first/kernel", "first/bias", "Dense_0/kernel", "Dense_0/bias"}
MLP = {f"layers/{at}/{name}" for at in range(3) for name in ("weight", "bias")}
FORMS = {
    "a closure": (lambda x: dense(PARAMS, x), LAYERS),
    "a function inside": (lambda x: jax.vmap(lambda row: dense(PARAMS, row))(x) * 2, LAYERS),
    "a partial function": (functools.partial(dense, PARAMS), LAYERS),
    "a jitted function": (jax.jit(lambda x: dense(PARAMS, x)), LAYERS),
    "a bound module": (LINEN.bind(VARIABLES), DENSE),
    "a module and its variables": ((LINEN, VARIABLES), DENSE),
    "a partial apply": (functools.partial(LINEN.apply, VARIABLES), DENSE),
    "a function of apply": (lambda x: LINEN.apply(VARIABLES, x), DENSE),
    "an equinox module": (jax.vmap(EQUINOX), MLP),
    "an nnx module": (Block(nnx.Rngs(0)), {"inner/0/kernel", "inner/1/bias", "norm/mean", "norm/scale"}),
}


@pytest.mark.parametrize("form", FORMS)
def test_weights_keep_their_paths_and_the_batch_varies(form):
    obj, names = FORMS[form]
    model = ep.export(obj, X, progress=False)
    assert model.report.ok
    assert names <= set(model.ir.graph.initializers)
    assert [(spec.name, spec.shape) for spec in model.inputs] == [("x", ("batch", 5))]
    assert {run.label for run in model.report.runs} >= {"batch=1"}


def test_a_partial_of_a_compiled_function_is_told_by_what_it_wraps():
    step = functools.partial(jax.jit(lambda weight, x: {"y": x @ weight}), np.ones((5, 2), np.float32))
    model = ep.export(step, (np.ones((3, 5), np.float32),), progress=False)
    assert model.report.ok
    assert [spec.shape for spec in model.outputs] == [("batch", 2)]


@pytest.mark.parametrize("inside", [False, True])
def test_what_is_computed_in_half_precision_is_judged_as_that(inside):
    weight = jax.random.normal(KEY, (5, 5)).astype(jnp.bfloat16)

    def half(x):
        y = jax.lax.fori_loop(0, 2, lambda _, h: jnp.tanh(h @ weight), x) if inside else jax.nn.gelu(x @ weight)
        return y @ weight

    model = ep.export(lambda x: x + half(x.astype(jnp.bfloat16)).astype(jnp.float32), X, progress=False)
    assert model.report.ok


def test_params_in_the_sample_are_inputs():
    model = ep.export(dense, (PARAMS, X), progress=False)
    names = [spec.name for spec in model.inputs]
    assert (names[0], names[-1]) == ("params.layers.0.kernel", "x")


def test_nodes_are_named_by_modules():
    model = ep.export((LINEN, VARIABLES), X, progress=False)
    assert next(node.name for node in model.ir.graph) == "Linen/first/MatMul"


def test_axes_begin_where_onnxruntime_follows_windows_that_are_larger_than_the_image():
    """JAX takes the mean of nothing at these sizes, which onnxruntime (1.31) does not."""

    def pooled(x):
        for _ in range(2):
            x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        return x.mean((1, 2))

    model = ep.export(pooled, np.linspace(-1, 1, 480, dtype=np.float32).reshape(2, 12, 10, 2))
    assert [spec.shape for spec in model.inputs] == [("batch", "x_dim1", "x_dim2", "x_dim3")]
    assert model.conditions == ("x_dim1 >= 4", "x_dim2 >= 4")
    assert {"x_dim1=4", "x_dim2=4", "x_dim1=13"} <= {run.label for run in model.report.runs if run.ok}
    assert any("x.1 is at least 4: the graph does not follow other sizes" in note for note in model.report.notes)


def test_a_loop_over_a_batch_ends_where_the_batch_is_empty():
    model = ep.export(
        jax.vmap(lambda x: jax.lax.while_loop(lambda s: s < 10, lambda s: jnp.abs(s) * 2 + 1, x)), X[:, 0]
    )
    (found,) = ep.Session(model).run({model.inputs[0].name: np.zeros(0, np.float32)}).values()
    assert found.shape == (0,)


@pytest.mark.parametrize("function", [jnp.any, jnp.all])
def test_truth_of_nothing_is_that_of_jax(function):
    model = ep.export(lambda x: function(x > 0, axis=0), X, dynamic={"x": {0: "rows"}})
    nothing = np.zeros((0, 5), np.float32)
    (found,) = ep.Session(model).run({"x": nothing}).values()
    np.testing.assert_array_equal(found, function(nothing > 0, axis=0))


def test_a_complex_number_is_carried_through_a_loop():
    def function(x):
        return jax.lax.scan(lambda c, each: (c * jnp.exp(1j * each), jnp.real(c)), jnp.ones((), jnp.complex64), x)[1]

    x = jnp.linspace(-1.0, 2.0, 6)
    (found,) = ep.Session(ep.export(function, x)).run({"x": np.asarray(x)}).values()
    np.testing.assert_allclose(found, np.cos(np.cumsum(x) - x), rtol=1e-5, atol=1e-6)


def test_a_network_in_bfloat16_runs_in_onnxruntime():
    network = linen.MultiHeadDotProductAttention(2, dtype=jnp.bfloat16)
    x = jax.random.normal(KEY, (2, 5, 6))
    params = network.init(KEY, x)
    model = ep.export(lambda x: network.apply(params, x).astype(jnp.float32), x)
    (found,) = ep.Session(model, providers=["onnxruntime"]).run({"x": np.asarray(x)}).values()
    np.testing.assert_allclose(found, network.apply(params, x).astype(jnp.float32), rtol=0.02, atol=0.02)


DECOMPOSED = {
    "eigenvalues": lambda x: jnp.linalg.eigvalsh(x + x.mT),
    "singular values": jnp.linalg.svdvals,
    "pseudo-inverse": jnp.linalg.pinv,
    "least squares": lambda x: jnp.linalg.lstsq(x, x[:, :1])[0],
}


@pytest.mark.parametrize("name", DECOMPOSED)
def test_what_is_decomposed_runs_in_onnxruntime_as_it_is(name):
    x = np.random.default_rng(0).standard_normal((4, 4)).astype(np.float32)
    model = ep.export(DECOMPOSED[name], jnp.asarray(x))
    assert not model.report.declined
    session = onnxruntime.InferenceSession(model.to_proto().SerializeToString())
    (found,) = session.run(None, {model.inputs[0].name: x})
    np.testing.assert_allclose(found, DECOMPOSED[name](jnp.asarray(x)), rtol=1e-3, atol=1e-4)


def test_a_loop_for_each_row_that_carries_a_truth_and_a_key_runs_in_onnxruntime():
    def function(x):
        def body(state):
            value, _, key = state
            key, other = jax.random.split(key)
            return value * 2 + jax.random.uniform(other) * 0, value > 3, key

        return jax.lax.while_loop(lambda state: state[0] < 10, body, (jnp.abs(x) + 1, False, jax.random.key(1)))[:2]

    x = np.linspace(0, 12, 5, dtype=np.float32)
    model = ep.export(jax.vmap(function), jnp.asarray(x))
    assert not model.report.declined
    found = onnxruntime.InferenceSession(model.to_proto().SerializeToString()).run(None, {model.inputs[0].name: x})
    for one, two in zip(found, jax.vmap(function)(jnp.asarray(x)), strict=True):
        np.testing.assert_array_equal(one, two)


def test_infinity_comes_before_nan_in_what_is_sorted():
    def function(x):
        return jnp.sort(x), jnp.argsort(x), jax.lax.top_k(x, 2)[1]

    model = ep.export(function, jnp.arange(6.0))
    x = np.array([0.0, -0.0, np.nan, 1.0, -1.0, np.inf], np.float32)
    for provider in ("cpu", "onnxruntime"):
        found = ep.Session(model, providers=[provider]).run([x]).values()
        for one, expected in zip(found, function(jnp.asarray(x)), strict=True):
            np.testing.assert_array_equal(one, expected)


def test_a_loop_that_ends_by_what_it_computes_is_not_tried_on_nothing():
    """A sum of no elements never grows; here the loop ends all the same, so that the test does."""

    def grown(x):
        return jax.lax.while_loop(
            lambda c: (c[0].sum() < 50) & (c[1] < 1e5), lambda c: (c[0] * 2 + 1, c[1] + 1), (x, 0.0)
        )

    model = ep.export(lambda x: grown(jnp.abs(x))[0], jnp.ones((3, 4)))
    assert model.inputs[0].shape == ("batch", "x_dim1")
    assert {"batch=1", "x_dim1=1"} <= {run.label for run in model.report.runs}
    assert not {"batch=0", "x_dim1=0"} & {run.label for run in model.report.runs}
