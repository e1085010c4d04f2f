"""``dynamic={"x": {0: "batch"}}``: exactly these axes, or an error that says why not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from entrepot.exporters.axes.groups import Axis, Group
from entrepot.exporters.axes.probe import Prober
from entrepot.ir.errors import ConversionError, InputError


def required_groups(prober: Prober, dynamic: Mapping[str, Mapping[int, Any]], names: Sequence[str]) -> list[Group]:
    """The groups that ``dynamic`` names, each tried on the module.

    Raises:
        InputError: It names an input or an axis that does not exist.
        ConversionError: The module does not accept another size of an axis.
    """
    members: dict[str, list[Axis]] = {}
    for name, axes in dynamic.items():
        _check_input(name, names)
        for axis, symbol in axes.items():
            members.setdefault(_symbol(symbol, name), []).append(_axis(prober, name, axis, names))
    return [required_group(prober, symbol, axes, names) for symbol, axes in members.items()]


def _symbol(symbol: Any, name: str) -> str:
    text = symbol if isinstance(symbol, str) else getattr(symbol, "__name__", "")  # a torch.export.Dim has a __name__
    if not str(text).isidentifier():
        raise InputError(f"'{text}' cannot name an axis", value=name, hint='use an identifier: {0: "batch"}')
    return str(text)


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
    other = next((each for each in prober.fresh_sizes(size) if prober.takes(dict.fromkeys(axes, each)) is None), None)
    if other is None:
        raise unvarying(prober, axes, names, symbol)
    if size < 2:
        prober.enlarge(axes, other)
    return Group(frozenset(axes), symbol, [size, other] if size > 1 else [other], required=True)


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
