"""A source and the model that was made of it, side by side; inputs and outputs are matched by position."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from entrepot.exporters.arrays import Array
from entrepot.exporters.axes.groups import Group
from entrepot.exporters.called import Called, called
from entrepot.exporters.exporter import Source
from entrepot.exporters.options import Judging
from entrepot.exporters.proof.chance import prove_chance
from entrepot.exporters.proof.prove import prove
from entrepot.ir.errors import InputError
from entrepot.ir.model import Model
from entrepot.parity.feeds import Feeds
from entrepot.parity.plan import sized_cases
from entrepot.parity.report.report import Report


def compare(
    source: Source,
    model: Model,
    judging: Judging,
    groups: Sequence[Group] = (),
    against: Sequence[Mapping[str, int]] = (),
) -> Report:
    """The proof of a model.

    Args:
        source: What it was made of.
        model: The model.
        judging: Who runs it, and what agreement means.
        groups: Its axes.
        against: Sizes at which its capture need not hold.

    Raises:
        InputError: The model takes a different number of inputs.
    """
    trusted, feeds = _both(source, model, groups)
    if source.is_random():
        return prove_chance(trusted, model, feeds, judging)
    edges = [{group.symbol: group.bounds["min"] - 1} for group in groups if group.bounds["min"] > 2]
    edges += [{group.symbol: times * group.beyond} for group in groups for times in (1, 3) if group.beyond]
    more = [_feeds(source, model, each) for each in source.more]
    return prove(trusted, model, feeds, judging, edges=[*edges, *against], more=more)


def agrees_at(source: Source, model: Model, judging: Judging, groups: Sequence[Group], group: Group, size: int) -> bool:
    """Whether a model does what its source does where a group of axes has another size."""
    trusted, feeds = _both(source, model, groups)
    cases = sized_cases(model, feeds, {group.symbol: size}, np.random.default_rng(0))
    return any(prove(trusted, model, case.feeds, judging, only_sample=True).ok for case in cases)


def _both(source: Source, model: Model, groups: Sequence[Group]) -> tuple[Called, Feeds]:
    tensors = source.call.tensors
    if len(model.inputs) != len(tensors):
        raise InputError(f"the sample has {len(tensors)} tensors, the model takes {len(model.inputs)}")
    feeds = _feeds(source, model, tensors)
    return called(source, list(feeds), [spec.name for spec in model.outputs], groups), feeds


def _feeds(source: Source, model: Model, tensors: Sequence[Array]) -> Feeds:
    names = (spec.name for spec in model.inputs)
    return dict(zip(names, map(source.arrays.to_numpy, tensors), strict=True))
