"""Cases that are written to a folder before they are exported."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.export_cases.case import Built
from tests.export_cases.tensorflow.case import FunctionCase

_FOLDERS: list[tempfile.TemporaryDirectory[str]] = []
"""Which live as long as the process."""


def file_case(
    name: str, write: Callable[[Path], str], call: Callable[[str], Any], calls: tuple[Any, ...], steps: float = 0.0
) -> FunctionCase:
    """A case of a file.

    Args:
        name: What it is called.
        write: Writes it into a folder; returns its name there.
        call: What computes the expected results, for what was written.
        calls: Arrays by the names of inputs.
        steps: See ``FunctionCase``.
    """

    def built() -> Built:
        folder = tempfile.TemporaryDirectory()
        _FOLDERS.append(folder)
        return Built(f"{folder.name}/{write(Path(folder.name))}", calls)

    return FunctionCase(name, "files", built, call=call, steps=steps)
