"""Inputs to compare on: other sizes, other values, or values made up from a model's input specs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from entrepot.ir.errors import InputError
from entrepot.ir.typing.formula import Formula
from entrepot.parity.kinds import alike, ascends, stretched
from entrepot.parity.tolerance import classify
from entrepot.runtime.room import claim

if TYPE_CHECKING:
    from entrepot.ir.model import Model, ValueSpec

Feeds: TypeAlias = Mapping[str, Any]
"""Input name to array (a list of arrays for a sequence input)."""


_LEAST_SHARE = 2.0**-8
"""About what a value drawn between two takes of either at least: less is lost in rounding, which makes values equal."""


def resize(array: np.ndarray, axis: int, size: int, rng: np.random.Generator) -> np.ndarray:
    """The same kind of values with one axis at another size.

    A smaller size keeps the first slices. A larger one keeps them all and appends slices drawn from the array, each
    shuffled within itself, so that ids stay in range and no two rows are the same where they can differ. Integers
    ascending along the axis (positions, offsets) stay ascending: their last slice is repeated. Floats ascending along
    it (times, edges of bins) go through the same range in more steps.

    Args:
        array: Any shape of rank 1 or more.
        axis: The axis to change.
        size: Its new size, 0 or more.
        rng: Where the draws come from.

    Returns:
        An array of the same dtype and rank; zeros where ``array`` has nothing to draw from.
    """
    axis %= array.ndim
    have = array.shape[axis]
    if size <= have:
        return array.take(range(size), axis=axis)
    missing = size - have
    if have == 0:
        shape = (*array.shape[:axis], missing, *array.shape[axis + 1 :])
        return np.zeros(shape, array.dtype)
    if ascends(array, axis):
        return stretched(array, axis, size)
    if _ascends(array, axis):
        added = array.take([have - 1] * missing, axis=axis)
    else:
        drawn = np.moveaxis(array.take(rng.integers(0, have, missing), axis=axis), axis, 0)
        added = np.moveaxis(rng.permuted(drawn.reshape(missing, -1), axis=1).reshape(drawn.shape), 0, axis)
    return np.concatenate([array, added], axis=axis)


def vary(array: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Other values of the same kind, dtype and shape.

    Floats are drawn between pairs of the array's own values, so they stay in its range, and have in common what those
    have, see ``parity.kinds``; a constant float array gets normal noise of a tenth of its size. Integers, booleans and
    strings are shuffled; integers ascending along the last axis (positions, offsets) are kept.
    """
    if array.size == 0:
        return array.copy()
    if classify(array.dtype) in {"float", "complex"}:
        return alike(_vary_floats(array, rng), array)
    if array.ndim and _ascends(array, -1):
        return array.copy()
    return rng.permutation(array.reshape(-1)).reshape(array.shape)


def _vary_floats(array: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    values = array.reshape(-1)
    first = rng.integers(0, values.size, values.size)
    second = (first + rng.integers(1, max(values.size, 2), values.size)) % values.size  # of one value with itself, ties
    one, other = values[first], values[second]
    wide = np.complex128 if array.dtype.kind == "c" else np.float64
    if bool((values == values[0]).all()):
        level = max(float(np.abs(values[0].astype(wide))), 1.0)
        mixed: np.ndarray = one.astype(wide) + 0.1 * level * rng.standard_normal(values.size)
    elif bool(np.isfinite(values.astype(wide)).all()):
        # mostly near one of the two, so that the spread is close to that of the array
        least = _LEAST_SHARE * rng.uniform(0.5, 1.5, values.size)
        share = least + (1 - 2 * _LEAST_SHARE) * rng.beta(0.3, 0.3, values.size)
        mixed = share * one.astype(wide) + (1 - share) * other.astype(wide)
    else:
        mixed = one  # nothing lies between a number and infinity
    return np.asarray(mixed).astype(array.dtype).reshape(array.shape)


def _ascends(array: np.ndarray, axis: int) -> bool:
    if classify(array.dtype) != "integer" or array.shape[axis] < 2:
        return False
    steps = np.diff(array.astype(np.int64), axis=axis)
    return bool((steps >= 0).all() and (steps > 0).any())


def holds_nothing(value: Any) -> bool:
    """Whether a tensor, or one in a sequence, has no elements."""
    if isinstance(value, list | tuple):
        return any(map(holds_nothing, value))
    return value is not None and np.size(value) == 0


def bind(model: Model, feeds: Feeds) -> dict[str, int]:
    """The size of every symbol of the model's input shapes, read from the feeds.

    Raises:
        InputError: Two inputs give one symbol different sizes, or an input's rank is not the one in the model.
    """
    sizes: dict[str, int] = {}
    for spec, axis, symbol in symbolic_axes(model):
        if spec.name not in feeds:
            continue
        shape = np.shape(feeds[spec.name])
        if spec.shape is None or len(shape) != len(spec.shape):
            raise InputError(f"has shape {shape}, expected rank {len(spec.shape or ())}", value=spec.name)
        size = shape[axis]
        if sizes.setdefault(symbol, size) != size:
            raise InputError(
                f"axis {axis} has size {size}, but '{symbol}' is {sizes[symbol]} in another input", value=spec.name
            )
    return sizes


def symbolic_axes(model: Model) -> Iterator[tuple[ValueSpec, int, str]]:
    """Every input axis without a fixed size, with its symbol; an unnamed one gets ``input.axis`` as its symbol."""
    for spec in model.inputs:
        if spec.kind == "tensor" and spec.shape is not None:
            for axis, dim in enumerate(spec.shape):
                if not isinstance(dim, int):
                    yield spec, axis, dim or f"{spec.name}.{axis}"


def formulas(model: Model) -> dict[str, Formula]:
    """The symbols of input axes that are formulas over the symbols of other input axes: ``past + sequence``."""
    symbols = dict.fromkeys(symbol for _, _, symbol in symbolic_axes(model))
    found = {symbol: Formula.of(symbol) for symbol in symbols if not symbol.isidentifier()}
    plain = symbols.keys() - found.keys()
    return {
        symbol: formula for symbol, formula in found.items() if formula and formula.names and plain >= {*formula.names}
    }


def largest(model: Model) -> dict[str, int]:
    """The largest size that a model states, by symbol."""
    return _bounds(model, " <= ")


def _bounds(model: Model, relation: str) -> dict[str, int]:
    bounds = [condition.split(relation) for condition in model.related if relation in condition]
    return {symbol: int(bound) for symbol, bound in bounds}


def stepped(model: Model, symbol: str, least: int) -> int:
    """The smallest size from ``least`` on that the smallest size and the step stated for a symbol allow."""
    step, rest = model.steps.get(symbol, (1, 0))
    least = max(least, _bounds(model, " >= ").get(symbol, 0))
    return least + (rest - least) % step


def followed(sizes: Mapping[str, int], relations: Mapping[str, Formula]) -> dict[str, int] | None:
    """The sizes of all symbols for those of the independent ones; ``None`` where a formula gives no size."""
    computed = {symbol: formula.size(sizes) for symbol, formula in relations.items()}
    if None in computed.values():
        return None
    return {**sizes, **{symbol: size for symbol, size in computed.items() if size is not None}}


def generate(
    model: Model,
    *,
    dims: Mapping[str, int] | None = None,
    given: Feeds | None = None,
    rng: np.random.Generator | None = None,
) -> dict[str, Any]:
    """Random feeds made from a model's input specs.

    Floats are standard normal, integers 0 or 1 (any id table has two rows), booleans random, strings short.

    Args:
        model: The model to feed.
        dims: Sizes by symbol, an unnamed axis by ``input.axis``; a symbol left out gets 1, 2, 3, … in order, or
            what comes next and meets ``Model.steps``; one that is a formula over others what they make it.
        given: Inputs to use as they are; they fix the sizes of their symbols.
        rng: Where the draws come from; seeded with 0 by default, so two calls agree.

    Raises:
        InputError: An input's rank or dtype is unknown, it is not a tensor, or ``dims`` names an unknown symbol.
    """
    rng = rng or np.random.default_rng(0)
    symbols = dict.fromkeys(symbol for _, _, symbol in symbolic_axes(model))
    for unknown in (dims or {}).keys() - symbols.keys():
        raise InputError(f"no input has an axis '{unknown}'", hint=f"symbols: {', '.join(symbols) or 'none'}")
    relations = formulas(model)
    free = [symbol for symbol in symbols if symbol not in relations]
    sizes = {symbol: stepped(model, symbol, count) for count, symbol in enumerate(free, start=1)} | dict(dims or {})
    given = given or {}
    sizes |= bind(model, given)
    for symbol, formula in relations.items():
        sizes.setdefault(symbol, formula.size(sizes) or 0)
    return {spec.name: given[spec.name] if spec.name in given else _draw(spec, sizes, rng) for spec in model.inputs}


def _draw(spec: ValueSpec, sizes: Mapping[str, int], rng: np.random.Generator) -> Any:
    """A tensor; as many of one shape as ``_MEMBERS`` says for a sequence, and what an optional may hold."""
    if spec.kind not in _DRAWN or spec.shape is None or spec.dtype is None:
        raise InputError("no values can be made up for it", value=spec.name, hint=f"feed it yourself: {spec}")
    shape = tuple(
        dim if isinstance(dim, int) else sizes.get(dim or f"{spec.name}.{axis}", axis + 2)
        for axis, dim in enumerate(spec.shape)
    )
    made = [draw(numpy_dtype(spec.dtype), shape, rng) for _ in range(_MEMBERS if spec.kind == "sequence" else 1)]
    return made if spec.kind == "sequence" else made[0]


_DRAWN, _MEMBERS = ("tensor", "sequence", "optional"), 2


def draw(dtype: np.dtype, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Random values of one dtype: normal floats, integers and booleans of 0 and 1, strings of one letter."""
    kind = classify(dtype)
    claim(shape)
    if kind in {"float", "complex"}:
        return np.asarray(rng.standard_normal(shape)).astype(dtype)
    bits = np.asarray(rng.integers(0, 2, shape))
    return np.where(bits, "a", "b").astype(object) if kind == "string" else bits.astype(dtype)


def numpy_dtype(name: str) -> np.dtype:
    """The NumPy dtype of an ONNX element type in lower case.

    Raises:
        InputError: There is no such element type.
    """
    import onnx_ir

    try:
        return onnx_ir.DataType[_ONNX_NAMES.get(name, name.upper())].numpy()
    except KeyError:
        raise InputError(f"there is no element type '{name}'") from None


_ONNX_NAMES = {"float32": "FLOAT", "float64": "DOUBLE"}
