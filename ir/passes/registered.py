"""Passes that other distributions register, by name."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from entrepot.ir.errors import InputError, PluginError
from entrepot.ir.plugins import named, plugins


def registered(names: Sequence[str]) -> list[ir.passes.PassBase]:
    """New passes by their names among ``entrepot.passes``, where classes and functions that make them stand.

    Raises:
        InputError: Nothing is registered under a name.
        PluginError: What is registered cannot be imported, or is no pass.
    """
    return [_pass(name) for name in names]


def _pass(name: str) -> ir.passes.PassBase:
    plugin = named("passes", name)
    if plugin is None:
        known = ", ".join(other.name for other in plugins("passes")) or "none"
        raise InputError(f"no pass is registered as '{name}'", value=name, hint=f"registered passes: {known}")
    made = plugin.load(needs=("__call__",))()
    if not isinstance(made, ir.passes.PassBase):
        raise PluginError(
            f"{plugin.distribution} registers '{name}' among entrepot.passes, but {plugin.value} makes a "
            f"{type(made).__name__}, which is no onnx_ir pass",
            hint="update or remove the distribution",
        )
    return made
