from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import onnx_ir as ir

from entrepot.ir.derived import DerivedTensor, derived
from entrepot.ir.opset.values import INITIALIZERS_ARE_INPUTS
from entrepot.ir.passes.graphs import bypass, graphs, has_references, is_fixed, version_of

Array: TypeAlias = np.ndarray[Any, Any]

_TYPES = (ir.DataType.FLOAT, ir.DataType.DOUBLE)


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
    return True


def _are_alone(product: ir.Node, norm: ir.Node) -> bool:
    """Whether nothing else reads what the two pass on and are given."""
    between = product.outputs[0]
    if product.domain or product.op_type not in _SCALED or len(between.uses()) > 1 or between.is_graph_output():
        return False
    if norm.attributes.get_int("training_mode", 0) or has_references(product) or has_references(norm):
        return False
    if product.graph is not norm.graph or any(output.name and output.uses() for output in norm.outputs[1:]):
        return False
    mine = [value for value in product.inputs[1:] if value is not None]
    alone = all(is_fixed(value) and len(value.uses()) == 1 and not value.is_graph_output() for value in mine)
    return alone and all(is_fixed(value) for value in norm.inputs[1:]) and _holder(product, norm) is not None


def _holder(product: ir.Node, norm: ir.Node) -> ir.Value | None:
    """What the sum is stored as: the bias of the normalisation, or if that has other readers the product's own."""
    bias = norm.inputs[2]
    if bias is not None and len(bias.uses()) == 1 and not bias.is_graph_output():
        return bias
    return product.inputs[2] if len(product.inputs) > 2 else None


def _weights(product: ir.Node, norm: ir.Node) -> _Weights | None:
    """The constants of both, or ``None`` if they are of several types or do not fit together."""
    weight, *addend = (value.const_value for value in product.inputs[1:] if value is not None)
    statistics = [value.const_value for value in norm.inputs[1:] if value is not None]
    tensors = [tensor for tensor in (weight, *addend, *statistics) if tensor is not None]
    if len({tensor.dtype for tensor in tensors}) > 1 or tensors[0].dtype not in _TYPES or len(statistics) != 4:
        return None
    layout = _SCALED[product.op_type](product, tuple(tensors[0].shape.numpy()))
    beta = product.attributes.get_float("beta", 1.0) if product.op_type == "Gemm" else 1.0
    epsilon = norm.attributes.get_float("epsilon", 1e-5)
    return None if layout is None else _Weights(tensors[0], tensors[1:-4], tensors[-4:], epsilon, beta, layout)


class _Layout(NamedTuple):
    """How the factors, one per channel, are multiplied into a weight."""

    weight: tuple[int, ...]
    factors: tuple[int, ...]


class _Weights(NamedTuple):
    """The constants of a product and of the normalisation after it."""

    weight: ir.TensorProtocol
    addend: list[ir.TensorProtocol]
    statistics: list[ir.TensorProtocol]
    epsilon: float
    beta: float
    layout: _Layout

    def fit(self) -> bool:
        """Whether there is one of each per channel, and nothing overflows."""
        channels = math.prod(self.layout.factors)
        if any(tensor.shape.numpy() != (channels,) for tensor in self.statistics):
            return False
        if any(tensor.size != channels or tensor.shape[-1] != channels for tensor in self.addend):
            return False
        most = np.finfo(self.weight.dtype.numpy()).max
        with np.errstate(all="ignore"):
            largest = np.abs(self.weight.numpy()).max(initial=0) * np.abs(self.factor()).max(initial=0)
            return bool(largest < most and np.abs(self.sums()).max(initial=0) < most)  # false for NaN

    def factor(self) -> Array:
        scale, _, _, var = (tensor.numpy().astype(np.float64) for tensor in self.statistics)
        return np.asarray(scale / np.sqrt(var + self.epsilon))

    def sums(self) -> Array:
        _, bias, mean, _ = (tensor.numpy().astype(np.float64) for tensor in self.statistics)
        addend = self.addend[0].numpy().astype(np.float64).reshape(-1) * self.beta if self.addend else 0.0
        return np.asarray((addend - mean) * self.factor() + bias)

    def scaled(self) -> DerivedTensor:
        """The weight of the one product."""

        def make() -> Array:
            weight = self.weight.numpy()
            rows = weight.astype(np.float64).reshape(self.layout.weight) * self.factor().reshape(self.layout.factors)
            return rows.reshape(weight.shape).astype(weight.dtype)

        sources = (self.weight, self.statistics[0], self.statistics[3])
        return derived(make, sources, like=self.weight, shape=self.weight.shape.numpy())

    def shift(self, like: ir.TensorProtocol) -> DerivedTensor:
        """Its addend, under the name of ``like``."""
        dtype = self.weight.dtype.numpy()
        sources = (*self.addend, *self.statistics)
        return derived(lambda: self.sums().astype(dtype), sources, like=like, shape=[self.statistics[0].size])


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
