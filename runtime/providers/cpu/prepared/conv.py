from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, partial
from typing import Any, TypeAlias

import numpy as np

from entrepot.runtime.kernels.convolution import conv_window
from entrepot.runtime.node_view import NodeView
from entrepot.runtime.providers.cpu.prepared.constants import blas_constant, constant, is_given
from entrepot.runtime.providers.cpu.prepared.conv_depthwise import DepthwisePlan
from entrepot.runtime.providers.cpu.prepared.conv_depthwise import suits as depthwise_suits
from entrepot.runtime.providers.cpu.prepared.conv_plan import ConvPlan, Epilogue, PointwisePlan, filters
from entrepot.runtime.providers.cpu.prepared.conv_small import SmallConvPlan, is_small
from entrepot.runtime.providers.cpu.prepared.conv_winograd import WinogradPlan, suits, transformed
from entrepot.runtime.providers.cpu.table import prepared

Array: TypeAlias = np.ndarray[Any, Any]
Plan: TypeAlias = ConvPlan | DepthwisePlan | PointwisePlan | SmallConvPlan | WinogradPlan

_SHAPES_KEPT = 8


@prepared("Conv", 22)
def conv(node: NodeView) -> Callable[..., Array] | None:
    """A convolution with constant weights and no epilogue."""
    return conv_with(node, None)


def conv_with(node: NodeView, epilogue: Epilogue | None) -> Callable[..., Array] | None:
    """A convolution that ends in ``epilogue``, or ``None`` where weights or bias are not constant float32 or float64.

    The callable takes X, W and B like the operator, then the residual that the epilogue is given, if any; it must have
    the shape of the result.
    """
    weight, bias = blas_constant(node, 1), constant(node, 2)
    if weight is None or (bias is None and is_given(node, 2)):
        return None
    if bias is not None and bias.shape != weight.shape[:1]:
        return None  # which the plain kernel refuses
    return _bound(dict(node.attributes), weight, bias, epilogue)


def _bound(attributes: dict[str, Any], W: Array, bias: Array | None, epilogue: Epilogue | None) -> Callable[..., Array]:
    plans: dict[tuple[int, ...], Plan] = {}
    plan_for = _planner(attributes, W, bias, epilogue)

    def run(X: Array, W: Array | None = None, B: Array | None = None, residual: Array | None = None) -> Array:
        plan = plans.get(X.shape)
        if plan is None:
            if len(plans) >= _SHAPES_KEPT:
                plans.clear()
            plan = plans[X.shape] = plan_for(X.shape)
        return plan.run(X, residual)

    return run


def _planner(
    attributes: dict[str, Any], W: Array, bias: Array | None, epilogue: Epilogue | None
) -> Callable[[tuple[int, ...]], Plan]:
    """Chooses how to run at a shape; what depends only on the weights is made once, when first needed."""
    group = attributes.get("group", 1)
    geometry = [attributes.get(name) for name in ("dilations", "pads", "strides")]
    packed = cache(partial(filters, W, bias, group, pointwise=math.prod(W.shape[2:]) == 1))
    winograd = cache(partial(transformed, W))

    def plan_for(shape: tuple[int, ...]) -> Plan:
        auto_pad = attributes.get("auto_pad", "NOTSET")
        win = conv_window(shape, W.shape, attributes.get("kernel_shape"), group, auto_pad, *geometry)
        if win.is_pointwise:
            return PointwisePlan(win.target, packed(), epilogue)
        if suits(win, W, group):
            return WinogradPlan(win, winograd(), bias, epilogue, lambda: ConvPlan(win, packed(), epilogue))
        if depthwise_suits(win, packed(), shape[1]):
            return DepthwisePlan(win, packed(), epilogue)
        if is_small(win, packed(), shape[0]):
            return SmallConvPlan(win, packed(), shape[0], epilogue)
        return ConvPlan(win, packed(), epilogue)

    return plan_for
