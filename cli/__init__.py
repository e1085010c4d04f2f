"""The command line: one file per verb, loaded when it is called."""

from __future__ import annotations

from entrepot.cli.group import main

__all__ = ["main"]
