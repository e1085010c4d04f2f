"""What only files of opsets 1 to 6 contain: one node each, in every form that its versions there have."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import helper

from tests.judges.early.activation import HINTED
from tests.judges.early.arithmetic import SEVERAL, TWO_SIDED
from tests.judges.early.reduction import REDUCTIONS
from tests.judges.early.use import Array


@dataclass(frozen=True)
class OldNode:
    """A node of an old opset and its inputs."""

    opset: int
    op_type: str
    inputs: tuple[Array | None, ...]
    attributes: dict[str, Any] = field(default_factory=dict)
    outputs: tuple[str, ...] = ("y",)

    def __str__(self) -> str:
        shapes = [None if value is None else (value.dtype.name, value.shape) for value in self.inputs]
        return f"{self.op_type} of opset {self.opset}: {shapes} {self.attributes} {self.outputs}"

    def feeds(self) -> dict[str, Array]:
        """The inputs that are there, by the names of ``model``."""
        return {f"i{index}": value for index, value in enumerate(self.inputs) if value is not None}

    def model(self, results: Sequence[Array] = ()) -> onnx.ModelProto:
        """A model of this one node; the types of its outputs are those of its results, where these are known."""
        names = [f"i{index}" if value is not None else "" for index, value in enumerate(self.inputs)]
        node = helper.make_node(self.op_type, names, self.outputs, name="node", **self.attributes)
        given = [_declared(name, value) for name, value in self.feeds().items()]
        named = [name for name in self.outputs if name]
        made = map(_declared, named, results) if results else [onnx.ValueInfoProto(name=name) for name in named]
        graph = helper.make_graph([node], "old", given, list(made))
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=3)


def _declared(name: str, value: Array) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)


def floats(*shape: int, low: float = -2, high: float = 2, seed: int = 0, dtype: Any = np.float32) -> Array:
    """Reproducible numbers."""
    rng = np.random.default_rng((seed, *shape))
    return np.asarray(rng.uniform(low, high, shape)).astype(dtype)


X = floats(2, 3, 4, 5)
PLACES: tuple[tuple[tuple[int, ...], dict[str, int]], ...] = (
    ((2, 3, 4, 5), {}),
    ((2, 3, 4, 5), {"broadcast": 1}),
    ((2, 3, 4, 5), {"broadcast": 1, "axis": 0}),
    ((4, 5), {"broadcast": 1}),
    ((5,), {"broadcast": 1}),
    ((5,), {"broadcast": 1, "axis": 3}),
    ((3, 4), {"broadcast": 1, "axis": 1}),
    ((3,), {"broadcast": 1, "axis": 1}),
    ((2, 3), {"broadcast": 1, "axis": 0}),
    ((2,), {"broadcast": 1, "axis": 0}),
    ((), {"broadcast": 1}),
    ((1,), {"broadcast": 1}),
    ((1, 1), {"broadcast": 1}),
    ((1, 1), {"broadcast": 1, "axis": 1}),
)
"""Shapes of B against (2, 3, 4, 5), and how they are put there."""


def old_nodes() -> Iterator[OldNode]:
    """All of them."""
    yield from two_sided()
    yield from several()
    yield from elementwise()
    yield from parametric()
    yield from casts()
    yield from reductions()
    yield from moving()
    yield from picking()
    yield from normalising()
    yield from windows()
    yield from recurrent()


def two_sided() -> Iterator[OldNode]:
    """Every place of B in A, in every element type of the version."""
    arithmetic = ("Add", "Sub", "Mul", "Div")
    kinds: dict[str, list[Any]] = {"And": [bool], "Or": [bool], "Xor": [bool], "Equal": [np.int32, bool]}
    for op_type in TWO_SIDED:
        for kind, (shape, attributes) in itertools.product(kinds.get(op_type, [np.float32]), PLACES):
            yield OldNode(1, op_type, _operands(op_type, kind, shape), attributes)
    for op_type, kind, (shape, attributes) in itertools.product(arithmetic, (np.float32, np.int32), PLACES):
        yield OldNode(6, op_type, _operands(op_type, kind, shape), attributes)
    for op_type in arithmetic:
        yield OldNode(1, op_type, (X, X + 5), {"consumed_inputs": [0, 0]})


def _operands(op_type: str, kind: Any, shape: tuple[int, ...]) -> tuple[Array, ...]:
    low = 1 if op_type in ("Pow", "Div") else -3
    numbers = [floats(*size, low=low, high=4, seed=seed) for seed, size in enumerate((X.shape, shape))]
    return tuple(value > 0 if kind is bool else value.astype(kind) for value in numbers)


def several() -> Iterator[OldNode]:
    """Any number of tensors of one shape, and a product with a third."""
    for op_type in SEVERAL:
        for opset, count in itertools.product((1, 6), (1, 2, 3)):
            yield OldNode(opset, op_type, tuple(floats(2, 3, seed=n) for n in range(count)))
        yield OldNode(1, op_type, (X, X), {"consumed_inputs": [0, 0]})
    shapes = (((3, 2), 0), ((3, 2), 1), ((2,), 1), ((1, 2), 1), ((3, 1), 1), ((1,), 1), ((), 1))
    for opset, (shape, broadcast) in itertools.product((1, 6), shapes):
        more = {"broadcast": broadcast, "alpha": 0.5, "beta": 2.0}
        yield OldNode(opset, "Gemm", (floats(3, 4), floats(4, 2), floats(*shape)), more)
        yield OldNode(opset, "Gemm", (floats(4, 3), floats(2, 4), floats(3, 2)), {"transA": 1, "transB": 1})


HINTS: tuple[tuple[int, dict[str, Any]], ...] = ((1, {}), (1, {"consumed_inputs": [0]}), (6, {}))
"""Opset 1 with the in-place hint and without, and opset 6, which has none."""


def elementwise() -> Iterator[OldNode]:
    """Functions without a parameter."""
    positive = ("Log", "Sqrt", "Reciprocal")
    for op_type, (opset, hint) in itertools.product(HINTED, HINTS):
        yield OldNode(opset, op_type, (floats(2, 3, low=0.5 if op_type in positive else -2),), hint)
    for op_type in ("Softplus", "Softsign"):
        yield OldNode(1, op_type, (X,))


PARAMETERS: dict[str, list[dict[str, Any]]] = {
    "Elu": [{}, {"alpha": 0.5}],
    "Selu": [{}, {"alpha": 1.5}, {"gamma": 2.0}, {"alpha": 1.5, "gamma": 2.0}],
    "LeakyRelu": [{}, {"alpha": 0.3}],
    "HardSigmoid": [{}, {"alpha": 0.5, "beta": 0.25}],
    "Clip": [{}, {"min": -0.5}, {"max": 0.5}, {"min": -0.5, "max": 0.5}],
    "Dropout": [{"is_test": 1}, {"is_test": 1, "ratio": 0.3}],
}


def parametric() -> Iterator[OldNode]:
    """Functions with parameters, and one with slopes."""
    for op_type, choices in PARAMETERS.items():
        for attributes, dtype, (opset, hint) in itertools.product(choices, (np.float32, np.float64), HINTS):
            yield OldNode(opset, op_type, (floats(2, 3, dtype=dtype),), {**attributes, **hint})
    for x, (opset, hint) in itertools.product((X, floats(2, 3, 4), floats(2, 3), floats(3)), HINTS):
        for slope in (floats(1), floats(), *([floats(3)] if x.ndim > 1 else [])):
            yield OldNode(opset, "PRelu", (x, slope), hint)


def casts() -> Iterator[OldNode]:
    """Types by name and by number."""
    names = ("FLOAT", "DOUBLE", "FLOAT16", "INT32", "INT64", "UINT8", "BOOL")
    numbers = floats(2, 3, low=0, high=4)
    for name, x in itertools.product(names, (numbers, numbers.astype(np.int32), floats(2, 3) > 0)):
        yield OldNode(1, "Cast", (x,), {"to": name})
        yield OldNode(6, "Cast", (x,), {"to": onnx.TensorProto.DataType.Value(name)})


def reductions() -> Iterator[OldNode]:
    """Axes counted from the front."""
    for op_type, axis in itertools.product(("Softmax", "LogSoftmax", "Hardmax"), ({}, 0, 1, 2, 3)):
        yield OldNode(1, op_type, (X,), axis if isinstance(axis, dict) else {"axis": axis})
    for op_type in REDUCTIONS:
        for attributes in ({}, {"axes": [1]}, {"axes": [0, 2], "keepdims": 0}, {"keepdims": 0}):
            yield OldNode(1, op_type, (floats(2, 3, 4, low=0.5),), attributes)
    for op_type in ("ArgMax", "ArgMin"):
        for attributes in ({}, {"axis": 2}, {"axis": 1, "keepdims": 0}):
            yield OldNode(1, op_type, (X,), attributes)
    for more in ({}, {"axis": 1}, {"axis": -1}):
        yield OldNode(1, "TopK", (X,), {"k": 2, **more}, ("y", "z"))


def each(opset: int, op_type: str, inputs: tuple[Array, ...], *choices: dict[str, Any]) -> Iterator[OldNode]:
    """The same node with one set of attributes after another."""
    yield from (OldNode(opset, op_type, inputs, attributes) for attributes in choices)


def moving() -> Iterator[OldNode]:
    """Other shapes of the same elements."""
    for shape in ([0, -1], [2, 60], [-1], [0, 0, 20], [0, 3, 0, 5]):
        yield OldNode(1, "Reshape", (X,), {"shape": shape})
        yield OldNode(5, "Reshape", (X, np.array(shape)))
    yield OldNode(1, "Reshape", (X,), {"shape": [6, 20], "consumed_inputs": [0]})
    yield from each(1, "Transpose", (X,), {}, {"perm": [1, 0, 3, 2]})
    yield from each(1, "Flatten", (X,), {}, *({"axis": axis} for axis in range(5)))
    yield from each(1, "Squeeze", (floats(2, 1, 3, 1),), {}, {"axes": [1]}, {"axes": [1, 3]})
    yield from each(1, "Unsqueeze", (floats(2, 3, 4),), {"axes": [0]}, {"axes": [2]}, {"axes": [0, 4]})
    yield from each(1, "SpaceToDepth", (floats(1, 2, 4, 6),), {"blocksize": 2})
    yield from each(1, "DepthToSpace", (floats(1, 8, 2, 3),), {"blocksize": 2})
    for op_type in ("Shape", "Size", "Identity"):
        yield OldNode(1, op_type, (X,))
    yield OldNode(1, "Not", (X > 0,))
    yield OldNode(1, "MatMul", (X, floats(5, 2)))


def picking() -> Iterator[OldNode]:
    """Parts of tensors, and tensors put together."""
    yield from each(1, "Concat", (floats(3, 3), floats(3, 3, seed=1)), {}, {"axis": 0})
    yield from each(4, "Concat", (floats(3, 3), floats(3, 3, seed=1)), {"axis": 0}, {"axis": 1})
    for opset, more in itertools.product((1, 2), ({}, {"split": [1, 3]})):
        yield OldNode(opset, "Split", (floats(3, 4),), {"axis": 1, **more}, ("y", "z"))
    yield OldNode(1, "Split", (floats(3, 4), np.array([1, 3], np.float32)), {"axis": 1}, ("y", "z"))
    yield OldNode(2, "Split", (floats(4, 3),), {}, ("y", "z"))
    for axes, (starts, ends) in itertools.product((None, [0, 1], [2, 3]), (([1, 1], [2, 3]), ([0, -2], [9, -1]))):
        yield OldNode(1, "Slice", (X,), {"starts": starts, "ends": ends, **({"axes": axes} if axes else {})})
    yield from each(1, "Gather", (X, np.array([[0, 1], [1, 0]])), {"axis": 0}, {"axis": 1}, {"axis": -1})
    for count, axis in ((2, 1), (3, 0), (1, 1)):
        yield OldNode(1, "Tile", (floats(2, 3), np.array([count], np.float32), np.array([axis], np.float32)))
    yield OldNode(6, "Tile", (floats(2, 3), np.array([2, 3])))
    modes: tuple[dict[str, Any], ...] = ({}, {"value": 1.5}, {"mode": "reflect"}, {"mode": "edge"})
    for (opset, name), mode in itertools.product(((1, "paddings"), (2, "pads")), modes):
        yield OldNode(opset, "Pad", (floats(3, 4),), {name: [1, 0, 0, 2], **mode})
    yield OldNode(2, "Pad", (floats(3, 4),), {"pads": [-1, 0, 0, 2]})


def normalising() -> Iterator[OldNode]:
    """Statistics, given or of the input."""
    vectors = [floats(3, low=0.5, seed=n) for n in range(4)]
    choices: tuple[dict[str, Any], ...] = ({"is_test": 1}, {"is_test": 1, "epsilon": 0.1, "momentum": 0.5})
    for attributes in choices:
        hinted = {**attributes, "consumed_inputs": [0, 0, 0, 1, 1]}
        yield OldNode(1, "BatchNormalization", (X, *vectors), hinted)
        for x in (X, floats(2, 3, 4), floats(2, 3)):
            yield OldNode(6, "BatchNormalization", (x, *vectors), attributes)
    per_activation = [floats(3, 4, 5, low=0.5, seed=n) for n in range(4)]
    yield OldNode(6, "BatchNormalization", (X, *per_activation), {"is_test": 1, "spatial": 0})
    for opset, hint in HINTS:
        yield OldNode(opset, "InstanceNormalization", (X, *vectors[:2]), {"epsilon": 0.1, **hint})
    yield OldNode(1, "LRN", (X,), {"size": 3, "alpha": 0.5, "beta": 0.5, "bias": 2.0})
    yield from each(1, "LpNormalization", (X,), {}, {"p": 1}, {"p": 1, "axis": 1})


WINDOWS: tuple[dict[str, Any], ...] = (
    {},
    {"strides": [2, 2]},
    {"pads": [1, 1, 1, 1]},
    {"auto_pad": "SAME_UPPER", "strides": [2, 2]},
    {"auto_pad": "SAME_LOWER"},
    {"auto_pad": "VALID"},
)


def windows() -> Iterator[OldNode]:
    """Convolution and pooling, and images made larger."""
    for attributes in WINDOWS:
        for op_type in ("AveragePool", "MaxPool"):
            yield OldNode(1, op_type, (X,), {"kernel_shape": [3, 2], **attributes})
        for opset, p in ((1, 1.0), (2, 1), (1, 2.0)):
            yield OldNode(opset, "LpPool", (X,), {"kernel_shape": [3, 2], "p": p, **attributes})
        yield OldNode(1, "Conv", (X, floats(2, 3, 3, 2), floats(2)), attributes)
        yield OldNode(1, "ConvTranspose", (X, floats(3, 2, 3, 2), floats(2)), attributes)
    for op_type in ("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"):
        yield OldNode(1, op_type, (X,))
    for opset, p in ((1, 1.0), (2, 1), (2, 3)):
        yield OldNode(opset, "GlobalLpPool", (X,), {"p": p})
    yield OldNode(1, "MaxRoiPool", (X, np.array([[0, 0, 0, 3, 3]], np.float32)), {"pooled_shape": [2, 2]})
    scales = ((2.0, 3.0), (1.0, 2.0), (1.0, 1.0), (1.5, 2.5))
    for mode, (height, width) in itertools.product(("nearest", "bilinear"), scales):
        yield OldNode(1, "Upsample", (X,), {"mode": mode, "height_scale": height, "width_scale": width})
    yield OldNode(1, "Upsample", (X,), {"height_scale": 2.0, "width_scale": 2.0})


def recurrent() -> Iterator[OldNode]:
    """Sequences that are there, or not."""
    for op_type, gates, opsets in (("RNN", 1, (1,)), ("LSTM", 4, (1,)), ("GRU", 3, (1, 3))):
        given = (floats(4, 2, 3), floats(1, gates * 5, 3, seed=1), floats(1, gates * 5, 5, seed=2))
        both = (given[0], *(np.concatenate([value, value[:, ::-1]]) for value in given[1:]))
        for opset in opsets:
            more = {"linear_before_reset": 1} if opset == 3 else {}
            size = {"hidden_size": 5, **more}
            yield OldNode(opset, op_type, given, size, ("", "y"))
            yield OldNode(opset, op_type, given, {**size, "output_sequence": 1}, ("y", "z"))
            yield OldNode(opset, op_type, given, {**size, "direction": "reverse"}, ("", "z"))
            yield OldNode(opset, op_type, both, {**size, "direction": "bidirectional"}, ("", "z"))
