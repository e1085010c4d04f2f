"""Formulas of sizes as ONNX nodes at the beginning of a graph."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir

from entrepot.exporters.paths.expression import Expression
from entrepot.exporters.paths.outline import array_of

_COMPARED: dict[type[ast.AST], str] = {
    ast.Eq: "Equal",
    ast.Lt: "Less",
    ast.LtE: "LessOrEqual",
    ast.Gt: "Greater",
    ast.GtE: "GreaterOrEqual",
}
_ARITHMETIC: dict[type[ast.AST], str] = {ast.Add: "Add", ast.Sub: "Sub", ast.Mult: "Mul"}
_OPERATIONS: dict[str, type[ast.AST]] = {
    "Mod": ast.Mod,
    "PythonMod": ast.Mod,
    "FloorDiv": ast.FloorDiv,
    "CleanDiv": ast.FloorDiv,
    "IntTrueDiv": ast.Div,
    "FloatTrueDiv": ast.Div,
    "FloatPow": ast.Pow,
    "PowByNatural": ast.Pow,
}
_ROUNDED = {"FloorToInt": "Floor", "CeilToInt": "Ceil", "RoundToInt": "Round", "TruncToInt": ""}
_INT, _FLOAT, _BOOL = "int", "float", "bool"


class Writer:
    """Writes nodes that come before all others of a graph.

    Args:
        graph: Changed by ``place``; the names of its values are not used again.
        sizes: Where each symbol is read: an input and an axis of it; or, with -1, a scalar.
        prefix: What the names of its values begin with.
    """

    def __init__(
        self, graph: onnx_ir.Graph, sizes: Mapping[str, tuple[onnx_ir.Value, int]], prefix: str = "size"
    ) -> None:
        self._prefix = prefix
        self._graph = graph
        self._sizes = sizes
        self._nodes: list[onnx_ir.Node] = []
        self._known: dict[Any, onnx_ir.Value] = {}
        self._taken = {value.name for node in graph.all_nodes() for value in node.outputs}
        self._taken |= {*graph.initializers, *(value.name for value in graph.inputs)}
        self._numbers = itertools.count()

    def scalar(self, expression: Expression, dtype: onnx_ir.DataType) -> onnx_ir.Value:
        """The value of a formula as a scalar."""
        return self._cast(self._scalar(self._term(expression.tree)[0]), dtype)

    def vector(self, parts: Sequence[Expression | float], dtype: onnx_ir.DataType) -> onnx_ir.Value:
        """Several values in one tensor of rank 1."""
        terms = [self._term(part.tree)[0] if isinstance(part, Expression) else self._number(part) for part in parts]
        joined = terms[0] if len(terms) == 1 else self("Concat", *terms, axis=0)
        return self._cast(joined, dtype)

    def condition(self, expressions: list[Expression]) -> onnx_ir.Value:
        """Whether all hold."""
        terms = [self._term(each.tree)[0] for each in expressions]
        result = terms[0]
        for term in terms[1:]:
            result = self("And", result, term)
        return self._scalar(result)

    def place(self) -> None:
        """Put the nodes into the graph."""
        first = next(iter(self._graph), None)
        self._graph.extend(self._nodes) if first is None else self._graph.insert_before(first, self._nodes)
        self._nodes = []

    def __call__(self, op_type: str, *inputs: onnx_ir.Value, **attributes: Any) -> onnx_ir.Value:
        """One node; the same one again where it is there already."""
        key = (op_type, *map(id, inputs), *sorted((name, str(value)) for name, value in attributes.items()))
        if key not in self._known:
            node = onnx_ir.node(op_type, list(inputs), attributes)
            node.name = node.outputs[0].name = self._fresh()
            self._nodes.append(node)
            self._known[key] = node.outputs[0]
        return self._known[key]

    def constant(self, value: np.ndarray) -> onnx_ir.Value:
        """A tensor."""
        key = (value.dtype.str, value.shape, value.tobytes())
        if key not in self._known:
            node = onnx_ir.node("Constant", [], {"value": onnx_ir.tensor(value)})
            node.name = node.outputs[0].name = self._fresh()
            self._nodes.append(node)
            self._known[key] = node.outputs[0]
        return self._known[key]

    def _number(self, number: float) -> onnx_ir.Value:
        return self.constant(np.array([number], np.int64 if isinstance(number, int) else np.float64))

    def _fresh(self) -> str:
        name = next(name for at in self._numbers if (name := f"{self._prefix}_{at}") not in self._taken)
        self._taken.add(name)
        return name

    def _scalar(self, value: onnx_ir.Value) -> onnx_ir.Value:
        return self("Squeeze", value, self.constant(np.array([0], np.int64)))

    def _cast(self, value: onnx_ir.Value, dtype: onnx_ir.DataType) -> onnx_ir.Value:
        return self("Cast", value, to=dtype)

    def _term(self, node: ast.AST) -> tuple[onnx_ir.Value, str]:  # noqa: C901, PLR0911 - one case per kind of node
        """A term as a vector of one element, with its kind: int64, double or bool."""
        match node:
            case ast.Constant(value=bool(truth)):
                return self.constant(np.array([truth])), _BOOL
            case ast.Constant(value=int() | float() as number):
                return self._number(number), _INT if isinstance(number, int) else _FLOAT
            case ast.Name(id=symbol):
                value, axis = self._sizes[symbol]
                if axis < 0:
                    return self("Unsqueeze", value, self.constant(np.array([0], np.int64))), _INT
                return self("Shape", value, start=axis, end=axis + 1), _INT
            case ast.BoolOp(operation, values):
                return self._joined("And" if isinstance(operation, ast.And) else "Or", *values), _BOOL
            case ast.BinOp(left, ast.BitAnd() | ast.BitOr() as operation, right):
                return self._joined("And" if isinstance(operation, ast.BitAnd) else "Or", left, right), _BOOL
            case ast.UnaryOp(ast.Not() | ast.Invert(), operand):
                return self("Not", self._term(operand)[0]), _BOOL
            case ast.Compare(left, operations, rights):
                terms = [left, *rights]
                pairs = zip(operations, terms, terms[1:], strict=False)
                return self._all([self._compared(type(each), *pair) for each, *pair in pairs]), _BOOL
            case ast.Call(ast.Name(name), arguments):
                return self._called(name, arguments)
            case ast.UnaryOp(ast.USub(), operand):
                value, kind = self._term(operand)
                return self("Neg", value), kind
            case ast.BinOp(left, operation, right):
                return self._computed(type(operation), left, right)
        raise ValueError(ast.dump(node))

    def _joined(self, op_type: str, *terms: ast.AST) -> onnx_ir.Value:
        result = self._term(terms[0])[0]
        for term in terms[1:]:
            result = self(op_type, result, self._term(term)[0])
        return result

    def _all(self, values: list[onnx_ir.Value]) -> onnx_ir.Value:
        result = values[0]
        for value in values[1:]:
            result = self("And", result, value)
        return result

    def _pair(self, left: ast.AST, right: ast.AST, *, floats: bool = False) -> tuple[onnx_ir.Value, onnx_ir.Value, str]:
        (first, kind), (second, other) = self._term(left), self._term(right)
        if not floats and kind == other:
            return first, second, kind
        return self._cast(first, onnx_ir.DataType.DOUBLE), self._cast(second, onnx_ir.DataType.DOUBLE), _FLOAT

    def _compared(self, operation: type[ast.AST], left: ast.AST, right: ast.AST) -> onnx_ir.Value:
        first, second, _ = self._pair(left, right)
        if operation is ast.NotEq:
            return self("Not", self("Equal", first, second))
        return self(_COMPARED[operation], first, second)

    def _computed(self, operation: type[ast.AST], left: ast.AST, right: ast.AST) -> tuple[onnx_ir.Value, str]:
        first, second, kind = self._pair(left, right, floats=operation is ast.Div)
        if operation is ast.Pow:
            return self("Pow", first, second), kind
        if operation in _ARITHMETIC:
            return self(_ARITHMETIC[operation], first, second), kind
        if operation is ast.Div:
            return self("Div", first, second), _FLOAT
        if kind == _FLOAT:
            raise ValueError("a float is divided with rounding")
        remainder = self("Mod", first, second)
        return (remainder if operation is ast.Mod else self("Div", self("Sub", first, remainder), second)), _INT

    def _called(self, name: str, arguments: list[ast.expr]) -> tuple[onnx_ir.Value, str]:  # noqa: PLR0911 - one per function
        if name in ("Eq", "Ne"):
            return self._compared(ast.Eq if name == "Eq" else ast.NotEq, *arguments), _BOOL
        if name in _OPERATIONS:
            return self._computed(_OPERATIONS[name], *arguments)
        if name == "CeilDiv":
            negative = ast.UnaryOp(ast.USub(), arguments[0])
            return self._term(ast.UnaryOp(ast.USub(), ast.BinOp(negative, ast.FloorDiv(), arguments[1])))
        if name in ("Min", "Max", "min", "max"):
            return self._extreme(name.capitalize(), arguments)
        value, kind = self._term(arguments[0])
        if name == "abs":
            return self("Abs", value), kind
        value = self._cast(value, onnx_ir.DataType.DOUBLE)
        if name == "ToFloat":
            return value, _FLOAT
        if name in _ROUNDED:
            rounded = self(_ROUNDED[name], value) if _ROUNDED[name] else value
            return self._cast(rounded, onnx_ir.DataType.INT64), _INT
        return self("Log" if name == "log" else "Sqrt", value), _FLOAT

    def _extreme(self, name: str, arguments: list[ast.expr]) -> tuple[onnx_ir.Value, str]:
        terms = [self._term(argument) for argument in arguments]
        if any(kind == _FLOAT for _, kind in terms):
            return self(name, *(self._cast(value, onnx_ir.DataType.DOUBLE) for value, _ in terms)), _FLOAT
        return self(name, *(value for value, _ in terms)), _INT


def computed(writer: Writer, value: onnx_ir.Value | None, parts: Sequence[Expression | float]) -> onnx_ir.Value:
    """What a constant was in a capture, computed from sizes."""
    array = None if value is None else array_of(value)
    assert array is not None
    dtype = onnx_ir.DataType.from_numpy(array.dtype)
    if array.ndim == 0:
        return writer.scalar(as_expression(parts[0]), dtype)
    vector = writer.vector(parts, dtype)
    return vector if array.ndim == 1 else writer("Reshape", vector, writer.constant(np.array(array.shape, np.int64)))


def as_expression(number: Expression | float) -> Expression:
    """A number as a formula, too."""
    return number if isinstance(number, Expression) else Expression(repr(number))
