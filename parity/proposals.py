"""Inputs to try on a model that does not say which of its sizes go together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from entrepot.ir.errors import EntrepotError
from entrepot.ir.model import Model
from entrepot.parity.feeds import Feeds, formulas, generate, stepped, symbolic_axes
from entrepot.parity.fixed_by_weights import by_weights
from entrepot.parity.tolerance import classify
from entrepot.runtime.session import Session

_SIZES = (4, 2, 16, 32, 64, 3, 1, 8)
"""Sizes for the axes of a model that does not run on small ones: a window may be larger than the first."""

_FEW, _NEAR = 3, 0.05


def that_runs(model: Model) -> Feeds | None:
    """The first proposal that our own runtime runs a model on; ``None`` if it runs on none.

    Raises:
        InputError: No values can be made up for an input.
    """
    try:
        session = Session(model)
    except EntrepotError:
        return None
    for feeds in proposals(model):
        try:
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


def _near_zero(array: np.ndarray) -> np.ndarray:
    return (array * _NEAR).astype(array.dtype) if classify(array.dtype) == "float" else array
