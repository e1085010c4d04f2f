from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import onnx_ir as ir

from entrepot.ir.derived import DerivedTensor, derived
from entrepot.ir.opset.names import Names
from entrepot.ir.opset.values import INITIALIZERS_ARE_INPUTS
from entrepot.ir.passes.absorbed import mark_absorbed
from entrepot.ir.passes.graphs import bypass, graphs, has_references, is_fixed, version_of
from entrepot.ir.passes.normalization import PRECISE, Array, Channels, channels_of, fits


class AbsorbLeadingNormalization(ir.passes.InPlacePass):
    """Absorb batch normalisations by constants into the weights of the product after them.

    Before: ``Conv(BatchNormalization(x, scale, bias, mean, var), w, b)``.
    After: ``Conv(x, w * f, b + sum(w * (bias - mean * f)))`` with ``f = scale / sqrt(var + epsilon)``, the sum over
    what each output channel reads, computed in float64 and rounded once. The same for Gemm. A convolution that pads
    stays as it is, since it pads what is normalised, and so do weights with other readers, and those that would
    overflow. The weights keep their names; a bias that was not there gets one like that of the weight.
    Subgraphs are covered; functions have no weights.
    """

    def call(self, model: ir.Model) -> ir.passes.PassResult:
        """Change the model in place."""
        if model.ir_version <= INITIALIZERS_ARE_INPUTS:
            return ir.passes.PassResult(model, modified=False)
        names = Names(model)
        absorbed = [
            _absorb(node, names)
            for graph, opsets in graphs(model)
            for node in list(graph)
            if node.op_type == "BatchNormalization" and version_of(node, opsets) >= 9
        ]
        return ir.passes.PassResult(model, modified=any(absorbed))


def _absorb(norm: ir.Node, names: Names) -> bool:
    product, given = _only_reader(norm), norm.inputs[0]
    found = None if product is None else _weights(product, norm)
    if product is None or given is None or found is None or not found.fit():
        return False
    weight = product.inputs[1]
    assert weight is not None
    holder = product.inputs[2] if len(product.inputs) > 2 else None
    if not bypass(norm, given):
        return False
    product.resize_inputs(3)
    product.replace_input_with(2, _hold(found, holder, weight, names))
    weight.const_value = found.scaled()
    product.attributes.pop("beta", None)
    mark_absorbed(product, norm)
    return True


def _only_reader(norm: ir.Node) -> ir.Node | None:
    """The product that alone reads what is normalised, if its weights are its own."""
    output = norm.outputs[0]
    if output.is_graph_output() or len(output.uses()) != 1:
        return None
    ((product, place),) = output.uses()
    if place or product.domain or product.graph is not norm.graph or has_references(product):
        return None
    mine = [value for value in product.inputs[1:] if value is not None]
    alone = all(is_fixed(value) and len(value.uses()) == 1 and not value.is_graph_output() for value in mine)
    return product if alone and not _pads(product) else None


def _pads(product: ir.Node) -> bool:
    if any(product.attributes.get_ints("pads", ())):
        return True
    return product.attributes.get_string("auto_pad", "NOTSET") not in ("NOTSET", "VALID")


class _Weights(NamedTuple):
    """The constants of a product and of the normalisation before it.

    Attributes:
        weight: Of the product.
        addend: Its bias, if there is one.
        channels: Of the normalisation.
        alpha: What the product is multiplied by.
        beta: What the bias is multiplied by.
        layout: The weight as groups, outputs, inputs and the rest, and ``True`` if outputs come after inputs.
    """

    weight: ir.TensorProtocol
    addend: ir.TensorProtocol | None
    channels: Channels
    alpha: float
    beta: float
    layout: tuple[tuple[int, int, int, int], bool]

    def fit(self) -> bool:
        """Whether there is one of each per channel, and nothing overflows."""
        (groups, outputs, inputs, _), _ = self.layout
        if self.channels.number != groups * inputs:
            return False
        if self.addend is not None and tuple(self.addend.shape.numpy()) not in ((groups * outputs,), (1, outputs)):
            return False
        with np.errstate(all="ignore"):
            largest = np.abs(self.weight.numpy()).max(initial=0) * np.abs(self.channels.factor()).max(initial=0)
            return fits(np.asarray(largest), self.sums(), dtype=self.weight.dtype)

    def scaled(self) -> DerivedTensor:
        """The weight of the one product."""
        sources = (self.weight, self.channels.statistics[0], self.channels.statistics[3])
        shape = self.weight.shape.numpy()

        def make() -> Array:
            rows = self._rows() * self._per_input(self.channels.factor())
            return (rows.transpose() if self.layout[1] else rows).reshape(shape).astype(self.weight.dtype.numpy())

        return derived(make, sources, like=self.weight, shape=shape)

    def sums(self) -> Array:
        """What the one product adds, by output channel."""
        moved = (self._rows() * self._per_input(self.channels.addend())).sum(axis=(2, 3)).reshape(-1)
        before = 0.0 if self.addend is None else self.addend.numpy().astype(np.float64).reshape(-1) * self.beta
        return np.asarray(moved * self.alpha + before)

    def _rows(self) -> Array:
        """The weight by group, output, input, and place in the kernel."""
        weight = self.weight.numpy().astype(np.float64)
        return (weight.transpose() if self.layout[1] else weight).reshape(self.layout[0])

    def _per_input(self, numbers: Array) -> Array:
        return numbers.reshape(self.layout[0][0], 1, self.layout[0][2], 1)


def _weights(product: ir.Node, norm: ir.Node) -> _Weights | None:
    """The constants of both, or ``None`` if they are of several types, or the product is no such thing."""
    channels, layout = channels_of(norm), _layout(product)
    if channels is None or layout is None:
        return None
    weight, *rest = (value.const_value for value in product.inputs[1:] if value is not None)
    tensors = [tensor for tensor in (weight, *rest, *channels.statistics) if tensor is not None]
    if weight is None or weight.dtype not in PRECISE or len({tensor.dtype for tensor in tensors}) > 1:
        return None
    alpha, beta = (product.attributes.get_float(name, 1.0) for name in ("alpha", "beta"))
    return _Weights(weight, rest[0] if rest else None, channels, alpha, beta, layout)


def _layout(product: ir.Node) -> tuple[tuple[int, int, int, int], bool] | None:
    weight = product.inputs[1] if len(product.inputs) > 1 else None
    shape = tuple(weight.const_value.shape.numpy()) if weight is not None and weight.const_value is not None else ()
    if product.op_type == "Conv" and len(shape) > 2:
        groups = product.attributes.get_int("group", 1)
        return ((groups, shape[0] // groups, shape[1], math.prod(shape[2:])), False) if not shape[0] % groups else None
    if product.op_type == "Gemm" and len(shape) == 2 and not product.attributes.get_int("transA", 0):
        straight = bool(product.attributes.get_int("transB", 0))
        outputs, inputs = shape if straight else shape[::-1]
        return (1, outputs, inputs, 1), not straight
    return None


def _hold(found: _Weights, holder: ir.Value | None, weight: ir.Value, names: Names) -> ir.Value:
    """The bias of the one product; a new one is called like the weight, ``conv.bias`` beside ``conv.weight``."""
    dtype = found.weight.dtype
    sums = found.sums()
    sources = (found.weight, *([] if found.addend is None else [found.addend]), *found.channels.statistics)
    name = str(holder.name) if holder is not None else names.fresh(_bias_name(str(weight.name)))
    tensor = DerivedTensor(
        lambda: found.sums().astype(dtype.numpy()), sources, dtype=dtype, shape=sums.shape, name=name
    )
    if holder is None:
        holder = ir.Value(name=name, type=ir.TensorType(dtype), shape=ir.Shape(sums.shape), const_value=tensor)
        graph = weight.graph
        assert isinstance(graph, ir.Graph)
        graph.register_initializer(holder)
    holder.const_value, holder.shape = tensor, ir.Shape(sums.shape)
    return holder


def _bias_name(weight: str) -> str:
    owner, dot, last = weight.rpartition(".")
    return f"{owner}{dot}bias" if last == "weight" else f"{weight}_bias"
