"""The kernels of ``ScaleAndTranslate``: a weight for each distance, and how far they reach."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from entrepot.exporters.building import Builder
from entrepot.exporters.functions.terms import Term, choose, polynomial

Kernel = Callable[[Builder, Any], Any]


def _of(formula: Callable[[Term], Term]) -> Kernel:
    def kernel(build: Builder, distance: Any) -> Any:
        return formula(Term(build, distance)).value

    return kernel


def _lanczos(radius: float) -> Kernel:
    def formula(x: Term) -> Term:
        angle = choose(x <= 1e-3, 1.0, x) * math.pi
        return choose(x <= 1e-3, 1.0, radius * angle.sin() * (angle / radius).sin() / (angle * angle))

    return _of(formula)


def _gaussian(x: Term) -> Term:
    return choose(x >= 1.5, 0.0, (-(x * x) * 2.0).exp())


def _box(x: Term) -> Term:
    return choose(x < 0.5, 1.0, choose(x == 0.5, 0.5, x * 0.0))


def _triangle(x: Term) -> Term:
    return (1 - x).at_least(0.0)


def _cubic(far: tuple[float, ...], near: tuple[float, ...]) -> Kernel:
    def formula(x: Term) -> Term:
        return choose(x >= 2.0, 0.0, choose(x >= 1.0, polynomial(far, x), polynomial(near, x)))

    return _of(formula)


KERNELS: dict[str, tuple[Kernel, float]] = {
    "lanczos1": (_lanczos(1.0), 1.0),
    "lanczos3": (_lanczos(3.0), 3.0),
    "lanczos5": (_lanczos(5.0), 5.0),
    "gaussian": (_of(_gaussian), 1.5),
    "box": (_of(_box), 1.0),
    "triangle": (_of(_triangle), 1.0),
    "keyscubic": (_cubic((-0.5, 2.5, -4.0, 2.0), (1.5, -2.5, 0.0, 1.0)), 2.0),
    "mitchellcubic": (_cubic((-7 / 18, 2.0, -10 / 3, 16 / 9), (7 / 6, -2.0, 0.0, 8 / 9)), 2.0),
}
