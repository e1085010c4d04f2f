"""What is private in JAX is still what it was: each canary says what broke."""

from __future__ import annotations

import inspect

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest

from entrepot.exporters.jax import upstream


def program():
    def function(x):
        with jax.named_scope("encoder"), jax.named_scope("layer_0"):
            y, _ = jnp.sin(x), jnp.cos(x)
            return y

    return jax.make_jaxpr(function)(1.0)


def test_equations_bear_the_scope_that_they_are_from():
    assert upstream.scope_of(program().eqns[0]) == "encoder/layer_0"


def test_equations_bear_the_line_of_the_user():
    assert upstream.user_frame(program().eqns[0]).startswith("test_upstream.py:")
    assert upstream.user_frame(program().eqns[0]).endswith(" in function")


def test_keys_of_the_default_generator_are_told():
    assert upstream.is_threefry(jax.random.key(0).dtype)
    assert not upstream.is_threefry(jax.random.key(0, impl="rbg").dtype)
    assert not upstream.is_threefry(np.dtype(np.float32))


def test_threefry_is_the_algorithm():
    """The vector of test of the paper that it is from: Salmon and others, 2011."""
    found = upstream.threefry(*(np.uint32(each) for each in (0x13198A2E, 0x03707344, 0x243F6A88, 0x85A308D3)))
    assert [int(each) for each in found] == [0xC4923A9C, 0x483DF7A0]


def test_the_generator_has_its_functions():
    generator = upstream.threefry_generator()
    assert all(callable(getattr(generator, name)) for name in ("seed", "split", "random_bits", "fold_in"))


@pytest.mark.parametrize("name", upstream.IMPLEMENTED)
def test_formulas_are_functions(name):
    assert inspect.isroutine(upstream.IMPLEMENTED[name]) or callable(upstream.IMPLEMENTED[name])


def test_what_jax_export_made_holds_a_program_of_stablehlo():
    made = jax.export.export(jax.jit(jnp.sin))(jax.ShapeDtypeStruct((2,), np.float32))
    module = upstream.stablehlo_module(made)  # its operations live as long as it does
    (function,) = module.body.operations
    assert [each.operation.name for each in function.entry_block.operations] == ["stablehlo.sine", "func.return"]


@pytest.mark.parametrize("data", [b"", b"not a program", bytes(400)])
def test_what_jax_export_did_not_write_is_refused_in_known_ways(data):
    with pytest.raises(upstream.DESERIALISING):
        jax.export.deserialize(bytearray(data))


def test_reflections_are_a_function_of_lax():
    found, scales = upstream.geqrf(jnp.eye(3))
    assert found.shape == (3, 3)
    assert scales.shape == (3,)


def test_comparisons_that_are_not_decided_are_read_from_errors():
    batch, length = jax.export.symbolic_shape("batch, length")
    x = jax.ShapeDtypeStruct((batch, length), jnp.float32)
    with pytest.raises(jax.errors.InconclusiveDimensionOperation) as inconclusive:
        jax.eval_shape(lambda x: x if 2 * x.shape[1] + 1 > 7 else -x, x)
    assert upstream.undecided(inconclusive.value) == [("2*length + 1", ">", "7")]
    with pytest.raises((ValueError, TypeError)) as unequal:
        jax.eval_shape(lambda x: x + jnp.ones(16)[: x.shape[1]], x)
    assert upstream.undecided(unequal.value) == [("16", "<=", "length"), ("length", "<=", "16")]


def test_what_is_computed_at_once_knows_no_symbols():
    def function(x):
        with jax.ensure_compile_time_eval():
            return x * jnp.cos(jnp.arange(x.shape[0]))

    (size,) = jax.export.symbolic_shape("size")
    with pytest.raises(upstream.UnexpectedDimVar):
        jax.eval_shape(function, jax.ShapeDtypeStruct((size,), jnp.float32))
