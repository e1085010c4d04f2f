"""Convolutions with their biases and activations."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from entrepot.exporters.keras.operations.convolutions import convolve, convolve_back
from entrepot.exporters.keras.reading.step import Step
from entrepot.exporters.keras.reading.table import layer


@layer("Conv1D", "Conv2D", "Conv3D")
def conv(step: Step, inputs: Any) -> ir.Value:
    """Across channels, in groups."""
    given = step.operation
    return _active(step, convolve(step, inputs, given.kernel, given.bias if given.use_bias else None))


@layer("DepthwiseConv1D", "DepthwiseConv2D")
def depthwise(step: Step, inputs: Any) -> ir.Value:
    """Each channel by itself."""
    given = step.operation
    return _active(step, convolve(step, inputs, given.kernel, given.bias if given.use_bias else None, deep=True))


@layer("Conv1DTranspose", "Conv2DTranspose", "Conv3DTranspose")
def transposed(step: Step, inputs: Any) -> ir.Value:
    """As the gradient of a convolution."""
    given = step.operation
    return _active(step, convolve_back(step, inputs, given.kernel, given.bias if given.use_bias else None))


def _active(step: Step, value: ir.Value) -> ir.Value:
    function = step.operation.activation
    if function is None:
        return value
    result: ir.Value = step.follow(function, value)
    return result
