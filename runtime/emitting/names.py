"""Python names for ONNX names: readable, unique, never a keyword."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Iterable

_RESERVED = frozenset(keyword.kwlist) | frozenset(keyword.softkwlist) | frozenset(dir(builtins))


class Names:
    """Hands out names that are free in one generated function."""

    def __init__(self, reserved: Iterable[str] = ()) -> None:
        self._taken: set[str] = {*_RESERVED, *reserved}
        self._next: dict[str, int] = {}

    def claim(self, name: str) -> bool:
        """Take a name as it is; whether it was free."""
        free = name not in self._taken
        self._taken.add(name)
        return free

    def fresh(self, wanted: str) -> str:
        """``wanted`` as an identifier, with a number appended when it is taken."""
        stem = re.sub(r"\W+", "_", wanted, flags=re.ASCII).strip("_") or "v"
        if stem[0].isdigit():
            stem = f"v{stem}"
        name = stem
        while name in self._taken:
            self._next[stem] = self._next.get(stem, 1) + 1
            name = f"{stem}_{self._next[stem]}"
        self._taken.add(name)
        return name
