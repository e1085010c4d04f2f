"""A graph that is written node by node, for frameworks whose programs are translated here.

Nodes are of opset 20, the one that files are written at. A value bears the type and shape that its translation states;
where it states none, its type follows from the operator's schema.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import onnx_ir as ir
from onnx_ir.passes import common

from entrepot.exporters.result_types import OPSET, operand_types, result_type

Dim: TypeAlias = "int | str | None"
Operand: TypeAlias = "ir.Value | np.ndarray[Any, Any] | np.generic | bool | int | float | Sequence[int] | None"

_NUMBERS = (bool, int, float)


@dataclass
class _Store:
    """What a graph and its bodies have in common."""

    weights: dict[str, ir.Value] = field(default_factory=dict)
    same: dict[object, ir.Value] = field(default_factory=dict)
    kept: list[Any] = field(default_factory=list)  # whose ids are in use
    functions: dict[Any, ir.Function] = field(default_factory=dict)
    constants: set[str] = field(default_factory=set)  # those of the weights that are part of the program

    def add(self, key: object, name: str, tensor: ir.TensorProtocol) -> ir.Value:
        """An initializer, under the first free name."""
        names = itertools.chain((name,), (f"{name}_{number}" for number in itertools.count(1)))
        free = next(each for each in names if each not in self.weights)
        shape = ir.Shape(tensor.shape.numpy())
        value = ir.Value(name=free, const_value=tensor, type=ir.TensorType(tensor.dtype), shape=shape)
        self.same[key] = self.weights[free] = value
        return value


class Builder:
    """One graph: ``model`` makes a model of the outermost one, ``graph`` an attribute of one that is a body.

    Args:
        name: What the graph is called.
        store: Of the graph in which this one is a body.
        path: The part of the model that nodes come from.
    """

    def __init__(self, name: str = "main", store: _Store | None = None, path: Sequence[str] = ()) -> None:
        self._name = name
        self._is_main = store is None
        self._store = _Store() if store is None else store
        self._path = [*path]
        self._nodes: list[ir.Node] = []
        self._inputs: list[ir.Value] = []

    @property
    def is_main(self) -> bool:
        """Whether it is no body of another."""
        return self._is_main

    @property
    def path(self) -> tuple[str, ...]:
        """The part of the model that nodes come from at the moment."""
        return tuple(self._path)

    @property
    def weights(self) -> frozenset[str]:
        """The names of what was given as a weight, and not as a constant."""
        return frozenset(self._store.weights).difference(self._store.constants)

    # what comes in ---------------------------------------------------------------------------------------------------

    def input(self, name: str, dtype: Any, shape: Sequence[Dim] | None) -> ir.Value:
        """The next input; a name in its shape is an axis that varies, ``None`` one of which nothing is known."""
        value = typed(ir.Value(name=name), dtype, shape)
        self._inputs.append(value)
        return value

    def weight(self, name: str, tensor: Any) -> ir.Value:
        """An initializer that keeps its name; an array that is given again is the same initializer.

        Args:
            name: What the framework calls it; another that is called so gets a number.
            tensor: An array, which is not copied, or a tensor of ``onnx_ir``.
        """
        store, key = self._store, id(tensor)
        if key not in store.same:
            store.kept.append(tensor)
            return store.add(key, name, ir.Tensor(tensor) if _is_plain(tensor) else _tensor(tensor))
        return store.same[key]

    def constant(self, value: Any, dtype: Any = None) -> ir.Value:
        """A number, a list or an array that is part of the program; equal ones are one value.

        Args:
            value: What it is; a list of integers is int64.
            dtype: Its type, NumPy's or ONNX's; the array's own if left out.
        """
        kind = None if dtype is None else element(dtype)
        array = np.asarray(value) if kind is None or isinstance(value, np.ndarray) else np.asarray(value, kind.numpy())
        array = array if kind is None else array.astype(kind.numpy(), copy=False)
        key = (
            array.dtype.str,
            array.dtype.name,
            array.shape,
            array.tobytes() if array.dtype != object else tuple(array.flat),
        )
        tensor = _text(array) if array.dtype == object else ir.tensor(array, dtype=kind)
        if key in self._store.same:
            return self._store.same[key]
        value = self._store.add(key, "constant", tensor)
        self._store.constants.add(value.name or "")
        return value

    # nodes -----------------------------------------------------------------------------------------------------------

    def op(self, op_type: str, *operands: Operand, outputs: int = 1, domain: str = "", **attributes: Any) -> Any:
        """Write a node.

        Args:
            op_type: The operator.
            operands: Values; arrays; Python numbers, which take the type of the first value with a type of the same
                name in the schema; lists of integers, which are int64; ``None`` where one is left out.
            outputs: How many results it has.
            domain: Of the operator.
            attributes: By their names; one that is ``None`` is left out.

        Returns:
            The result, or a tuple of several.
        """
        names = operand_types(domain, op_type, len(operands))
        values = [self._operand(item, names, at, operands) for at, item in enumerate(operands)]
        while values and values[-1] is None:
            values.pop()
        made = [_attribute(name, item) for name, item in attributes.items() if item is not None]
        node = ir.Node(domain, op_type, values, made, num_outputs=outputs)
        if self._path:
            node.metadata_props["entrepot.module"] = "/".join(self._path)
        self._nodes.append(node)
        for result in node.outputs:
            result.type = result_type(node, result.index() or 0)
        return node.outputs[0] if outputs == 1 else tuple(node.outputs)

    def call(self, function: Any, *operands: Operand, outputs: int = 1, **attributes: Any) -> Any:
        """A call of an onnxscript function, which becomes a function of the file.

        Args:
            function: As ``onnxscript.script`` makes it; what it calls comes along.
            operands: As for ``op``.
            outputs: How many results it has.
            attributes: Of the function.
        """
        for each in (function, *_called(function)):
            made = ir.from_proto(each.to_function_proto())
            if isinstance(made, ir.Function):
                made.opset_imports[""] = OPSET
                self._store.functions.setdefault(made.identifier(), made)
        return self.op(function.name, *operands, outputs=outputs, domain=function.opset.domain, **attributes)

    def cast(self, value: ir.Value, dtype: Any) -> ir.Value:
        """The value in another type; itself where it has that one.

        What is too large for eight bits becomes what the type has for it, as in every framework.
        """
        kind = element(dtype)
        if value.dtype == kind:
            return value
        result: ir.Value = self.op("Cast", value, to=int(kind), saturate=0 if "FLOAT8" in kind.name else None)
        result.shape = value.shape
        return result

    def shape(self, value: ir.Value, start: int = 0, end: int | None = None) -> ir.Value:
        """The sizes of axes ``start`` to ``end``, ``int64[n]``: a constant where all of them are known."""
        dims = None if value.shape is None else list(value.shape)[start:end]
        if dims is not None and all(isinstance(dim, int) for dim in dims):
            return self.constant(np.array(dims, np.int64))
        return typed(self.op("Shape", value, start=start, end=end), np.int64, None if dims is None else [len(dims)])

    def size(self, value: ir.Value, axis: int) -> ir.Value:
        """The size of one axis, an int64 scalar: a constant where it is known."""
        dim = None if value.shape is None else value.shape[axis]
        if isinstance(dim, int):
            return self.constant(np.array(dim, np.int64))
        end = axis + 1 if axis != -1 else None
        return typed(self.op("Squeeze", self.op("Shape", value, start=axis, end=end)), np.int64, [])

    @contextlib.contextmanager
    def module(self, path: str) -> Iterator[None]:
        """Nodes that are written inside come from this part of the model, within the one around it."""
        self._path.append(path)
        try:
            yield
        finally:
            self._path.pop()

    def splice(self, model: ir.Model, given: Mapping[str, ir.Value]) -> dict[str, ir.Value]:
        """Write the nodes of another model here; its weights become weights of this one.

        What is known of its shapes is left behind: in the body of a loop, sizes change from turn to turn.

        Args:
            model: What is copied; it stays as it is.
            given: What its inputs are.

        Returns:
            Its results, by name.
        """
        graph = model.graph.clone()
        for name, value in list(graph.initializers.items()):
            tensor = model.graph.initializers[name].const_value
            value.replace_all_uses_with(self.weight(name, tensor), replace_graph_outputs=True)
        for value in graph.inputs:
            value.replace_all_uses_with(given[value.name or ""], replace_graph_outputs=True)
        results = {name.name or "": value for name, value in zip(model.graph.outputs, graph.outputs, strict=True)}
        nodes = list(graph)
        graph.outputs.clear()
        graph.remove(nodes)
        for node in nodes:
            for value in node.outputs:
                value.shape = None
                value.name = None
        self._nodes += nodes
        return results

    # what comes out --------------------------------------------------------------------------------------------------

    def body(self, name: str = "body") -> Builder:
        """A graph for an attribute of ``If``, ``Loop`` or ``Scan``, which may use values of this one."""
        return Builder(name, self._store, self._path)

    def graph(self, outputs: Sequence[ir.Value]) -> ir.Graph:
        """The graph, with these results; each of a body's is computed in it."""
        results = list(outputs)
        if not self._is_main:
            own = {id(value) for node in self._nodes for value in node.outputs}
            for at, value in enumerate(results):
                if id(value) not in own or any(value is other for other in results[:at]):
                    results[at] = _like(self.op("Identity", value), value)
        weights = self._store.weights.values() if self._is_main else ()
        return ir.Graph(
            self._inputs, results, nodes=self._nodes, initializers=list(weights), name=self._name,
            opset_imports={"": OPSET} if self._is_main else None,
        )  # fmt: skip

    def model(self, outputs: Sequence[ir.Value]) -> ir.Model:
        """The model, with these results; what the graph calls is part of it."""
        graph = self.graph(outputs)
        functions = list(self._store.functions.values())
        domains = {node.domain for node in ir.traversal.RecursiveGraphIterator(graph)} - {""}
        known = {"ai.onnx.ml": 3}
        graph.opset_imports.update({domain: known.get(domain, 1) for domain in sorted(domains)})
        for function in functions:
            inner = {node.domain for node in function} - {""}
            function.opset_imports.update(dict.fromkeys(inner, 1))
            graph.opset_imports.update(dict.fromkeys({function.domain, *inner}, 1))
        model = ir.Model(graph, ir_version=10, producer_name="entrepot", functions=functions)
        if functions:
            common.InlinePass()(model)
        common.NameFixPass()(model)
        _name_apart(graph)
        return model

    def _operand(self, item: Operand, names: Sequence[str], at: int, operands: Sequence[Operand]) -> ir.Value | None:
        if item is None or isinstance(item, ir.Value):
            return item
        if not isinstance(item, _NUMBERS):
            return self.constant(item if isinstance(item, (np.ndarray, np.generic)) else np.array(item, np.int64))
        for other, name in zip(operands, names, strict=True):
            if isinstance(other, ir.Value) and name == names[at] and other.dtype is not None:
                return self.constant(item, other.dtype)
            if isinstance(other, (np.ndarray, np.generic)) and name == names[at]:
                return self.constant(item, other.dtype)
        return self.constant(np.asarray(item, {bool: np.bool_, int: np.int64, float: np.float32}[type(item)]))


def _name_apart(graph: ir.Graph) -> None:
    """Give new names to results in bodies that are called as one of a graph around them, before it or after."""
    graphs = [graph, *graph.subgraphs()]
    known = {*graph.initializers}
    for value in (
        each for one in graphs for each in [*one.inputs, *(result for node in one for result in node.outputs)]
    ):
        names = itertools.chain((value.name,), (f"{value.name}_{number}" for number in itertools.count(1)))
        value.name = next(name for name in names if name == "" or name not in known)
        known.add(value.name)


def _is_plain(array: Any) -> bool:
    return type(array) is np.ndarray and array.dtype.isbuiltin == 1 and array.dtype.kind in "fiub"


def _tensor(array: Any) -> ir.TensorProtocol:
    return array if isinstance(array, ir.TensorProtocol) else ir.tensor(np.asarray(array))


def _attribute(name: str, item: Any) -> ir.Attr:
    """An attribute by its name; onnx_ir (1.1) takes Python 3.11 longer to tell of what kind it is."""
    if type(item) in (int, bool):
        return ir.AttrInt64(name, int(item))
    if type(item) is float:
        return ir.AttrFloat32(name, item)
    if type(item) is str:
        return ir.AttrString(name, item)
    if isinstance(item, ir.Graph):
        return ir.AttrGraph(name, item)
    if isinstance(item, list | tuple) and item and all(type(each) is int for each in item):
        return ir.AttrInt64s(name, item)
    return ir.convenience.convert_attribute(name, item)


def _text(array: np.ndarray[Any, Any]) -> ir.StringTensor:
    encoded = [each if isinstance(each, bytes) else str(each).encode("utf-8", "surrogateescape") for each in array.flat]
    return ir.StringTensor(encoded, shape=ir.Shape(array.shape))


def typed(value: ir.Value, dtype: Any, shape: Sequence[Dim] | None) -> ir.Value:
    """The value, with its type, NumPy's or ONNX's, and its shape; ``None`` where the rank is not known."""
    value.type = ir.TensorType(element(dtype))
    value.shape = None if shape is None else ir.Shape(shape)
    return value


def element(dtype: Any) -> ir.DataType:
    """ONNX's name of an element type."""
    return dtype if isinstance(dtype, ir.DataType) else ir.DataType.from_numpy(np.dtype(dtype))


def _like(value: ir.Value, other: ir.Value) -> ir.Value:
    value.type, value.shape = other.type, other.shape
    return value


def _called(function: Any) -> Iterator[Any]:
    for each in function.function_ir.get_called_functions().values():
        yield each
        yield from _called(each)
