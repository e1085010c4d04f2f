"""``dynamic={"x": {0: "batch"}}``: exactly these axes, or an error that says why not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from entrepot.exporters.axes.groups import Axis, Group, axis_word, settled
from entrepot.exporters.axes.probe import Prober
from entrepot.exporters.axes.related import add_up
from entrepot.exporters.axes.relations import Relation, derived_groups
from entrepot.ir.errors import ConversionError, InputError
from entrepot.ir.typing.formula import Formula


def required_groups(prober: Prober, dynamic: Mapping[str, Mapping[int, Any]], names: Sequence[str]) -> list[Group]:
    """The groups that ``dynamic`` names, each tried on the module.

    Raises:
        InputError: It names an input or an axis that does not exist, or a formula over names that it does not give.
        ConversionError: The module does not accept another size of an axis.
    """
    members: dict[str, list[Axis]] = {}
    for name, axes in dynamic.items():
        _check_input(name, names)
        for axis, symbol in axes.items():
            members.setdefault(_symbol(symbol, name), []).append(_axis(prober, name, axis, names))
    plain = {symbol: axes for symbol, axes in members.items() if symbol.isidentifier()}
    formulas = {symbol: axes for symbol, axes in members.items() if symbol not in plain}
    prober.relations = [_relation(prober, symbol, axes, plain, names) for symbol, axes in formulas.items()]
    try:
        groups = [required_group(prober, symbol, axes, names) for symbol, axes in plain.items()]
        followed = _followed(prober, plain, certain=True) if add_up(prober, groups) else set()
    except ConversionError:
        if not (followed := _followed(prober, plain, certain=False)):
            raise
    if followed:
        plain = {symbol: axes for symbol, axes in plain.items() if symbol not in followed}
        groups = [required_group(prober, symbol, axes, names) for symbol, axes in plain.items()]
    groups = settled(derived_groups(prober.relations, groups, prober.sizes), prober.base)
    return [replace(group, required=True) for group in groups]


def _relation(
    prober: Prober, symbol: str, axes: Sequence[Axis], plain: Mapping[str, Sequence[Axis]], names: Sequence[str]
) -> Relation:
    """What a formula in place of a name says.

    Raises:
        InputError: It is over a name that no axis has, or does not hold in the sample.
    """
    formula = Formula.of(symbol)
    assert formula is not None
    if unknown := [name for name in formula.names if name not in plain]:
        raise InputError(
            f"'{symbol}' is a formula over '{unknown[0]}', which is the name of no axis",
            value=names[axes[0][0]],
            hint=f'name the axis itself as well: dynamic={{"{names[axes[0][0]]}": ..., "x": {{0: "{unknown[0]}"}}}}',
        )
    relation = Relation(frozenset(axes), formula.renamed({name: axis_word(plain[name][0]) for name in formula.names}))
    for index, axis in axes:
        if relation.size(prober.sizes) != prober.size((index, axis)):
            raise InputError(
                f"'{symbol}' is {relation.size(prober.sizes)} in the sample, but axis {axis} is"
                f" {prober.size((index, axis))}",
                value=names[index],
            )
    return relation


def _followed(prober: Prober, plain: Mapping[str, list[Axis]], *, certain: bool) -> set[str]:
    """The names whose axes follow from others, as far as the source can say; from now on they do.

    Args:
        prober: Told what follows from what.
        plain: The axes by name.
        certain: Whether to look only at what cannot be captured otherwise.
    """
    by_axis = {axis: symbol for symbol, axes in plain.items() for axis in axes}
    followed: set[str] = set()
    for relation in prober.said(prober.base, list(plain.values())) or ():
        symbols = {by_axis[axis] for axis in relation.axes if axis in by_axis}
        leaders = {by_axis[axis] for axis in relation.drivers if axis in by_axis}
        apart = symbols and leaders and not leaders & (symbols | followed)
        if apart and relation.certain >= certain:
            axes = frozenset[Axis]().union(*(plain[symbol] for symbol in symbols))
            prober.relations.append(replace(relation, axes=axes))
            followed |= symbols
    return followed


def _symbol(symbol: Any, name: str) -> str:
    text = symbol if isinstance(symbol, str) else getattr(symbol, "__name__", "")  # a torch.export.Dim has a __name__
    formula = Formula.of(str(text))
    if formula is None or not formula.names:
        raise InputError(
            f"'{text}' cannot name an axis",
            value=name,
            hint='use an identifier, {0: "batch"}, or a formula over others',
        )
    return formula.text


def _check_input(name: str, names: Sequence[str]) -> None:
    if name not in names:
        raise InputError(f"dynamic names an input '{name}'", hint=f"inputs are: {', '.join(names)}")


def _axis(prober: Prober, name: str, axis: int, names: Sequence[str]) -> Axis:
    index = list(names).index(name)
    rank = len(prober.base[index].shape)
    if not -rank <= axis < rank:
        raise InputError(f"dynamic names axis {axis}, but the rank is {rank}", value=name)
    return index, axis % rank


def required_group(prober: Prober, symbol: str, axes: list[Axis], names: Sequence[str]) -> Group:
    """The group of one name, tried on the module.

    Raises:
        InputError: The sizes of its axes differ.
        ConversionError: The module does not accept another size of them.
    """
    sizes = {prober.size(axis) for axis in axes}
    if len(sizes) > 1:
        raise InputError(f"'{symbol}' names axes of different sizes: {sorted(sizes)}", hint="give them different names")
    size = prober.size(axes[0])
    step = prober.step(axes)
    fresh = prober.fresh_sizes(size, step=step)
    other = next((each for each in fresh if prober.takes(dict.fromkeys(axes, each)) is None), None)
    if other is None:
        raise unvarying(prober, axes, names, symbol)
    if size < 2:
        prober.enlarge(axes, other)
    return Group(frozenset(axes), symbol, [size, other] if size > 1 else [other], step=step, required=True)


def unvarying(prober: Prober, axes: Sequence[Axis], names: Sequence[str], symbol: str = "") -> ConversionError:
    """The error for axes that have to vary although the module accepts no other size."""
    size = prober.size(axes[0])
    refusals = (prober.takes(dict.fromkeys(axes, each)) for each in prober.fresh_sizes(size))
    refusal = next((each for each in refusals if each is not None), None)
    where = " and ".join(f"axis {axis} of '{names[index]}'" for index, axis in axes)
    line = f" at {refusal.source}" if refusal is not None and refusal.source else ""
    as_symbol = f" as '{symbol}'" if symbol else ""
    return ConversionError(
        f"{where} cannot be dynamic{as_symbol}: the module itself refuses any size other than {size}{line}: {refusal}",
        value=names[axes[0][0]],
        hint="give axes that must be equal the same name; leave out an axis that must keep its size",
    )
