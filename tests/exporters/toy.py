"""A framework in forty lines: its "modules" are NumPy functions with a weight."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import onnx_ir as ir

from entrepot.exporters.exporter import Captured, Exporter, Refusal, Source
from entrepot.exporters.sample import Sample
from entrepot.exporters.structure import flatten, flatten_call, unflatten


@dataclasses.dataclass
class Net:
    """A dense layer with a bias that comes from outside, and the sums of its results."""

    weight: np.ndarray
    operator: str = "MatMul"

    def forward(self, x, extra):
        if len(extra["bias"]) != self.weight.shape[1]:
            raise ValueError("a bias for each column")
        y = x @ self.weight + extra["bias"]
        return {"y": np.maximum(y, 0), "sums": [y.sum(0)]}


class ToySource(Source):
    framework, noun, origin, parameters = "toy 1.0", "net", "toy:Net", ("weight",)

    def __init__(self, net: Net, sample: Any) -> None:
        self.net, self.name, self.call = net, "Net", flatten_call(Sample.of(sample), net.forward)

    def __call__(self, arrays, /):
        args, kwargs = unflatten(self.call.tree, arrays)
        try:
            return flatten(self.net.forward(*args, **kwargs))
        except ValueError as error:
            raise Refusal(error) from error

    def capture(self, prober, groups, options):
        symbols = {axis: group.symbol for group in groups for axis in group.axes}
        sizes = [array.shape for array in prober.with_fixed(groups)]
        shape = [[symbols.get((at, axis), size) for axis, size in enumerate(each)] for at, each in enumerate(sizes)]
        x, bias = (", ".join(map(str, dims)) for dims in shape)
        k, n = self.net.weight.shape
        weight = ", ".join(f"{value:.9g}" for value in self.net.weight.ravel())
        return Captured(
            ir.from_onnx_text(f"""<ir_version: 10, opset_import: ["": 20]>
            net (float[{x}] x, float[{bias}] b) => (float[?, {n}] y, float[{n}] sums)
            <float[{k}, {n}] weight = {{{weight}}}, int64[1] axis = {{0}}>
            {{ same = Identity(x)  m = {self.net.operator}(same, weight)  z = Add(m, b)  y = Relu(z)
               sums = ReduceSum<keepdims = 0>(z, axis) }}"""),
            groups,
        )


class ToyExporter(Exporter):
    name = "toy"

    def recognises(self, found):
        return isinstance(found.obj, Net) or found.contains("toy.txt")

    def open(self, obj, sample):
        return ToySource(obj if isinstance(obj, Net) else Net(np.loadtxt(f"{obj}/toy.txt", np.float32)), sample)


EXPORTER = ToyExporter()
