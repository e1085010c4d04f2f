"""The inputs that show whether a model agrees with its source at every size it claims to accept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from entrepot.parity.feeds import Feeds, bind, resize, symbolic_axes, vary

if TYPE_CHECKING:
    from entrepot.ir.model import Model


@dataclass(frozen=True)
class Case:
    """One set of inputs and why it is run.

    Attributes:
        label: Its name in a report.
        feeds: The inputs.
        symbol: The symbol whose size it changes; empty when it changes none, or all at once.
        edge: ``"finite"`` for edge values, ``"special"`` for some that are NaN or infinite; see ``parity.edges``.
    """

    label: str
    feeds: Feeds
    symbol: str = ""
    edge: Literal["", "finite", "special"] = ""


def plan_cases(model: Model, sample: Feeds, rng: np.random.Generator | None = None) -> tuple[Case, ...]:
    """The sample, the sample with other values, and every symbol of the input shapes at other sizes.

    Each symbol is tried alone at one more than its size in the sample, at twice that size, at 1 and at 0 (whatever the
    source does not accept is recorded as refused when the cases run), then all symbols at once at different sizes.
    Axes that share a symbol change together.

    Raises:
        InputError: The sample gives one symbol two sizes.
    """
    rng = rng or np.random.default_rng(0)
    cases = [Case("sample", sample), Case("other values", {name: _vary(value, rng) for name, value in sample.items()})]
    sizes = bind(model, sample)
    for symbol, size in sizes.items():
        others = [other for other in dict.fromkeys((size + 1, 2 * size, 1, 0)) if other != size]
        cases += [_case(model, sample, {symbol: other}, rng) for other in others]
    if len(sizes) > 1:
        changed = {symbol: size + 1 + step for step, (symbol, size) in enumerate(sizes.items())}
        cases.append(_case(model, sample, changed, rng))
    return tuple(cases)


def _case(model: Model, sample: Feeds, sizes: Mapping[str, int], rng: np.random.Generator) -> Case:
    feeds = dict(sample)
    for spec, axis, symbol in symbolic_axes(model):
        if symbol in sizes and spec.name in feeds:
            feeds[spec.name] = resize(np.asarray(feeds[spec.name]), axis, sizes[symbol], rng)
    label = ", ".join(f"{symbol}={size}" for symbol, size in sizes.items())
    return Case(label, feeds, symbol=next(iter(sizes)) if len(sizes) == 1 else "")


def _vary(value: Any, rng: np.random.Generator) -> Any:
    return [_vary(item, rng) for item in value] if isinstance(value, list) else vary(np.asarray(value), rng)
