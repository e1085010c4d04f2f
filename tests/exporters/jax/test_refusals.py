"""What cannot be exported is refused with the reason and the line; axes that cannot vary are fixed with theirs."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen, nnx

import entrepot as ep

X = np.ones((2, 4), np.float32)


def test_a_branch_on_values_is_refused_with_the_line():
    def chooses(x):
        return jnp.sin(x) if x.sum() > 0 else x

    with pytest.raises(ep.InputError, match=r"TracerBoolConversionError.*chooses"):
        ep.export(chooses, X, progress=False)


def test_a_module_without_variables_is_refused():
    with pytest.raises(ep.InputError, match="has no variables"):
        ep.export(linen.Dense(3), X, progress=False)


def test_a_sample_that_does_not_fit_is_refused():
    with pytest.raises(ep.InputError, match="does not take the sample"):
        ep.export(lambda x: x @ jnp.ones((3, 2)), X, progress=False)


def test_a_function_without_a_sample_is_refused():
    with pytest.raises(ep.InputError, match="needs a sample"):
        ep.export(jax.jit(jnp.sin), progress=False)


def test_complex_inputs_and_results_are_refused():
    with pytest.raises(ep.InputError, match="complex64"):
        ep.export(jnp.abs, jnp.ones(3, np.complex64), progress=False)
    with pytest.raises(ep.InputError, match="complex64"):
        ep.export(jnp.fft.fft, jnp.ones(3), progress=False)


def test_a_sample_of_numbers_only_is_refused():
    with pytest.raises(ep.InputError, match="contains no array"):
        ep.export(jax.jit(lambda x: x + 1), (1.0,), progress=False)


@pytest.mark.parametrize("values", [np.array(["a"]), np.array([object()]), np.array(["2026-01-01"], "datetime64[D]")])
def test_arrays_of_anything_but_numbers_are_refused(values):
    with pytest.raises(ep.InputError, match="JAX has no arrays of"):
        ep.export(jax.jit(jnp.sin), values, progress=False)


def test_a_class_is_no_module():
    with pytest.raises(ep.InputError, match="Linear is a class, not a model"):
        ep.export(nnx.Linear, X, progress=False)


def test_a_primitive_without_a_rule_is_named_with_the_line():
    def asks(x):
        return jax.pure_callback(np.sin, jax.ShapeDtypeStruct(x.shape, x.dtype), x)

    with pytest.raises(ep.UnsupportedOpError, match=r"'pure_callback' \(at test_refusals.py:\d+ in asks\)"):
        ep.export(asks, X, dynamic=False, progress=False)


@pytest.mark.parametrize("dynamic", [True, False])
def test_an_error_in_a_rule_is_not_taken_for_one_of_the_function(dynamic):
    def broken(build, x, **params):
        raise TypeError("a fault of the rule")

    with ep.register_translation("jax::erf_inv", broken, into="onnx"), pytest.raises(TypeError, match="of the rule"):
        ep.export(jax.lax.erf_inv, X * 0.5, dynamic=dynamic, progress=False)


@pytest.mark.parametrize("layer", [nnx.Dropout(0.5, rngs=nnx.Rngs(0)), nnx.BatchNorm(4, rngs=nnx.Rngs(0))])
def test_a_module_of_nnx_that_trains_is_refused_until_it_is_told_to_stop(layer):
    with pytest.raises(ep.InputError, match=r"module\.eval\(\)"):
        ep.export(layer, X, progress=False)
    layer.eval()
    assert ep.export(layer, X, progress=False).report


def test_a_generator_of_nnx_whose_numbers_nothing_needs_is_no_obstacle():
    network = nnx.RNN(nnx.LSTMCell(4, 3, rngs=nnx.Rngs(0)))
    model = ep.export(network, np.ones((2, 5, 4), np.float32), progress=False)
    assert model.report
    assert "cell/ii/kernel" in model.ir.graph.initializers


def test_a_leaked_tracer_is_refused():
    kept = []

    @jax.jit
    def leaks(x):
        kept.append(x)
        return x

    leaks(X)
    with pytest.raises(ep.InputError, match="UnexpectedTracerError"):
        ep.export(lambda x: x + kept[0], jnp.asarray(X), progress=False)


def test_a_size_that_has_to_be_a_number_fixes_the_axis_with_the_reason():
    def counts(x):
        return jnp.concatenate([jnp.sin(x)] * int(x.shape[0]))

    model = ep.export(counts, X, progress=False)
    assert model.inputs[0].shape == (2, 4) or model.inputs[0].shape[0] == 2
    assert "counts" in model.metadata["entrepot.fixed_axes"]


def test_users_teach_a_primitive():
    def asks(x):
        return jax.pure_callback(np.sin, jax.ShapeDtypeStruct(x.shape, x.dtype), x)

    def written(build, x, **params):
        return [build.op("Sin", x)]

    with ep.register_translation("jax::pure_callback", written, into="onnx"):
        model = ep.export(asks, X, dynamic=False, progress=False)
    assert model.report.ok
    assert [node.op_type for node in model.ir.graph] == ["Sin"]


class ShapeError(Exception):
    """As libraries for shapes have it: neither a ValueError nor a TypeError."""


def fours(x):
    if x.shape[1] != 4:
        raise ShapeError(f"{x.shape} does not fit")
    return x * 2


def test_errors_of_kinds_that_libraries_define_are_refusals():
    model = ep.export(fours, (jnp.ones((3, 4)),))
    assert model.inputs[0].shape == ("batch", 4)
    with pytest.raises(ep.InputError, match=r"ShapeError: \(3, 5\) does not fit.*test_refusals.py"):
        ep.export(fours, (jnp.ones((3, 5)),))
