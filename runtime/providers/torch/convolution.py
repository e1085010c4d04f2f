"""Convolutions of one or two axes by constant float32 weights, packed for oneDNN.

Results are laid out channels last, which is how oneDNN reads them fastest and how most other kernels of torch leave
them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import torch
from torch import Tensor

from entrepot.runtime.kernels import convolution as shared
from entrepot.runtime.kernels.convolution import conv_window
from entrepot.runtime.node_view import NodeView
from entrepot.runtime.providers.torch import private
from entrepot.runtime.providers.torch.backend import TORCH
from entrepot.runtime.providers.torch.constants import constant, float_constant, is_given
from entrepot.runtime.providers.torch.dtypes import tensor_of
from entrepot.runtime.providers.torch.epilogues import Activation
from entrepot.runtime.room import claim

Plan: TypeAlias = Callable[[Tensor, Tensor | None], Tensor]
"""A convolution at one shape, given what is added to its result."""

_SHAPES_KEPT = 64

LARGE = 1 << 18
"""Elements of a result from which oneDNN adds to it faster than a call of its own does."""


def conv_with(node: NodeView, activate: Activation | None, *, onto: bool = False) -> Callable[..., Tensor] | None:
    """A convolution that ends in ``activate``, or ``None`` where its weights or bias are not constant float32.

    The callable takes X, W and B like the operator, then what is added before the activation, if anything; it should
    have the shape of the result. With ``onto``, the result takes its memory.
    """
    weights, bias = float_constant(node, 1), constant(node, 2)
    if weights is None or weights.ndim not in (3, 4) or (bias is None and is_given(node, 2)):
        return None
    made = private.convolution()
    if made is None:
        return None
    attributes = {key: tuple(value) if isinstance(value, list) else value for key, value in node.attributes.items()}
    plan_for = _Planner(made, attributes, tensor_of(weights), None if bias is None else tensor_of(bias), onto)
    plans: dict[torch.Size, Plan] = {}

    def run(X: Tensor, W: Tensor | None = None, B: Tensor | None = None, residual: Tensor | None = None) -> Tensor:
        plan = plans.get(X.shape)
        if plan is None:
            if len(plans) >= _SHAPES_KEPT:
                plans.clear()
            plan = plans[X.shape] = plan_for(X)
        y = plan(X, residual)
        if activate is not None:
            activate(y)
        return y

    return run


class _Planner:
    """Looks once at each shape; weights are packed at the first one, and are right at all others."""

    def __init__(
        self, made: private.Convolution, attributes: dict[str, Any], weights: Tensor, bias: Tensor | None, onto: bool
    ) -> None:
        self._made, self._attributes, self._weights, self._bias = made, attributes, weights, bias
        self._packed: Any = None
        self._add = made.run_onto if onto else made.run_and_add

    def __call__(self, x: Tensor) -> Plan:
        given = self._attributes
        dilations, pads, strides = (given.get(name) for name in ("dilations", "pads", "strides"))
        group, auto_pad = given.get("group", 1), given.get("auto_pad", "NOTSET")
        win = conv_window(
            x.shape, self._weights.shape, given.get("kernel_shape"), group, auto_pad, dilations, pads, strides
        )
        claim((x.shape[0], self._weights.shape[0], *win.target), 4)
        if not x.numel():
            return self._of_nothing
        flat = [1] * (x.ndim == 3)  # one axis is a plane of one row
        evenly = win.begin == win.end
        pads = [*[0] * len(flat), *(win.begin if evenly else [0] * len(win.begin))]
        geometry = (pads, [*flat, *win.strides], [*flat, *win.dilations], group)
        around = (
            [] if evenly else [width for pair in zip(win.begin[::-1], win.end[::-1], strict=True) for width in pair]
        )
        packed = self._pack(geometry, [*x.shape[:2], *flat, *x.shape[2:]])
        return self._bound(packed, geometry, torch.Size([x.shape[0], self._weights.shape[0], *win.target]), around)

    def _pack(self, geometry: tuple[Any, ...], shape: list[int]) -> Any:
        if self._packed is None:
            weights = self._weights.unsqueeze(2) if self._weights.ndim == 3 else self._weights
            self._packed = self._made.pack(weights.contiguous(), *geometry, shape)
        return self._packed

    def _bound(self, packed: Any, geometry: tuple[Any, ...], shape: torch.Size, around: list[int]) -> Plan:
        add, made, bias, flat, is_large = self._add, self._made, self._bias, len(shape) == 3, shape.numel() >= LARGE

        def plan(x: Tensor, residual: Tensor | None) -> Tensor:
            if around:
                x = torch.constant_pad_nd(x, around)
            if flat:
                y = made.run(x.unsqueeze(2), packed, bias, *geometry).squeeze(2)
            elif is_large and residual is not None and residual.shape == shape:
                return add(x, residual, packed, bias, *geometry)
            else:
                y = made.run(x, packed, bias, *geometry)
            if residual is None:
                return y
            return y.add_(residual) if residual.shape == shape else y + residual

        return plan

    def _of_nothing(self, x: Tensor, residual: Tensor | None) -> Tensor:
        y = shared.conv(TORCH, x, self._weights, self._bias, **self._attributes)
        return y if residual is None else y + residual
