"""The inputs that show whether a model agrees with its source at every size it claims to accept."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from entrepot.ir.typing.formula import Formula
from entrepot.parity.feeds import Feeds, bind, followed, formulas, largest, resize, stepped, symbolic_axes, vary
from entrepot.parity.kinds import alike
from entrepot.parity.tolerance import classify

if TYPE_CHECKING:
    from entrepot.ir.model import Model

TOGETHER = " = "


@dataclass(frozen=True)
class Case:
    """One set of inputs and why it is run.

    Attributes:
        label: Its name in a report.
        feeds: The inputs.
        symbol: The symbol whose size it changes, or several that it gives one size, joined by ``TOGETHER``; empty when
            it changes none, or all at once.
        edge: ``"finite"`` for edge values, ``"special"`` for some that are NaN or infinite; see ``parity.edges``.
        spare: Whether it is left out where the source takes another size, whose values are others as well.
        own: Whether our own runtime alone is asked, once nothing else speaks against the model; it may refuse it.
        emptied: Whether a product or a normalisation is left nothing: onnxruntime may end the process, and is left out.
    """

    label: str
    feeds: Feeds
    symbol: str = ""
    edge: Literal["", "finite", "special"] = ""
    spare: bool = False
    own: bool = False
    emptied: bool = False


def plan_cases(
    model: Model, sample: Feeds, rng: np.random.Generator | None = None, *, sparing: bool = False
) -> tuple[Case, ...]:
    """The sample, the sample with other values, and every symbol of the input shapes at other sizes.

    Each symbol is tried alone at one more than its size in the sample, at twice that size, at 1 and at 0 (whatever the
    source does not accept is recorded as refused when the cases run), then all symbols at once at different sizes.
    Where ``Model.steps`` allows a size only in steps, the next of these is taken; where the model states a smallest
    or a largest size, none but 0 beyond it. Axes that share a symbol change together, and those whose symbol is a
    formula over others change with them.

    Args:
        model: What is judged.
        sample: Its inputs.
        rng: Draws other values.
        sparing: Whether no case is wanted that tells hardly anything new: twice a size beside one more; other values
            where all are floats and come with other sizes.

    Raises:
        InputError: The sample gives one symbol two sizes.
    """
    rng = rng or np.random.default_rng(0)
    other_values = Case("other values", {name: _vary(value, rng) for name, value in sample.items()})
    sizes, most = independent(model, sample), largest(model)
    spare = sparing and len(sizes) == 1 and all(_is_resized(model, *item) for item in sample.items())
    cases = [Case("sample", sample)] if spare else [Case("sample", sample), other_values]
    for symbol, size in sizes.items():
        more = (size + 1, 1) if sparing else (size + 1, 2 * size, 1)
        wished = (min(least, most.get(symbol, least)) for least in more)
        steps = (*(stepped(model, symbol, least) for least in wished), 0)
        others = [other for other in dict.fromkeys(steps) if other != size]
        cases += [case for other in others for case in sized_cases(model, sample, {symbol: other}, rng)]
    if len(sizes) > 1:
        changed = {symbol: stepped(model, symbol, size + 1 + at) for at, (symbol, size) in enumerate(sizes.items())}
        cases += sized_cases(model, sample, changed, rng)
    return tuple([*cases, replace(other_values, spare=True)] if spare else cases)


def _is_resized(model: Model, name: str, value: Any) -> bool:
    """Whether an input consists of floats, and has an axis that varies."""
    axes = any(spec.name == name for spec, _, _ in symbolic_axes(model))
    return axes and not isinstance(value, list) and classify(np.asarray(value).dtype) == "float"


def joint_cases(model: Model, sample: Feeds, symbols: Collection[str]) -> Iterator[Case]:
    """Symbols that the source takes at no other size alone, together with those that have the same size in the sample.

    Several converters give each input a name of its own for the batch.
    """
    sizes, rng = bind(model, sample), np.random.default_rng(0)
    for size in dict.fromkeys(sizes[symbol] for symbol in symbols):
        alike = [symbol for symbol in symbols if sizes[symbol] == size]
        for other in (size + 1, 1) if len(alike) > 1 else ():
            for case in sized_cases(model, sample, dict.fromkeys(alike, other), rng):
                yield replace(case, symbol=TOGETHER.join(alike))


def independent(model: Model, sample: Feeds) -> dict[str, int]:
    """The size of every symbol that does not follow from others.

    Raises:
        InputError: The sample gives one symbol two sizes.
    """
    sizes = bind(model, sample)
    relations = _relations(model, sizes)
    return {symbol: size for symbol, size in sizes.items() if symbol not in relations}


def _relations(model: Model, sizes: Mapping[str, int]) -> dict[str, Formula]:
    """The formulas that hold in the sample: another exporter may call an axis anything."""
    return {symbol: formula for symbol, formula in formulas(model).items() if formula.size(sizes) == sizes.get(symbol)}


def sized_cases(model: Model, sample: Feeds, changed: Mapping[str, int], rng: np.random.Generator) -> Iterator[Case]:
    """The sample with some symbols at other sizes, and others as those make them; none if there are no such sizes."""
    before = bind(model, sample)
    sizes = followed({**before, **changed}, _relations(model, before))
    if sizes is None or any(sizes.get(symbol, 0) > most for symbol, most in largest(model).items()):
        return
    feeds = dict(sample)
    for spec, axis, symbol in symbolic_axes(model):
        if symbol in sizes and sizes[symbol] != before.get(symbol) and spec.name in feeds:
            feeds[spec.name] = resize(np.asarray(feeds[spec.name]), axis, sizes[symbol], rng)
    feeds = {
        name: value if value is sample[name] else alike(value, np.asarray(sample[name]))
        for name, value in feeds.items()
    }
    label = ", ".join(f"{symbol}={size}" for symbol, size in changed.items())
    yield Case(label, feeds, symbol=next(iter(changed)) if len(changed) == 1 else "")


def _vary(value: Any, rng: np.random.Generator) -> Any:
    return [_vary(item, rng) for item in value] if isinstance(value, list) else vary(np.asarray(value), rng)
