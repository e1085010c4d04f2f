"""The one table type for everything looked up by operator."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar

from entrepot.ir.errors import UnsupportedOpError

F = TypeVar("F", bound=Callable[..., Any])


class OpKey(NamedTuple):
    """An operator at the exact version that defines it."""

    domain: str
    op_type: str
    since: int


@dataclass(frozen=True)
class Entry(Generic[F]):
    """A registered function and what it declares about itself."""

    function: F
    constants: frozenset[str] = field(default_factory=frozenset)
    """Inputs that must be known when the graph is compiled."""


class OpTable(Generic[F]):
    """Functions found by (domain, op_type, exact since-version); there is no "nearest older".

    A table fills itself: its packages' modules are imported at the first look-up.

    Args:
        kind: What an entry is, for messages: ``"native kernel"``.
        packages: Packages whose modules register entries when imported.
    """

    def __init__(self, kind: str, *, packages: tuple[str, ...] = ()) -> None:
        self.kind = kind
        self._packages = packages
        self._entries: dict[OpKey, Entry[F]] = {}
        self._filled = not packages

    def __call__(
        self, op_type: str, since: int, *, domain: str = "", constants: frozenset[str] | set[str] = frozenset()
    ) -> Callable[[F], F]:
        """Decorator that registers a function for one operator version."""
        key = OpKey(domain, op_type, since)

        def register(function: F) -> F:
            if key in self._entries:
                raise ValueError(f"two {self.kind}s for {key}: {self._entries[key].function} and {function}")
            self._entries[key] = Entry(function, frozenset(constants))
            return function

        return register

    def find(self, domain: str, op_type: str, since: int) -> Entry[F] | None:
        """The entry for exactly this version, or ``None``."""
        self._fill()
        return self._entries.get(OpKey(domain, op_type, since))

    def get(self, domain: str, op_type: str, since: int) -> Entry[F]:
        """The entry for exactly this version.

        Raises:
            UnsupportedOpError: No such entry; the message lists the registered versions.
        """
        entry = self.find(domain, op_type, since)
        if entry is None:
            have = sorted(key.since for key in self._entries if key[:2] == (domain, op_type))
            raise UnsupportedOpError(
                f"no {self.kind} for {domain or 'ai.onnx'}::{op_type} version {since}; registered: {have or 'none'}"
            )
        return entry

    def __iter__(self) -> Iterator[OpKey]:
        self._fill()
        return iter(sorted(self._entries))

    def __len__(self) -> int:
        self._fill()
        return len(self._entries)

    def _fill(self) -> None:
        if self._filled:
            return
        self._filled = True  # before the imports: a module may look something up while it loads
        for name in self._packages:
            package = importlib.import_module(name)
            for module in pkgutil.iter_modules(package.__path__):
                importlib.import_module(f"{name}.{module.name}")
