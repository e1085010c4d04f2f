"""A batch normalisation by constants as what it is: one factor and one addend per channel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import onnx_ir as ir

from entrepot.ir.passes.graphs import has_references, is_fixed

Array: TypeAlias = np.ndarray[Any, Any]

PRECISE = (ir.DataType.FLOAT, ir.DataType.DOUBLE)
"""Element types whose products are made in float64 and rounded once."""


class Channels(NamedTuple):
    """The constants of a batch normalisation."""

    statistics: Sequence[ir.TensorProtocol]
    epsilon: float

    @property
    def number(self) -> int:
        """How many there are; 0 if the constants disagree."""
        sizes = {tuple(tensor.shape.numpy()) for tensor in self.statistics}
        return self.statistics[0].size if sizes == {(self.statistics[0].size,)} else 0

    def factor(self) -> Array:
        """What each channel is multiplied by, in float64."""
        scale, _, _, var = (tensor.numpy().astype(np.float64) for tensor in self.statistics)
        return np.asarray(scale / np.sqrt(var + self.epsilon))

    def addend(self, before: Array | float = 0.0) -> Array:
        """What is added to each channel afterwards, where ``before`` is added to what is normalised."""
        _, bias, mean, _ = (tensor.numpy().astype(np.float64) for tensor in self.statistics)
        return np.asarray((before - mean) * self.factor() + bias)


def channels_of(norm: ir.Node) -> Channels | None:
    """The constants of a normalisation that does not train; ``None`` if they are not constant."""
    if norm.attributes.get_int("training_mode", 0) or has_references(norm):
        return None
    if any(output.name and output.uses() for output in norm.outputs[1:]):
        return None
    statistics = [value.const_value for value in norm.inputs[1:] if value is not None and is_fixed(value)]
    tensors = [tensor for tensor in statistics if tensor is not None]
    return Channels(tensors, norm.attributes.get_float("epsilon", 1e-5)) if len(tensors) == 4 else None


def fits(*arrays: Array, dtype: ir.DataType) -> bool:
    """Whether numbers stay finite in an element type; false for NaN."""
    most = np.finfo(dtype.numpy()).max
    return all(bool(np.abs(array).max(initial=0) < most) for array in arrays)
