"""The architectures that can be made small, as ``discover`` found them."""

from __future__ import annotations

import functools
import json
from pathlib import Path

from tests.export_cases.architectures.building import Recipe, build
from tests.export_cases.case import Case

FILE = Path(__file__).with_name("catalogue.json")


def recipes() -> list[Recipe]:
    """All that are known."""
    rows = json.loads(FILE.read_text()) if FILE.exists() else []
    return [Recipe(*row[:-1], sizes=tuple(row[-1])) for row in rows]


def catalogue() -> list[Case]:
    """A case for each."""
    return [
        Case(f"{recipe.kind}/{recipe.model_type}", "architectures", functools.partial(build, recipe))
        for recipe in recipes()
    ]
