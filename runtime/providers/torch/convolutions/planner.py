"""Which kernel computes a convolution at one shape: by sizes alone, so that every session rounds alike, or measured."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import torch
from torch import Tensor

from entrepot.runtime.kernels.convolution import conv_window
from entrepot.runtime.kernels.window import Window
from entrepot.runtime.providers.torch.convolutions.packed import Geometry, PackedPlan
from entrepot.runtime.providers.torch.convolutions.plans import Fixed, OfNothing, Plan
from entrepot.runtime.providers.torch.convolutions.products import Matrix, ProductPlan
from entrepot.runtime.providers.torch.convolutions.winograd import Transformed, WinogradPlan, fits, suits
from entrepot.runtime.providers.torch.measuring.chooser import Chooser
from entrepot.runtime.room import claim

_SHAPES_KEPT = 64


class Planner:
    """Looks once at each shape; weights take each form at the first that needs it, and are right at all others."""

    def __init__(self, fixed: Fixed, chooser: Chooser | None = None) -> None:
        self._fixed, self._chooser = fixed, chooser
        self._packed: Any = None
        self._matrix, self._transformed = Matrix(fixed), Transformed(fixed.weights)
        self._plans: dict[torch.Size, Plan] = {}

    def at(self, shape: torch.Size) -> Plan:
        """What computes results for inputs of one shape."""
        plan = self._plans.get(shape)
        if plan is None:
            if len(self._plans) >= _SHAPES_KEPT:
                self._plans.clear()
            plan = self._plans[shape] = self._planned(shape)
        return plan

    def _planned(self, shape: torch.Size) -> Plan:
        fixed, group = self._fixed, self._fixed.attributes.get("group", 1)
        window = self._window(shape, group)
        result = torch.Size([shape[0], fixed.weights.shape[0], *window.target])
        claim(result, 4)
        if not shape.numel() or not fixed.weights.numel():
            return OfNothing(fixed)
        direct = partial(self._direct, window, group, shape, result)
        ways: dict[str, Callable[[], Plan]] = {
            "packed": direct,
            "product": lambda: ProductPlan(fixed, self._matrix, result),
            "Winograd": lambda: WinogradPlan(fixed, self._transformed, window, result, direct),
        }
        if self._chooser is None:
            return ways[self._usual(window, group, shape)]()
        return self._fastest(self._chooser, ways, window, group, shape)

    def _usual(self, window: Window, group: int, shape: torch.Size) -> str:
        if self._matrix.suits(window, group, shape[0]):
            return "product"
        return "Winograd" if suits(window, self._fixed.weights, group, shape[0]) else "packed"

    def _fastest(
        self, chooser: Chooser, ways: dict[str, Callable[[], Plan]], window: Window, group: int, shape: torch.Size
    ) -> Plan:
        fitting = {"product": self._matrix.fits(window, group), "Winograd": fits(window, self._fixed.weights, group)}
        plans = {name: cache(make) for name, make in ways.items() if fitting.get(name, True)}
        computation = f"convolution {tuple(shape)} by {tuple(self._fixed.weights.shape)}, {window}, {group}"
        x = cache(partial(_ones, shape))
        runs = {name: partial(_run, plan, x) for name, plan in plans.items()}
        return plans[chooser.fastest(computation, runs, self._usual(window, group, shape))]()

    def _window(self, shape: torch.Size, group: int) -> Window:
        given, weights = self._fixed.attributes, self._fixed.weights
        dilations, pads, strides = (given.get(name) for name in ("dilations", "pads", "strides"))
        kernel, auto_pad = given.get("kernel_shape"), given.get("auto_pad", "NOTSET")
        return conv_window(shape, weights.shape, kernel, group, auto_pad, dilations, pads, strides)

    def _direct(self, window: Window, group: int, shape: torch.Size, result: torch.Size) -> Plan:
        geometry = Geometry.of(window, group)
        if self._packed is None:
            weights, sizes = self._fixed.weights, list(shape)
            if weights.ndim == 3:
                weights, sizes = weights.unsqueeze(2), [*sizes[:2], 1, *sizes[2:]]
            self._packed = self._fixed.made.pack(weights.contiguous(), *geometry.arguments, sizes)
        return PackedPlan(self._fixed, self._packed, geometry, result)


def _ones(shape: torch.Size) -> Tensor:
    """An input as convolutions leave it."""
    ones = torch.ones(shape)
    return ones.contiguous(memory_format=torch.channels_last) if ones.ndim == 4 else ones


def _run(plan: Callable[[], Plan], x: Callable[[], Tensor]) -> Tensor:
    return plan()(x(), None, False, True)
