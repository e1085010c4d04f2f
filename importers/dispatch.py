"""From a name to who makes that of a model: ours, and what other distributions register."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from entrepot.ir.errors import InputError
from entrepot.ir.io.read import load
from entrepot.ir.plugins import named, plugins

if TYPE_CHECKING:
    from entrepot.ir.io.read import Source

_HOMES = {"numpy": ("entrepot.importers.numpy.convert", "to_numpy")}


def to(model: Source, target: str, **options: Any) -> Any:
    """The model as something of another framework, chosen by name.

    Args:
        model: A ``Model``, or anything ``load`` reads.
        target: ``"numpy"``, or a name that an installed distribution registers among ``entrepot.importers``: a function
            of a ``Model`` and options.
        options: Passed on to ``to_numpy``, or to that function.

    Returns:
        What it makes, for ``"numpy"`` a ``NumpyModel``.

    Raises:
        InputError: There is no such target.
        PluginError: What is registered under the name cannot be imported or called.
    """
    if target in _HOMES:
        module, attribute = _HOMES[target]
        return getattr(importlib.import_module(module), attribute)(model, **options)
    plugin = named("importers", target) if isinstance(target, str) else None
    if plugin is None:
        known = [*_HOMES, *(other.name for other in plugins("importers"))]
        raise InputError(
            f"nothing makes {target!r} of a model", value=str(target), hint=f"there are {', '.join(known)}"
        )
    return plugin.load(needs=("__call__",))(load(model), **options)
