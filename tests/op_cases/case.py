"""What a test of an operator is: data, written once, run by every kernel, importer and adapter."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from onnx import helper

from entrepot.ir.opset import OPSET
from entrepot.ir.opset.schemas import CEILINGS

ORACLES = ("reference", "onnxruntime")


@dataclass(frozen=True)
class Draw:
    """An array of reproducible random values; a ``Case`` fills it in, so that no two of its inputs are alike."""

    dtype: np.dtype
    shape: tuple[int, ...]
    low: float
    high: float

    def array(self, seed: str) -> np.ndarray:
        """The values: uniform between the bounds (both included for integers)."""
        rng = np.random.default_rng(zlib.crc32(seed.encode()))
        if self.dtype == bool or np.issubdtype(self.dtype, np.integer):
            return rng.integers(int(self.low), int(self.high), self.shape, endpoint=True).astype(self.dtype)
        return rng.uniform(self.low, self.high, self.shape).astype(self.dtype)


def _maker(dtype: Any, low: float, high: float) -> Any:
    def make(*shape: int, low: float = low, high: float = high) -> Draw:
        return Draw(np.dtype(dtype), shape, low, high)

    return make


f16, f32, f64 = (_maker(dtype, -3, 3) for dtype in (np.float16, np.float32, np.float64))
bf16 = _maker(ml_dtypes.bfloat16, -3, 3)
i8, i16, i32, i64 = (_maker(dtype, -9, 9) for dtype in (np.int8, np.int16, np.int32, np.int64))
u8, u16, u32, u64 = (_maker(dtype, 0, 9) for dtype in (np.uint8, np.uint16, np.uint32, np.uint64))
bools = _maker(np.bool_, 0, 1)

FLOATS = (f32, f64, f16, bf16)
SIGNED = (i8, i16, i32, i64)
UNSIGNED = (u8, u16, u32, u64)
NUMBERS = (*FLOATS, *SIGNED, *UNSIGNED)


def floats(*values: float, dtype: Any = np.float32) -> np.ndarray:
    """A vector of exactly these floats, for NaN, infinities and borders."""
    with np.errstate(all="ignore"):
        return np.array(values, np.float64).astype(dtype)


def ints(*values: int, dtype: Any = np.int64) -> np.ndarray:
    """A vector of exactly these integers: shapes, axes, indices."""
    return np.array(values, dtype)


def strings(values: Any) -> np.ndarray:
    """A tensor of strings."""
    return np.array(values, object)


class Tensors(list):
    """A sequence input that says its element type, for when it is empty."""

    def __init__(self, dtype: Any, members: Iterable[Any] = ()) -> None:
        super().__init__(members)
        self.dtype = np.dtype(dtype)


class Case:
    """One use of one operator at the hub's opset.

    ``Case("Softmax", f32(2, 3, 4), axis=1)``: inputs by position in schema order (``None`` for an absent optional one,
    a list for a sequence), attributes by name. What goes beyond is said by the methods, each giving a new case:
    ``.outputs(2)``, ``.giving(expected)``, ``.held_to("onnxruntime", why=...)``, ``.computed_in(np.float32, why=...)``.
    """

    def __init__(self, op_type: str, *inputs: Any, **attributes: Any) -> None:
        self.op_type = op_type
        self.domain = ""
        self.inputs = tuple(_fill(value, f"{op_type}/{position}") for position, value in enumerate(inputs))
        self.attributes = attributes
        self.n_outputs: int | None = None
        self.expected: tuple[Any, ...] | None = None
        self.oracles: tuple[str, ...] = ORACLES
        self.computed: np.dtype | None = None
        self.needs = 1
        self.is_drawn = False

    def outputs(self, count: int) -> Case:
        """The node names ``count`` outputs; otherwise those that the schema requires."""
        return self._with(n_outputs=count)

    def giving(self, *expected: Any) -> Case:
        """The outputs are known; no oracle is asked. ``None`` stands for an output whose values are free."""
        return self._with(expected=expected, oracles=())

    def drawing(self, *expected: Any) -> Case:
        """The outputs are draws, row by row from the same distributions as these."""
        return self._with(expected=expected, oracles=(), is_drawn=True)

    def held_to(self, *oracles: str, why: str) -> Case:
        """Only these oracles are right about this case; ``why`` names what the other one does."""
        assert why, "say what the other oracle does"
        assert set(oracles) <= set(ORACLES), oracles
        return self._with(oracles=oracles)

    def computed_in(self, dtype: Any, *, why: str) -> Case:
        """The oracles compute in this type, coarser than that of the results; ``why`` says what of it."""
        assert why, "say what is computed in this type"
        return self._with(computed=np.dtype(dtype))

    def feeding(self, inputs: Mapping[int, Any]) -> Case:
        """Other values at these positions; absent ones at the end are cut off."""
        values = [inputs.get(n, value) for n, value in enumerate(self.inputs)]
        while values and values[-1] is None:
            values.pop()
        return self._with(inputs=tuple(values))

    def having(self, name: str, value: Any) -> Case:
        """Another value of one attribute; ``None`` leaves it out."""
        others = {key: item for key, item in self.attributes.items() if key != name}
        return self._with(attributes=others if value is None else {**others, name: value})

    def asking_both(self) -> Case:
        """The oracles are asked again where the case gave its results, and then only both together are believed."""
        return self if self.expected is None else self._with(expected=None, oracles=ORACLES, needs=len(ORACLES))

    def of(self, domain: str) -> Case:
        """The operator is in this domain."""
        return self._with(domain=domain)

    @property
    def opset(self) -> int:
        """The newest version of the domain that still has the operator: the hub's, or the last before deprecation."""
        newest = CEILINGS.get(self.domain, OPSET)
        schema = onnx.defs.get_schema(self.op_type, newest, self.domain)
        return schema.since_version - 1 if schema.deprecated else newest

    @property
    def is_retired(self) -> bool:
        """Whether the hub has the operator no more."""
        return self.opset != CEILINGS.get(self.domain, OPSET)

    @property
    def schema(self) -> onnx.defs.OpSchema:
        """The operator's schema at that version."""
        return onnx.defs.get_schema(self.op_type, self.opset, self.domain)

    @property
    def since(self) -> int:
        """The version that tables register this operator under."""
        return self.schema.since_version

    @property
    def output_count(self) -> int:
        """How many outputs the node names."""
        return self.n_outputs if self.n_outputs is not None else max(self.schema.min_output, 1)

    def feeds(self) -> dict[str, Any]:
        """The inputs that are there, under the names that ``model`` gives them."""
        return {f"i{n}": value for n, value in enumerate(self.inputs) if value is not None}

    def model(self, opset: int | None = None) -> onnx.ModelProto:
        """A model of this one node, every input a graph input."""
        opset = opset or self.opset
        names = [f"i{n}" if value is not None else "" for n, value in enumerate(self.inputs)]
        outputs = [f"o{n}" for n in range(self.output_count)]
        node = helper.make_node(self.op_type, names, outputs, name="node", domain=self.domain)
        node.attribute.extend(_attribute(self.schema, name, value) for name, value in self.attributes.items())
        inputs = [helper.make_value_info(name, _type(value)) for name, value in self.feeds().items()]
        graph = helper.make_graph([node], "case", inputs, [onnx.ValueInfoProto(name=name) for name in outputs])
        imports = [helper.make_opsetid(self.domain, opset)]
        version = min(helper.find_min_ir_version_for(imports, ignore_unknown=True), 13)
        model = onnx.shape_inference.infer_shapes(helper.make_model(graph, opset_imports=imports, ir_version=version))
        for value, formal in zip(model.graph.output, self.schema.outputs, strict=False):
            if value.type.WhichOneof("value") is None and (code := self._element_type(formal)):
                value.type.CopyFrom(helper.make_tensor_type_proto(code, None))
        return model

    def _element_type(self, formal: onnx.defs.OpSchema.FormalParameter) -> int:
        """What the schema says where shape inference says nothing: the one type there is, or that of an input."""
        for given, value in zip(self.schema.inputs, self.inputs, strict=False):
            if given.type_str == formal.type_str and isinstance(value, np.ndarray):
                return _elem(value.dtype)
        name = re.fullmatch(r"tensor\((\w+)\)", formal.type_str)
        return onnx.TensorProto.DataType.Value(name[1].upper()) if name else 0

    def __str__(self) -> str:
        inputs = [_describe(value) for value in self.inputs]
        attributes = [f"{name}={_describe(value)}" for name, value in self.attributes.items()]
        return f"{self.op_type}({', '.join(inputs + attributes)})"

    __repr__ = __str__

    def _with(self, **changes: Any) -> Case:
        new = object.__new__(Case)
        new.__dict__.update(self.__dict__ | changes)
        return new


def _fill(value: Any, seed: str) -> Any:
    if isinstance(value, Draw):
        return value.array(seed)
    if isinstance(value, Tensors):
        return Tensors(value.dtype, (_fill(member, f"{seed}/{n}") for n, member in enumerate(value)))
    if isinstance(value, list):
        return [_fill(member, f"{seed}/{n}") for n, member in enumerate(value)]
    return value


def _attribute(schema: onnx.defs.OpSchema, name: str, value: Any) -> onnx.AttributeProto:
    if isinstance(value, np.ndarray):
        value = onnx.numpy_helper.from_array(value)
    return helper.make_attribute(name, value, attr_type=int(schema.attributes[name].type.value))


def _type(value: Any) -> onnx.TypeProto:
    if isinstance(value, dict):
        key, item = (np.array([part]) for part in next(iter(value.items())))
        return helper.make_map_type_proto(_elem(key.dtype), helper.make_tensor_type_proto(_elem(_single(item)), None))
    if isinstance(value, list):
        shape = None if not value or len({np.shape(v) for v in value}) > 1 else np.shape(value[0])
        dtype = value.dtype if isinstance(value, Tensors) else value[0].dtype
        return helper.make_sequence_type_proto(helper.make_tensor_type_proto(_elem(dtype), shape))
    return helper.make_tensor_type_proto(_elem(value.dtype), value.shape)


def _single(array: np.ndarray) -> np.dtype:
    """The element type of a map's values: Python's floats stand for single precision."""
    return np.dtype(np.float32) if array.dtype == np.float64 else array.dtype


def _elem(dtype: np.dtype) -> int:
    return onnx.TensorProto.STRING if dtype.kind in "OU" else helper.np_dtype_to_tensor_dtype(dtype)


def _describe(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return (
            f"{value.dtype}{list(value.shape)}"
            if value.size > 4 or value.ndim > 1
            else f"{value.dtype}:{value.tolist()}"
        )
    if isinstance(value, list) and value and isinstance(value[0], np.ndarray):
        return f"[{', '.join(map(_describe, value))}]"
    return str(value)
