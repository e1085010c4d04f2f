"""Models named on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from entrepot.cli.output import Output
    from entrepot.ir.model import Model

MODEL = click.Path(exists=True, dir_okay=False, path_type=Path)
"""An existing file; a missing one is a usage error before anything is loaded."""

TARGET = click.Path(dir_okay=False, writable=True, path_type=Path)
"""A file to write."""


def read_model(path: Path, output: Output) -> Model:
    """Load with the default limits, telling so when it takes long."""
    from entrepot.ir.io.read import load
    from entrepot.ir.progress import reporter

    reporter(output.progress)(f"reading {path}")
    return load(path)
