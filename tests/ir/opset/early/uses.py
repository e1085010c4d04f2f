"""What only files of opsets 1 to 6 say: one node each, in every form that its versions there have."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import helper

from tests.ir.opset.early.activation import HINTED
from tests.ir.opset.early.arithmetic import SEVERAL, TWO_SIDED
from tests.ir.opset.early.reduction import REDUCTIONS
from tests.ir.opset.early.use import Array


@dataclass(frozen=True)
class OldNode:
    """A node of an old opset and what it is given."""

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
    yield from elementwise()
    yield from reductions()
    yield from moving()
    yield from layers()
    yield from recurrent()


def two_sided() -> Iterator[OldNode]:
    """Every place of B in A, in every element type of the version."""
    arithmetic = ("Add", "Sub", "Mul", "Div")
    logic = ("And", "Or", "Xor")
    for op_type in TWO_SIDED:
        for opset in (1, 6) if op_type in arithmetic else (1,):
            kinds: list[Any] = [np.float32, np.int32] if opset == 6 else [np.float32]
            kinds = [bool] if op_type in logic else [np.int32, bool] if op_type == "Equal" else kinds
            for kind in kinds:
                for shape, attributes in PLACES:
                    low = -3 if kind is bool or op_type not in ("Pow", "Div") else 1
                    a = floats(2, 3, 4, 5, low=low, high=4).astype(np.int32 if kind is bool else kind) > 0
                    b = floats(*shape, low=low, high=4, seed=1).astype(np.int32 if kind is bool else kind) > 0
                    if kind is not bool:
                        a, b = (
                            floats(*s, low=low, high=4, seed=n).astype(kind) for n, s in enumerate((X.shape, shape))
                        )
                    yield OldNode(opset, op_type, (a, b), attributes)
        if op_type in arithmetic:
            yield OldNode(1, op_type, (X, X + 5), {"consumed_inputs": [0, 0]})
    for op_type in SEVERAL:
        for opset in (1, 6):
            for count in (1, 2, 3):
                yield OldNode(opset, op_type, tuple(floats(2, 3, seed=n) for n in range(count)))
        yield OldNode(1, op_type, (X, X), {"consumed_inputs": [0, 0]})
    for opset in (1, 6):
        for shape, broadcast in (((3, 2), 0), ((3, 2), 1), ((2,), 1), ((1, 2), 1), ((3, 1), 1), ((1,), 1), ((), 1)):
            more = {"broadcast": broadcast, "alpha": 0.5, "beta": 2.0}
            yield OldNode(opset, "Gemm", (floats(3, 4), floats(4, 2), floats(*shape)), more)
        yield OldNode(opset, "Gemm", (floats(4, 3), floats(2, 4), floats(3, 2)), {"transA": 1, "transB": 1})


def elementwise() -> Iterator[OldNode]:
    """Activations and Cast, with the in-place hint and without, and every attribute."""
    positive = ("Log", "Sqrt", "Reciprocal")
    hints = [(1, {}), (1, {"consumed_inputs": [0]}), (6, {})]
    for op_type in HINTED:
        for opset, hint in hints:
            yield OldNode(opset, op_type, (floats(2, 3, low=0.5 if op_type in positive else -2),), hint)
    for op_type in ("Softplus", "Softsign"):
        yield OldNode(1, op_type, (X,))
    parameters: dict[str, list[dict[str, Any]]] = {
        "Elu": [{}, {"alpha": 0.5}],
        "Selu": [{}, {"alpha": 1.5}, {"gamma": 2.0}, {"alpha": 1.5, "gamma": 2.0}],
        "LeakyRelu": [{}, {"alpha": 0.3}],
        "HardSigmoid": [{}, {"alpha": 0.5, "beta": 0.25}],
        "Clip": [{}, {"min": -0.5}, {"max": 0.5}, {"min": -0.5, "max": 0.5}],
        "Dropout": [{"is_test": 1}, {"is_test": 1, "ratio": 0.3}],
    }
    for op_type, choices in parameters.items():
        for opset, hint in hints:
            for attributes in choices:
                for dtype in (np.float32, np.float64):
                    yield OldNode(opset, op_type, (floats(2, 3, dtype=dtype),), {**attributes, **hint})
    for opset, hint in hints:
        for x in (X, floats(2, 3, 4), floats(2, 3), floats(3)):
            slopes = [floats(1), floats(), *([floats(3)] if x.ndim > 1 else [])]
            for slope in slopes:
                yield OldNode(opset, "PRelu", (x, slope), hint)
    for name in ("FLOAT", "DOUBLE", "FLOAT16", "INT32", "INT64", "UINT8", "BOOL"):
        for x in (floats(2, 3, low=0, high=4), floats(2, 3, low=0, high=4).astype(np.int32), floats(2, 3) > 0):
            yield OldNode(1, "Cast", (x,), {"to": name})
            yield OldNode(6, "Cast", (x,), {"to": onnx.TensorProto.DataType.Value(name)})
    for op_type in ("Softmax", "LogSoftmax", "Hardmax"):
        for attributes in ({}, *({"axis": axis} for axis in range(4))):
            yield OldNode(1, op_type, (X,), attributes)


def reductions() -> Iterator[OldNode]:
    """Axes counted from the front."""
    for op_type in REDUCTIONS:
        for attributes in ({}, {"axes": [1]}, {"axes": [0, 2], "keepdims": 0}, {"keepdims": 0}):
            yield OldNode(1, op_type, (floats(2, 3, 4, low=0.5),), attributes)
    for op_type in ("ArgMax", "ArgMin"):
        for attributes in ({}, {"axis": 2}, {"axis": 1, "keepdims": 0}):
            yield OldNode(1, op_type, (X,), attributes)
    for more in ({}, {"axis": 1}, {"axis": -1}):
        yield OldNode(1, "TopK", (X,), {"k": 2, **more}, ("y", "z"))


def moving() -> Iterator[OldNode]:
    """What was an attribute and is an input now, or the other way around."""
    for shape in ([0, -1], [2, 60], [-1], [0, 0, 20], [0, 3, 0, 5]):
        yield OldNode(1, "Reshape", (X,), {"shape": shape})
        yield OldNode(5, "Reshape", (X, np.array(shape)))
    yield OldNode(1, "Reshape", (X,), {"shape": [6, 20], "consumed_inputs": [0]})
    for opset, attributes in ((1, {}), (1, {"axis": 0}), (4, {"axis": 1})):
        yield OldNode(opset, "Concat", (floats(3, 3), floats(3, 3, seed=1)), attributes)
    for attributes in ({}, {"perm": [1, 0, 3, 2]}):
        yield OldNode(1, "Transpose", (X,), attributes)
    for axis in range(5):
        yield OldNode(1, "Flatten", (X,), {"axis": axis})
    for attributes in ({}, {"axes": [1]}, {"axes": [1, 3]}):
        yield OldNode(1, "Squeeze", (floats(2, 1, 3, 1),), attributes)
    for axes in ([0], [2], [0, 4]):
        yield OldNode(1, "Unsqueeze", (floats(2, 3, 4),), {"axes": axes})
    for attributes in ({"axis": 1}, {"axis": 1, "split": [1, 3]}):
        yield OldNode(1, "Split", (floats(3, 4),), attributes, ("y", "z"))
        yield OldNode(2, "Split", (floats(3, 4),), attributes, ("y", "z"))
    yield OldNode(1, "Split", (floats(3, 4), np.array([1, 3], np.float32)), {"axis": 1}, ("y", "z"))
    yield OldNode(2, "Split", (floats(4, 3),), {}, ("y", "z"))
    for more in ({}, {"axes": [0, 1]}, {"axes": [2, 3]}):
        for starts, ends in (([1, 1], [2, 3]), ([0, -2], [9, -1])):
            yield OldNode(1, "Slice", (X,), {"starts": starts, "ends": ends, **more})
    for axis in (0, 1, -1):
        yield OldNode(1, "Gather", (X, np.array([[0, 1], [1, 0]])), {"axis": axis})
    for count, axis in ((2, 1), (3, 0), (1, 1)):
        yield OldNode(1, "Tile", (floats(2, 3), np.array([count], np.float32), np.array([axis], np.float32)))
    yield OldNode(6, "Tile", (floats(2, 3), np.array([2, 3])))
    for name, opset in (("paddings", 1), ("pads", 2)):
        for mode in ({}, {"value": 1.5}, {"mode": "reflect"}, {"mode": "edge"}):
            yield OldNode(opset, "Pad", (floats(3, 4),), {name: [1, 0, 0, 2], **mode})
    yield OldNode(2, "Pad", (floats(3, 4),), {"pads": [-1, 0, 0, 2]})
    for op_type in ("Shape", "Size", "Identity"):
        yield OldNode(1, op_type, (X,))
    yield OldNode(1, "Not", (X > 0,))
    yield OldNode(1, "MatMul", (X, floats(5, 2)))
    yield OldNode(1, "SpaceToDepth", (floats(1, 2, 4, 6),), {"blocksize": 2})
    yield OldNode(1, "DepthToSpace", (floats(1, 8, 2, 3),), {"blocksize": 2})


def layers() -> Iterator[OldNode]:
    """Convolution, pooling, normalisation."""
    vectors = [floats(3, low=0.5, seed=n) for n in range(4)]
    for opset, x in ((1, X), (6, X), (6, floats(2, 3, 4)), (6, floats(2, 3))):
        hint: dict[str, Any] = {} if opset == 6 else {"consumed_inputs": [0, 0, 0, 1, 1]}
        for more in ({}, {"epsilon": 0.1, "momentum": 0.5}):
            yield OldNode(opset, "BatchNormalization", (x, *vectors), {"is_test": 1, **more, **hint})
    for opset, hint in ((1, {}), (1, {"consumed_inputs": [0]}), (6, {})):
        yield OldNode(opset, "InstanceNormalization", (X, *vectors[:2]), {"epsilon": 0.1, **hint})
    per_activation = [floats(3, 4, 5, low=0.5, seed=n) for n in range(4)]
    yield OldNode(6, "BatchNormalization", (X, *per_activation), {"is_test": 1, "spatial": 0})
    yield OldNode(1, "LRN", (X,), {"size": 3, "alpha": 0.5, "beta": 0.5, "bias": 2.0})
    for attributes in ({}, {"p": 1}, {"p": 1, "axis": 1}):
        yield OldNode(1, "LpNormalization", (X,), attributes)
    windows: list[dict[str, Any]] = [
        {},
        {"strides": [2, 2]},
        {"pads": [1, 1, 1, 1]},
        {"auto_pad": "SAME_UPPER", "strides": [2, 2]},
        {"auto_pad": "SAME_LOWER"},
        {"auto_pad": "VALID"},
    ]
    for attributes in windows:
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
    for mode in ("nearest", "bilinear"):
        for height, width in ((2.0, 3.0), (1.0, 2.0), (1.0, 1.0), (1.5, 2.5)):
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
