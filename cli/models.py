"""Models named on the command line."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from entrepot.cli.output import Output
    from entrepot.ir.model import Model

MODEL = click.Path(exists=True, dir_okay=False, path_type=Path)
"""An existing file; a missing one is a usage error before anything is loaded."""


class NewFile(click.Path):
    """A file to write, in a folder that is there: said before the work is done, not after."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """The path, when it can be written."""
        path = Path(os.fsdecode(super().convert(value, param, ctx)))
        if not path.absolute().parent.is_dir():
            self.fail(f"the folder '{path.parent}' does not exist", param, ctx)
        return path


TARGET = NewFile(dir_okay=False, writable=True, path_type=Path)


def read_model(path: Path, output: Output) -> Model:
    """Load with the default limits, telling so when it takes long."""
    from entrepot.ir.io.read import load
    from entrepot.ir.progress import reporter

    reporter(output.progress)(f"reading {path}")
    return load(path)
