"""How far a model is cleaned up."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

Level: TypeAlias = Literal["none", "basic", "extended"]
"""``"none"``: nodes as they are; ``"basic"``: without those that are not needed, batch normalisations after a product
among them; ``"extended"``: also without those before a product, which need a bias that may not have been there."""

LEVELS: tuple[Level, ...] = get_args(Level)
