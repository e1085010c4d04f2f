"""What was found fastest on this machine, in a file of its own for each kind of machine.

A computation is known by its operator and sizes, not by the model that it is in: models that have it in common share
what is known of it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

from entrepot.ir.errors import StorageError
from entrepot.ir.io.destination import write_file

SWITCH = "ENTREPOT_CACHE"
"""The variable that says in which folder files are kept."""

_FORMAT = 1
_LARGEST = 1 << 24
"""Bytes of a file that is read."""


def folder(environment: Mapping[str, str] = os.environ, system: str = sys.platform) -> Path | None:
    """Where what can be made again is kept for this user; ``None`` where nobody says.

    Args:
        environment: Its variables.
        system: The name of the operating system, as Python has it.
    """
    if environment.get(SWITCH):
        return Path(environment[SWITCH]).absolute()
    home = environment.get("USERPROFILE" if system == "win32" else "HOME", "")
    usual = {"win32": Path(home, "AppData", "Local"), "darwin": Path(home, "Library", "Caches")}
    asked = environment.get("LOCALAPPDATA" if system == "win32" else "XDG_CACHE_HOME", "")
    if not asked and not home:
        return None
    return (Path(asked) if asked else usual.get(system, Path(home, ".cache"))) / "entrepot"


class Choices:
    """Which way is taken for each computation; a file that cannot be read counts as empty.

    Args:
        where: The folder of the file; ``None`` keeps nothing beyond this object.
        machine: All that decides what is fast, by name.
    """

    def __init__(self, where: Path | None, machine: Mapping[str, str]) -> None:
        self._machine = dict(machine)
        self._known: dict[str, str] = {}
        self.path: Path | None = None
        self.problem = f"{SWITCH} names no folder, and there is no home" if where is None else ""
        """Why nothing is kept; empty while everything is."""
        if where is not None:
            name = hashlib.sha256(json.dumps(self._machine, sort_keys=True).encode()).hexdigest()[:16]
            self.path = where / "choices" / f"{name}.json"
            self._known = self._read()

    def get(self, computation: str) -> str:
        """The way that was taken; empty if none was."""
        return self._known.get(computation, "")

    def put(self, computation: str, way: str) -> None:
        """Keep a way, beside what other processes have kept since."""
        self._known[computation] = way
        if self.path is None or self.problem:
            return
        self._known = {**self._read(), **self._known}
        content = json.dumps({"format": _FORMAT, "machine": self._machine, "choices": self._known}, indent=1)

        def write(file: BinaryIO) -> None:
            file.write(content.encode())

        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            write_file(self.path, write)
        except (OSError, StorageError) as error:
            self.problem = str(error)

    def _read(self) -> dict[str, str]:
        assert self.path is not None
        with contextlib.suppress(OSError, ValueError):
            if self.path.stat().st_size <= _LARGEST:
                found = json.loads(self.path.read_bytes())
                if isinstance(found, dict) and (found.get("format"), found.get("machine")) == (_FORMAT, self._machine):
                    return _texts(found.get("choices"))
        return {}


def _texts(found: object) -> dict[str, str]:
    pairs = found.items() if isinstance(found, dict) else ()
    return {key: value for key, value in pairs if isinstance(value, str)}
