"""What other distributions register with ours by entry points: read when it is needed, and not before."""

from __future__ import annotations

from importlib import metadata
from typing import Any, Literal, TypeAlias

from entrepot.ir.errors import MissingDependencyError, PluginError

Group: TypeAlias = Literal["exporters", "importers", "providers", "passes", "operators"]
GROUPS: tuple[Group, ...] = ("exporters", "importers", "providers", "passes", "operators")


class Plugin:
    """One entry point.

    Attributes:
        group: What it adds.
        name: What it is called.
        distribution: Who brings it, with the version.
        value: Where it is, ``package.module:attribute``.
    """

    def __init__(self, group: Group, entry: metadata.EntryPoint) -> None:
        self._entry = entry
        self.group = group
        self.name = entry.name
        self.value = entry.value
        self.distribution = f"{entry.dist.name} {entry.dist.version}" if entry.dist is not None else "unknown"

    def __repr__(self) -> str:
        return f"<Plugin {self.name} of {self.distribution}>"

    def load(self, *, needs: tuple[str, ...] = ()) -> Any:
        """Import what it stands for.

        Args:
            needs: Attributes that it has to have.

        Raises:
            MissingDependencyError: A library that it imports is not installed.
            PluginError: It cannot be imported for another reason, or is not what the group asks for.
        """
        where = f"{self.distribution} registers '{self.name}' among entrepot.{self.group}, but {self.value}"
        try:
            found = self._entry.load()
        except ModuleNotFoundError as error:
            raise MissingDependencyError(
                f"{where} needs '{error.name}', which is not installed", hint="install it, or remove the distribution"
            ) from error
        except _BROKEN as error:
            raise PluginError(
                f"{where} cannot be imported: {type(error).__name__}: {error}", hint="update or remove the distribution"
            ) from error
        lacking = [name for name in needs if not hasattr(found, name)]
        if lacking:
            raise PluginError(f"{where} has no {' and no '.join(lacking)}", hint="update or remove the distribution")
        return found


_BROKEN = (
    ImportError,
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    NameError,
    OSError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
)
"""What importing somebody's module may raise about that module; the rest concerns the process."""


def plugins(group: Group) -> tuple[Plugin, ...]:
    """What is registered, by distribution and name; nothing is imported for it."""
    found = [Plugin(group, entry) for entry in metadata.entry_points(group=f"entrepot.{group}")]
    return tuple(sorted(found, key=lambda plugin: (plugin.distribution, plugin.name)))


def named(group: Group, name: str) -> Plugin | None:
    """The first that is registered under a name."""
    return next((plugin for plugin in plugins(group) if plugin.name == name), None)
