from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import onnx_ir as ir

from entrepot.ir.derived import DerivedTensor, derived
from entrepot.ir.opset.values import INITIALIZERS_ARE_INPUTS
from entrepot.ir.passes.absorbed import mark_absorbed
from entrepot.ir.passes.graphs import bypass, graphs, has_references, is_fixed, version_of
from entrepot.ir.passes.normalization import PRECISE, Array, Channels, channels_of, fits


class AbsorbNormalization(ir.passes.InPlacePass):
    """Absorb batch normalisations by constants into the weights of the product before them.

    Before: ``BatchNormalization(Conv(x, w, b), scale, bias, mean, var)``.
    After: ``Conv(x, w * f, (b - mean) * f + bias)`` with ``f = scale / sqrt(var + epsilon)``, computed in float64 and
    rounded once. The same for ConvTranspose, and for Gemm whose addend is a row. The weights keep their names, and the
    sum has that of ``bias``, or of ``b`` if ``bias`` has other readers. Weights that have some stay, and so do those
    that would overflow.
    Subgraphs are covered; functions have no weights.
    """

    def call(self, model: ir.Model) -> ir.passes.PassResult:
        """Change the model in place."""
        if model.ir_version <= INITIALIZERS_ARE_INPUTS:
            return ir.passes.PassResult(model, modified=False)
        absorbed = [
            _absorb(node)
            for graph, opsets in graphs(model)
            for node in list(graph)
            if node.op_type == "BatchNormalization" and version_of(node, opsets) >= 9
        ]
        return ir.passes.PassResult(model, modified=any(absorbed))


def _absorb(norm: ir.Node) -> bool:
    product = norm.inputs[0].producer() if norm.inputs[0] is not None else None
    if product is None or not _are_alone(product, norm):
        return False
    found = _weights(product, norm)
    if found is None or not found.fit():
        return False
    weight, holder = product.inputs[1], _holder(product, norm)
    assert weight is not None
    assert holder is not None
    if not bypass(norm, product.outputs[0]):
        return False
    assert holder.const_value is not None
    holder.const_value = found.shift(holder.const_value)
    holder.shape = ir.Shape(holder.const_value.shape.numpy())
    weight.const_value = found.scaled()
    product.attributes.pop("beta", None)
    product.resize_inputs(3)
    product.replace_input_with(2, holder)
    mark_absorbed(product, norm)
    return True


def _are_alone(product: ir.Node, norm: ir.Node) -> bool:
    """Whether nothing else reads what the two pass on and are given."""
    between = product.outputs[0]
    if product.domain or product.op_type not in _SCALED or len(between.uses()) > 1 or between.is_graph_output():
        return False
    if has_references(product) or product.graph is not norm.graph:
        return False
    mine = [value for value in product.inputs[1:] if value is not None]
    alone = all(is_fixed(value) and len(value.uses()) == 1 and not value.is_graph_output() for value in mine)
    return alone and _holder(product, norm) is not None


def _holder(product: ir.Node, norm: ir.Node) -> ir.Value | None:
    """What the sum is stored as: the bias of the normalisation, or if that has other readers the product's own."""
    bias = norm.inputs[2]
    if bias is not None and len(bias.uses()) == 1 and not bias.is_graph_output():
        return bias
    return product.inputs[2] if len(product.inputs) > 2 else None


def _weights(product: ir.Node, norm: ir.Node) -> _Weights | None:
    """The constants of both, or ``None`` if they are of several types or do not fit together."""
    channels = channels_of(norm)
    weight, *addend = (value.const_value for value in product.inputs[1:] if value is not None)
    if channels is None or weight is None:
        return None
    addends = [tensor for tensor in addend if tensor is not None]
    if len({tensor.dtype for tensor in (weight, *addends, *channels.statistics)}) > 1 or weight.dtype not in PRECISE:
        return None
    layout = _SCALED[product.op_type](product, tuple(weight.shape.numpy()))
    beta = product.attributes.get_float("beta", 1.0) if product.op_type == "Gemm" else 1.0
    return None if layout is None else _Weights(weight, addends, channels, beta, layout)


class _Layout(NamedTuple):
    """How the factors, one per channel, are multiplied into a weight."""

    weight: tuple[int, ...]
    factors: tuple[int, ...]


class _Weights(NamedTuple):
    """The constants of a product and of the normalisation after it."""

    weight: ir.TensorProtocol
    addend: list[ir.TensorProtocol]
    channels: Channels
    beta: float
    layout: _Layout

    def fit(self) -> bool:
        """Whether there is one of each per channel, and nothing overflows."""
        count = math.prod(self.layout.factors)
        if self.channels.number != count:
            return False
        if any(tensor.size != count or tensor.shape[-1] != count for tensor in self.addend):
            return False
        with np.errstate(all="ignore"):
            weight = self.weight.numpy()
            largest = np.maximum(weight.max(initial=0), -weight.min(initial=0))  # without a copy of absolute values
            scaled = largest * np.abs(self.channels.factor()).max(initial=0)
            return fits(np.asarray(scaled), self.sums(), dtype=self.weight.dtype)

    def sums(self) -> Array:
        addend = self.addend[0].numpy().astype(np.float64).reshape(-1) * self.beta if self.addend else 0.0
        return self.channels.addend(addend)

    def scaled(self) -> DerivedTensor:
        """The weight of the one product."""

        def make() -> Array:
            weight = self.weight.numpy()
            rows, factors = weight.reshape(self.layout.weight), self.channels.factor().reshape(self.layout.factors)
            scaled = np.empty_like(rows)
            np.multiply(rows, factors, out=scaled, dtype=np.float64, casting="unsafe")  # piece by piece, rounded once
            return scaled.reshape(weight.shape)

        sources = (self.weight, self.channels.statistics[0], self.channels.statistics[3])
        return derived(make, sources, like=self.weight, shape=self.weight.shape.numpy())

    def shift(self, like: ir.TensorProtocol) -> DerivedTensor:
        """Its addend, under the name of ``like``."""
        dtype = self.weight.dtype.numpy()
        sources = (*self.addend, *self.channels.statistics)
        return derived(lambda: self.sums().astype(dtype), sources, like=like, shape=[self.channels.number])


def _conv(_product: ir.Node, shape: tuple[int, ...]) -> _Layout | None:
    return _Layout(shape, (shape[0], *[1] * (len(shape) - 1)))


def _conv_transpose(product: ir.Node, shape: tuple[int, ...]) -> _Layout | None:
    group = product.attributes.get_int("group", 1)
    if shape[0] % group:
        return None
    return _Layout((group, shape[0] // group, *shape[1:]), (group, 1, shape[1], *[1] * (len(shape) - 2)))


def _gemm(product: ir.Node, shape: tuple[int, ...]) -> _Layout | None:
    rows, columns = shape
    return _Layout(shape, (rows, 1) if product.attributes.get_int("transB", 0) else (1, columns))


_SCALED: dict[str, Callable[[ir.Node, tuple[int, ...]], _Layout | None]] = {
    "Conv": _conv,
    "ConvTranspose": _conv_transpose,
    "Gemm": _gemm,
}
