"""Normalisations by statistics that were learnt."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from entrepot.exporters.keras.operations.normalizing import normalized
from entrepot.exporters.keras.reading.step import Step
from entrepot.exporters.keras.reading.table import layer


@layer("BatchNormalization")
def batch_normalization(step: Step, inputs: Any, mask: Any = None) -> ir.Value:
    """By the moving statistics, computed in float32 at least.

    Followed, it would fail without a scale: Keras 3.15 looks at the shape of the scale where there is an offset alone.
    """
    given, value = step.operation, step.value(inputs)
    kind = value.dtype if value.dtype == ir.DataType.DOUBLE else np.float32
    offset, scale = given.beta if given.center else None, given.gamma if given.scale else None
    result = normalized(step, step.value(value, kind), given.moving_mean, given.moving_variance, offset, scale)
    return step.value(result, given.compute_dtype)
