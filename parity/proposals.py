"""Inputs to try on a model that does not say which of its sizes go together."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from entrepot.ir.errors import EntrepotError
from entrepot.ir.model import Model
from entrepot.parity.feeds import Feeds, formulas, generate, stepped, symbolic_axes
from entrepot.parity.fixed_by_weights import by_weights
from entrepot.parity.tolerance import classify
from entrepot.runtime.session import Session

_SIZES = (4, 2, 16, 32, 64, 3, 1, 8)
"""Sizes for the axes of a model that does not run on small ones: a window may be larger than the first."""

_LONG = (512, 16_000)
"""Sizes for all axes but the first of a model that runs on none of those: a part of a second of sound, and a second."""

_MOST = 1 << 22
"""Elements of an input; two long axes may make more."""

_FEW, _NEAR = 3, 0.05


def that_runs(model: Model, providers: Sequence[str] = ("cpu",)) -> Feeds | None:
    """The first proposal that these providers all run a model on; ``None`` if there is none.

    Raises:
        InputError: No values can be made up for an input.
    """
    try:
        sessions = [Session(model, providers=[name]) for name in providers]
    except EntrepotError:
        return None
    for feeds in proposals(model):
        try:
            for session in sessions:
                session.run(feeds)
        except EntrepotError:
            continue
        return feeds
    return None


def proposals(model: Model) -> Iterator[Feeds]:
    """Feeds of several sizes, at last with floats near 0: what looks for neighbours may find none among others.

    Raises:
        InputError: No values can be made up for an input.
    """
    sizings = list(_sizings(model))
    for dims in sizings:
        yield generate(model, dims=dims)
    for dims in sizings[:_FEW]:
        yield {name: _near_zero(value) for name, value in generate(model, dims=dims).items()}


def _sizings(model: Model) -> Iterator[dict[str, int]]:
    """Sizes that differ where the model names axes differently, then sizes that agree.

    Several converters give each input a name of its own for the batch. So names of one axis each are taken to mean the
    same size where they stand at the same place of their inputs, and in the end all names are.
    """
    related = formulas(model)
    axes = [each for each in symbolic_axes(model) if each[2] not in related]
    times = Counter(symbol for _, _, symbol in axes)
    symbols = sorted(times)
    place = {symbol: axis if times[symbol] == 1 else len(axes) + at for at, (_, axis, symbol) in enumerate(axes)}
    order = {at: number for number, at in enumerate(sorted({*place.values()}))}
    fixed = by_weights(model)
    tried: list[dict[str, int]] = []
    for size in _SIZES:
        apart = {symbol: size + at for at, symbol in enumerate(symbols)}
        by_place = {symbol: size + order[place[symbol]] for symbol in symbols}
        for sizes in (apart, by_place, dict.fromkeys(symbols, size)):
            dims = {symbol: stepped(model, symbol, least) for symbol, least in sizes.items()}
            dims.update(fixed)
            if dims not in tried:
                tried.append(dims)
                yield dims
    first = {symbol for _, axis, symbol in axes if axis == 0}
    for size in _LONG:
        dims = {symbol: 1 if symbol in first else size for symbol in symbols} | fixed
        if _largest_input(model, dims) <= _MOST:
            yield dims


def _largest_input(model: Model, dims: Mapping[str, int]) -> int:
    """The most elements that an input has at these sizes."""
    sizes: dict[str, list[int]] = {
        spec.name: [d for d in spec.shape or () if isinstance(d, int)] for spec in model.inputs
    }
    for spec, _, symbol in symbolic_axes(model):
        sizes[spec.name].append(dims.get(symbol, 1))
    return max(map(math.prod, sizes.values()), default=0)


def _near_zero(array: np.ndarray) -> np.ndarray:
    return (array * _NEAR).astype(array.dtype) if classify(array.dtype) == "float" else array
