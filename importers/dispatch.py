"""From a name to who makes that of a model: ours, and what other distributions register."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from entrepot.ir.arguments import expected
from entrepot.ir.errors import InputError
from entrepot.ir.io.read import load
from entrepot.ir.plugins import named, plugins

if TYPE_CHECKING:
    from entrepot.ir.io.read import Source

_HOMES = {
    "numpy": ("entrepot.importers.numpy.convert", "to_numpy"),
    "torch": ("entrepot.importers.torch.convert", "to_torch"),
}


def to(model: Source, framework: str, **options: Any) -> Any:
    """The model as something of another framework, chosen by name.

    Args:
        model: A ``Model``, or anything ``load`` reads.
        framework: ``"numpy"``, ``"torch"``, or a name that an installed distribution registers among
            ``entrepot.importers``: a function of a ``Model`` and options.
        options: Passed on to ``to_numpy``, ``to_torch``, or that function.

    Returns:
        What it makes: for ``"numpy"`` a ``NumpyModel``, for ``"torch"`` a ``torch.nn.Module``.

    Raises:
        InputError: There is no such framework, or it does not take these options.
        PluginError: What is registered under the name cannot be imported or called.
    """
    function, loaded = maker(framework), load(model)
    try:
        inspect.signature(function).bind(loaded, **options)
    except TypeError as error:
        raise InputError(f"{framework}: {error}", hint=f"it takes {inspect.signature(function)}") from error
    return function(loaded, **options)


def maker(name: Any) -> Callable[..., Any]:
    """The function that makes something of a framework of a model.

    Raises:
        InputError: There is no such framework.
        PluginError: What is registered under the name cannot be imported or called.
    """
    if not isinstance(name, str):
        raise expected("framework", "the name of one", name)
    if name in _HOMES:
        module, attribute = _HOMES[name]
        return getattr(importlib.import_module(module), attribute)
    plugin = named("importers", name)
    if plugin is None:
        known = ", ".join([*_HOMES, *(other.name for other in plugins("importers"))])
        raise InputError(f"nothing makes {name!r} of a model", value=name, hint=f"there are {known}")
    return plugin.load(needs=("__call__",))
