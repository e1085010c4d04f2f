"""What must hold for the sizes of a model's inputs: stated in the file, and on request checked by the graph itself.

The result of each check (``exporters/checks.py``), a zero, is added to the shape that each input with varying axes is
reshaped to before it is used.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Mapping, Sequence

import onnx_ir

from entrepot.exporters.checks import CheckWriter
from entrepot.ir.typing.formula import Formula

_OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "Add",
    ast.Sub: "Sub",
    ast.Mult: "Mul",
    ast.FloorDiv: "Div",
    ast.Mod: "Mod",
    ast.Eq: "Equal",
    ast.GtE: "GreaterOrEqual",
    ast.LtE: "LessOrEqual",
}


def state_conditions(model: onnx_ir.Model, others: Sequence[str] = ()) -> None:
    """Write into the file which axes must be equal, and the other conditions, in Python's notation over the symbols."""
    equal = [" == ".join(f"{value.name}.{axis}" for value, axis in axes) for axes in _linked(model).values()]
    found = [text for text in equal if "==" in text] + list(others)
    found += [f"{value.name}.{axis} == {text}" for value, axis, text in _derived(model)]
    if found:
        model.metadata_props["entrepot.conditions"] = json.dumps(found)


def check_conditions(model: onnx_ir.Model, others: Sequence[str] = ()) -> None:
    """Make the graph refuse inputs whose sizes do not meet the conditions.

    Args:
        model: Changed in place; axes of one symbol must be equal.
        others: Further conditions over the symbols: ``width % 8 == 0``.
    """
    linked, derived = _linked(model), _derived(model)
    if not any(len(axes) > 1 for axes in linked.values()) and not others and not derived:
        return
    writer = _Writer(model.graph)
    sizes = {symbol: writer.size(*axes[0]) for symbol, axes in linked.items()}
    zeros = [
        writer.zero_where(writer("Equal", sizes[symbol], writer.size(value, axis)), f"{name} == {value.name}.{axis}")
        for symbol, axes in linked.items()
        for name in [f"{axes[0][0].name}.{axes[0][1]}"]
        for value, axis in axes[1:]
    ]
    zeros += [writer.zero_where(writer.expression(text, sizes), text) for text in others]
    zeros += [
        writer.zero_where(
            writer("Equal", writer.size(value, axis), writer.expression(text, sizes)), f"{value.name}.{axis} == {text}"
        )
        for value, axis, text in derived
    ]
    total = writer.total(zeros)
    for value in dict.fromkeys(value for axes in linked.values() for value, _ in axes):
        writer.guard(value, total)
    writer.place()


def _linked(model: onnx_ir.Model) -> dict[str, list[tuple[onnx_ir.Value, int]]]:
    """The axes of the inputs by their symbol."""
    found: dict[str, list[tuple[onnx_ir.Value, int]]] = {}
    for value, axis, text in _symbolic(model):
        if text.isidentifier():
            found.setdefault(text, []).append((value, axis))
    return found


def _derived(model: onnx_ir.Model) -> list[tuple[onnx_ir.Value, int, str]]:
    """The axes of the inputs that are a formula of others: ``2*length``."""
    known = _linked(model).keys()
    others = [(*each, Formula.of(each[2])) for each in _symbolic(model) if not each[2].isidentifier()]
    return [(value, axis, text) for value, axis, text, formula in others if formula and known >= {*formula.names}]


def _symbolic(model: onnx_ir.Model) -> Iterator[tuple[onnx_ir.Value, int, str]]:
    for value in model.graph.inputs:
        for axis, dim in enumerate(value.shape or ()):
            if isinstance(dim, onnx_ir.SymbolicDim) and dim.value is not None:
                yield value, axis, dim.value


class _Writer(CheckWriter):
    """Writes nodes that come before all others of a graph."""

    def __init__(self, graph: onnx_ir.Graph) -> None:
        super().__init__(graph)
        self._graph = graph
        self._readers: list[tuple[onnx_ir.Value, onnx_ir.Value]] = []

    def size(self, value: onnx_ir.Value, axis: int) -> onnx_ir.Value:
        return self("Shape", value, start=axis, end=axis + 1)

    def zero_where(self, condition: onnx_ir.Value, text: str) -> onnx_ir.Value:
        """A zero, from a node that fails where a condition does not hold."""
        return self.zero_unless(self("Not", condition), text)

    def guard(self, value: onnx_ir.Value, zero: onnx_ir.Value) -> None:
        """Make everything that reads an input read it through a check."""
        self._readers.append((value, self.guarded(value, zero)))

    def expression(self, text: str, sizes: Mapping[str, onnx_ir.Value]) -> onnx_ir.Value:
        return self._term(ast.parse(text, mode="eval").body, sizes)

    def _term(self, term: ast.AST, sizes: Mapping[str, onnx_ir.Value]) -> onnx_ir.Value:
        match term:
            case ast.Name(id=symbol):
                return sizes[symbol]
            case ast.Constant(value=int(number)):
                return self.constant(number)
            case ast.Call(ast.Name(id="max" | "min" as name), arguments):
                return self(name.capitalize(), *(self._term(argument, sizes) for argument in arguments))
            case ast.BinOp(left, operation, right) | ast.Compare(left, [operation], [right]):
                return self(_OPERATORS[type(operation)], self._term(left, sizes), self._term(right, sizes))
        raise ValueError(ast.dump(term))

    def place(self) -> None:
        """Put the nodes into the graph; they alone still read the inputs directly."""
        mine = set(self.nodes)
        for value, checked in self._readers:
            for node, index in list(value.uses()):
                if node not in mine:
                    node.replace_input_with(index, checked)
        first = next(iter(self._graph), None)
        self._graph.extend(self.nodes) if first is None else self._graph.insert_before(first, self.nodes)
