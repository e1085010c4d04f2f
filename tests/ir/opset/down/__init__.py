"""Models on their way down, by family: one per rule, each judged by onnxruntime's own kernels of both opsets."""

from __future__ import annotations

from tests.ir.opset.down import (
    activation,
    arithmetic,
    containers,
    image,
    matrix,
    movement,
    normalization,
    reduction,
    signal,
)
from tests.ir.opset.down.case import Down

FAMILIES = (activation, arithmetic, containers, image, matrix, movement, normalization, reduction, signal)

CASES: dict[str, Down] = {name: case for family in FAMILIES for name, case in family.CASES.items()}
