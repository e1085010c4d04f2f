"""Random numbers by JAX's own algorithm, threefry, so that a key draws in the graph what it draws in JAX."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import onnx_ir as ir

from entrepot.exporters.jax.primitives.shapes import along
from entrepot.exporters.jax.step import Step
from entrepot.exporters.jax.table import rule
from entrepot.exporters.jax.upstream import IMPLEMENTED, is_threefry, threefry, threefry_generator


@rule("random_wrap")
def random_wrap(step: Step, words: ir.Value) -> ir.Value:
    """Two words as one number."""
    _check(step, step.outs[0].dtype)
    high, low = (step.build.cast(step.op("Gather", words, np.array(at, np.int64), axis=-1), np.uint64) for at in (0, 1))
    return step.op("BitwiseOr", step.op("BitShift", high, step.number(32, high), direction="LEFT"), low)


@rule("random_unwrap")
def random_unwrap(step: Step, keys: ir.Value) -> ir.Value:
    """The two words of a key."""
    _check(step, step.ins[0].dtype)
    return words_of(step, keys)


def words_of(step: Step, keys: ir.Value) -> ir.Value:
    """Keys with their words along a last axis."""
    high = step.op("BitShift", keys, step.number(32, keys), direction="RIGHT")
    low = step.op("BitwiseAnd", keys, step.number(0xFFFFFFFF, keys))
    both = step.op("Concat", *(step.op("Unsqueeze", each, [-1]) for each in (high, low)), axis=-1)
    return step.build.cast(both, np.uint32)


def _check(step: Step, dtype: Any) -> None:
    if not is_threefry(dtype):
        raise step.unsupported(
            f"keys of {dtype} cannot be drawn from", hint='use jax.random.key(seed, impl="threefry2x32")'
        )


@rule("threefry2x32")
def threefry2x32(step: Step, *words: ir.Value) -> list[Any]:
    """The algorithm itself, on integers."""
    return step.in_jax(threefry, *words)


@rule("iota_2x32_shape")
def iota_2x32_shape(step: Step) -> list[Any]:
    """The number of each place, in two words."""
    shape = step.outs[0].shape
    places = step.shaped(along(step, math.prod(shape)), shape)
    high = step.op("Div", places, step.number(1 << 32, places))
    return [step.build.cast(each, np.uint32) for each in (high, places)]


@rule("random_clone")
def random_clone(step: Step, keys: ir.Value) -> ir.Value:
    """The same keys."""
    return keys


@rule("random_seed")
def random_seed(step: Step, seeds: ir.Value) -> ir.Value:
    """Keys of seeds."""
    _check(step, step.outs[0].dtype)
    (words,) = step.in_jax(_mapped(threefry_generator().seed, len(step.ins[0].shape)), seeds)
    return _wrapped(step, words)


@rule("random_split")
def random_split(step: Step, keys: ir.Value) -> ir.Value:
    """Keys of keys."""
    shape = step.params["shape"]
    return _wrapped(step, _drawn(step, lambda key: threefry_generator().split(key, shape), keys))


@rule("random_fold_in")
def random_fold_in(step: Step, keys: ir.Value, messages: ir.Value) -> ir.Value:
    """Keys of keys and numbers."""
    fold = _mapped(threefry_generator().fold_in, len(step.ins[0].shape))
    avals = [_words_aval(step), step.ins[1]]
    (words,) = step.in_jax(fold, words_of(step, keys), messages, avals=avals)
    return _wrapped(step, words)


@rule("random_bits")
def random_bits(step: Step, keys: ir.Value) -> Any:
    """Random integers."""
    width, shape = step.params["bit_width"], step.params["shape"]
    return _drawn(step, lambda key: threefry_generator().random_bits(key, width, shape), keys)


def _drawn(step: Step, function: Callable[[Any], Any], keys: ir.Value) -> Any:
    _check(step, step.ins[0].dtype)
    mapped = _mapped(function, len(step.ins[0].shape))
    (found,) = step.in_jax(mapped, words_of(step, keys), avals=[_words_aval(step)])
    return found


def _words_aval(step: Step) -> Any:
    return jax.ShapeDtypeStruct((*step.ins[0].shape, 2), np.uint32)


def _mapped(function: Callable[..., Any], axes: int) -> Callable[..., Any]:
    for _ in range(axes):
        function = jax.vmap(function)
    return function


def _wrapped(step: Step, words: Any) -> ir.Value:
    return random_wrap(step, words)


@rule("random_gamma")
def random_gamma(step: Step, keys: ir.Value, shape: ir.Value) -> list[Any]:
    """By JAX's own way to draw it."""
    log = step.params["log_space"]
    return step.in_jax(lambda key, a: IMPLEMENTED["random_gamma"](key, a, log_space=log, use_vmap=True), keys, shape)
