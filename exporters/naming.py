"""Names of inputs, outputs, values and nodes, and the symbols of axes."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import onnx_ir

from entrepot.exporters.axes.groups import Group
from entrepot.exporters.checks import says_what_it_needs
from entrepot.exporters.options import Options
from entrepot.exporters.structure import Flat
from entrepot.ir.errors import InputError
from entrepot.ir.typing.formula import Formula

_WORD = re.compile(r"[A-Za-z_]\w*")


def graph_names(parameters: Collection[str], call: Flat, result: Flat, options: Options) -> tuple[list[str], list[str]]:
    """Names of the graph's inputs and outputs: the caller's, or those of the signature and the result.

    Raises:
        InputError: The caller gave too few, too many, or the same twice.
    """
    inputs = _chosen(options.input_names, call.names, parameters, "_in", "input_names")
    wanted = [_present(name if name in inputs else output_name(name), inputs) for name in result.names]
    outputs = _chosen(options.output_names, wanted, {*parameters, *inputs}, "_out", "output_names")
    return inputs, outputs


def rename_symbols(model: onnx_ir.Model, groups: Sequence[Group]) -> None:
    """Replace the symbols of a capture (``s77``, ``2*s77``) by those of the groups, wherever shapes mention them."""
    names: dict[str, str] = {}
    counted: dict[str, _Steps] = {}
    for group in groups:
        for index, axis in group.axes:
            shape = model.graph.inputs[index].shape
            dim = None if shape is None else shape[axis]
            text = dim.value if isinstance(dim, onnx_ir.SymbolicDim) else None
            if text is not None and (group.formula is None or text.isidentifier()):
                names[text] = group.symbol
                counted |= _counted(text, group.symbol)
    counted = {name: steps for name, steps in counted.items() if name not in names}
    for value in _all_values(model.graph):
        if value.shape is not None:
            value.shape = onnx_ir.Shape([_renamed(dim, names, counted) for dim in value.shape])


@dataclass(frozen=True)
class _Steps:
    """A number of steps: ``s77``, where the size of ``symbol`` is ``4*s77 + 1``."""

    symbol: str
    step: int
    offset: int

    def times(self, factor: int) -> str:
        """A multiple of it, over the symbol; what divides without a remainder is not divided first."""
        size = f"({self.symbol} - {self.offset})"
        shared = math.gcd(factor, self.step)
        parts = f"({size}//{self.step // shared})" if self.step > shared else size
        return f"{factor // shared}*{parts}"


def _counted(text: str, symbol: str) -> dict[str, _Steps]:
    """What a capture calls the number of steps in a size."""
    formula = Formula.of(text)
    factor, offset = (formula and formula.slope()) or (0, 0)
    return {formula.names[0]: _Steps(symbol, factor, offset)} if formula and factor > 1 else {}


def name_graph(model: onnx_ir.Model, input_names: Sequence[str], output_names: Sequence[str]) -> None:
    """Give inputs, outputs, inner values and nodes their names; a node is called after its module and operator.

    Checks keep theirs.
    """
    graph = model.graph
    wanted = [*zip(graph.inputs, input_names, strict=True), *zip(graph.outputs, output_names, strict=True)]
    reserved = {id(value) for value, _ in wanted}
    values = _Names([*graph.initializers, *(name for _, name in wanted)])
    for value in _inner_values(graph):  # an inner value may already have a wanted name
        if id(value) not in reserved:
            value.name = values.new(value.name or "value")
    for value, name in wanted:
        value.name = name
    names = _Names()
    for node in onnx_ir.traversal.RecursiveGraphIterator(graph):
        path = node.metadata_props.get("entrepot.module", "")
        wish = node.name if says_what_it_needs(node) else f"{path}/{node.op_type}" if path else node.op_type
        node.name = names.new(str(wish))


def _inner_values(graph: onnx_ir.Graph) -> Iterator[onnx_ir.Value]:
    for node in onnx_ir.traversal.RecursiveGraphIterator(graph):
        for attribute in node.attributes.values():
            if attribute.type == onnx_ir.AttributeType.GRAPH:
                yield from attribute.as_graph().inputs
        yield from node.outputs


class _Names:
    """Names that are taken; of thousands that are wished for alike, each is found at once."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)
        self._last: dict[str, int] = {}

    def new(self, wish: str) -> str:
        """The name that is wished for, or the next one with a number behind it."""
        name, number = wish, self._last.get(wish, 0)
        while name in self._taken:
            number += 1
            name = f"{wish}_{number}"
        self._last[wish] = number
        self._taken.add(name)
        return name


def _chosen(
    given: Sequence[str] | None, found: Sequence[str], taken: Collection[str], suffix: str, what: str
) -> list[str]:
    if given is None:
        return _distinct([f"{name}{suffix}" if name in taken else name for name in found])
    if len(given) != len(found) or len(set(given)) != len(given) or set(given) & set(taken):
        raise InputError(
            f"{what} is {list(given)}, for {list(found)}", hint="give each its own name, and none of a parameter"
        )
    return list(given)


def _distinct(names: Sequence[str]) -> list[str]:
    result: list[str] = []
    for name in names:
        candidate, number = name, 1
        while candidate in result:
            number += 1
            candidate = f"{name}_{number}"
        result.append(candidate)
    return result


def output_name(path: str) -> str:
    """``output`` for the one result, ``output_1`` for the second of a tuple, the key or field name for the rest."""
    if not path:
        return "output"
    return f"output_{path}" if path[0].isdigit() else path


def _present(name: str, inputs: Collection[str]) -> str:
    """What a step returns for the past that it was given: ``past.0.keys`` becomes ``present.0.keys``."""
    root, dot, rest = name.partition(".")
    is_given = any(other.partition(".")[0] == root for other in inputs)
    return f"present{root.removeprefix('past')}{dot}{rest}" if is_given and root.startswith("past") else name


def _renamed(
    dim: int | onnx_ir.SymbolicDim, names: Mapping[str, str], counted: Mapping[str, _Steps]
) -> int | str | None:
    if isinstance(dim, int):
        return dim
    if dim.value is None:
        return None
    if dim.value in names and not names.keys() >= set(_WORD.findall(dim.value)):
        return names[dim.value]  # computed from a size that no axis has: 4*s77 without s77
    formula = Formula.of(dim.value)
    if formula is not None:
        factor, offset = formula.slope() or (0, 0)
        if factor > 0 and formula.names[0] in counted:
            formula = Formula.of(f"{counted[formula.names[0]].times(factor)} + {offset}") or formula
        return formula.renamed({name: steps.times(1) for name, steps in counted.items()} | dict(names)).text
    return _WORD.sub(lambda word: names.get(word[0], word[0]), dim.value)


def _all_values(graph: onnx_ir.Graph) -> Iterator[onnx_ir.Value]:
    yield from graph.inputs
    yield from _inner_values(graph)
