"""Operators of a captured program that have no translation, taken apart where they stand.

``ExportedProgram.run_decompositions`` (torch 2.13) traces the whole program again, twice, whatever there is to take
apart: most of what a translation costs. Here only the operators that are taken apart are traced, all at once, and put
in their places; the rest is copied. Programs that write where others look, or hold other graphs, are left to torch.
"""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import torch
from torch.fx import Graph, Node
from torch.fx.node import map_arg

from entrepot.exporters.torch.capture.sparing import sparing
from entrepot.exporters.torch.lowering.alike import counterparts, first_alike, holds_tensor
from entrepot.exporters.torch.lowering.composites import decomposing
from entrepot.exporters.torch.lowering.schemas import is_composite, may_write
from entrepot.exporters.torch.lowering.writes import without_writes
from entrepot.exporters.torch.translations.doubles import IN_DOUBLE_ONLY
from entrepot.exporters.torch.upstream import (
    OpOverload,
    enable_python_dispatcher,
    is_operator,
    make_fx,
    pytree,
)

Table: TypeAlias = Mapping[Any, Callable[..., Any]]

_SAME = torch.ops.aten.detach_.default
"""What returns what it is given."""

_IDLE = {torch.ops.aten.contiguous.default, torch.ops.aten.dropout.default, torch.ops.aten.to.dtype}
"""What often returns what it is given, or a copy."""


def decomposed(program: torch.export.ExportedProgram, table: Table) -> torch.export.ExportedProgram:
    """A program like ``program`` without the operators of ``table``, and without writes into tensors.

    What it writes into its inputs, its caller may see or not: a graph of ONNX has nothing to show it by.
    """
    found = _decomposed(program, table) if _is_plain(program) else None
    if found is not None:
        return found
    _forget_lengths(program)
    program = program.run_decompositions(dict(table))
    left = any(node.target in table for node in program.graph.nodes)  # by a graph within it, such as of gradients
    return (_decomposed(program, table) or program) if left else program


def _forget_lengths(program: torch.export.ExportedProgram) -> None:
    """Let torch find anew how long slices are that end where a value says.

    It (2.13) takes such a length for a number of its own, and stumbles where it sees, when it traces a program again,
    that the slice ends inside, as it often does with all that the program has found out by its end. Nor can it look at
    a result for a second time that is part of another tensor: such results are copied.
    """
    slices = [node for node in program.graph.nodes if node.target is torch.ops.aten.slice.Tensor]
    if not [node for node in slices if node.meta.pop("unbacked_bindings", None)]:
        return
    for result in program.graph.output_node().all_input_nodes:
        if result.target is torch.ops.aten.detach.default:
            result.target = torch.ops.aten.clone.default


def _is_plain(program: torch.export.ExportedProgram) -> bool:
    tensors = (*program.state_dict.values(), *program.constants.values())
    return all(type(each) in _TENSORS for each in tensors)


_TENSORS = {torch.Tensor, torch.nn.Parameter, torch.nn.Buffer}


def _is_pure(node: Node) -> bool:
    """Whether nothing but the results of a node tells that it ran, and these are computed by no graph of its own."""
    target: Any = node.target
    if node.op != "call_function":
        return node.op in {"placeholder", "output"}
    return not is_operator(target) or (isinstance(target, OpOverload) and not may_write(target))


def _decomposed(program: torch.export.ExportedProgram, table: Table) -> torch.export.ExportedProgram | None:
    """``None`` if it writes where others look, or what its operators become does."""
    modes = (node.meta["val"].fake_mode for node in program.graph.nodes if hasattr(node.meta.get("val"), "fake_mode"))
    mode = next(modes, None)
    if mode is None:
        return None
    with decomposing(table) as (rest, composites):
        graph = without_writes(program.graph, program.graph_signature.user_inputs)
        if graph is None or not all(map(_is_pure, graph.nodes)):
            return None
        apart = [node for node in graph.nodes if _comes_apart(node, table, composites)]
        idle = set(filter(_is_idle, apart))
        apart = [node for node in apart if node not in idle]
        with mode, enable_python_dispatcher(), torch.no_grad():
            alike = first_alike(apart)
            traced = _Traced.of([node for node in apart if node not in alike], rest)
            if not all(map(_is_pure, traced.graph.nodes)):
                return None
            copied = _Copy(traced, alike, lambda node: _Traced.of([node], rest), idle)
            for node in graph.nodes:
                copied.add(node)
    return copied.program(program)


def _comes_apart(node: Node, table: Table, composites: Collection[Any]) -> bool:
    """Whether it is in the table, or made of others and may return what it is given, of which torch takes all apart."""
    target: Any = node.target
    if not isinstance(target, OpOverload):
        return False
    if table.get(target) in IN_DOUBLE_ONLY and not (node.args and _is_double(node.args[0])):
        return False
    return target in table or (target not in composites and is_composite(target))


def _is_idle(node: Node) -> bool:
    """Whether an operator that comes apart does nothing: a sixth of those of a transformer, each a trace of its own."""
    given = node.args[0] if node.args else None
    if node.target not in _IDLE or not isinstance(given, Node):
        return False
    if node.target is torch.ops.aten.dropout.default and node.args[2:] != (False,):
        return False
    one, other = given.meta.get("val"), node.meta.get("val")
    return isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor) and one.dtype == other.dtype


def _is_double(operand: Any) -> bool:
    value = operand.meta.get("val") if isinstance(operand, Node) else operand
    return isinstance(value, torch.Tensor) and value.dtype == torch.float64


@dataclass
class _Traced:
    """What operators become, side by side in one graph.

    Attributes:
        graph: Its placeholders are the values that the operators are given.
        operands: By placeholder, the node that computes its value.
        results: By operator, the traced nodes (or numbers) that are its results.
    """

    graph: Graph
    operands: dict[Node, Node]
    results: dict[Node, Any]

    @classmethod
    def of(cls, nodes: Sequence[Node], table: Table) -> _Traced:
        """Trace some operators on the values that the capture noted."""
        places = {node: at for at, node in enumerate(nodes[0].graph.nodes)} if nodes else {}
        operands = sorted({each for node in nodes for each in node.all_input_nodes}, key=places.__getitem__)
        specs: list[Any] = []

        def together(*values: Any) -> list[Any]:
            known = dict(zip(operands, values, strict=True))
            leaves: list[Any] = []
            for node in nodes:
                args, kwargs = map_arg((node.args, dict(node.kwargs)), known.__getitem__)
                compute: Any = node.target
                parts, spec = pytree.tree_flatten(compute(*args, **kwargs))
                leaves += parts
                specs.append(spec)
            return leaves

        values = _apart([node.meta["val"] for node in operands])
        with sparing():  # a node has what is known of the one that it comes from
            graph = make_fx(together, decomposition_table=table)(*values).graph
        leaves: Any = graph.output_node().args[0]
        made = iter(leaves)
        results = {
            node: pytree.tree_unflatten([next(made) for _ in range(spec.num_leaves)], spec)
            for node, spec in zip(nodes, specs, strict=True)
        }
        return cls(graph, dict(zip(_placeholders(graph), operands, strict=True)), results)


class _Copy:
    """A graph that grows node by node, with what operators become in their places.

    Args:
        traced: What they become.
        alike: By operator that was not traced: one that becomes the same.
        alone: Traces one of them apart from the others.
        idle: Operators whose result has the elements of their operand.
    """

    def __init__(
        self,
        traced: _Traced,
        alike: Mapping[Node, Node],
        alone: Callable[[Node], _Traced],
        idle: Collection[Node],
    ) -> None:
        self.graph = Graph()
        self._traced = traced
        self._alike = alike
        self._alone = alone
        self._idle = idle
        self._made: dict[Node, Any] = {}
        """By node of the program, or of what was traced: the copy, or what stands for it."""

    def add(self, node: Node) -> None:
        """Copy a node, or what it becomes."""
        given: Any = node.args[0] if node.args else None
        if node in self._traced.results:
            self._made[node] = self._inserted(node, self._traced, node, self._made)
        elif node in self._alike:
            self._made[node] = self._inserted(node, self._traced, self._alike[node], {})
        elif node.target is _SAME or node in self._idle:
            self._made[node] = self._made[given]
        elif node.target is operator.getitem and isinstance(self._made[given], Sequence):
            self._made[node] = self._made[given][node.args[1]]
        else:
            self._made[node] = new = self.graph.node_copy(node, self._made.__getitem__)
            if node.op == "placeholder":  # the signature knows it by this name, be it one of Python's own
                new.name = str(node.target)

    def _inserted(self, node: Node, traced: _Traced, first: Node, own: dict[Node, Any]) -> Any:
        """The results of a node, computed by what it becomes.

        Args:
            node: It.
            traced: What it becomes, or the ``first`` one does that is like it.
            first: As told.
            own: Copies of traced nodes, those of sizes aside: they are the same for all that are alike.
        """
        results = traced.results[first]
        needed = self._needed(results, own)
        given = counterparts(first, node)
        operands = {each: traced.operands[each] for each in needed if each.op == "placeholder"}
        starts = {each: given.get(operand, operand) for each, operand in operands.items()}
        foreign = first is not node and not given.keys() >= set(operands.values())
        if foreign or not all(start in self._made for start in starts.values()):  # a size that another value has
            return self._inserted(node, self._alone(node), node, self._made)
        own.update({each: self._made[start] for each, start in starts.items()})

        def copy_of(traced: Node) -> Any:
            return own[traced] if traced in own else self._made[traced]

        sizes = _sizes_before(results, node)
        for each in needed:
            if each not in starts:
                own[each] = new = self._copied(each, node, copy_of)
                new.meta["val"] = pytree.tree_map(lambda value: _with_sizes(value, sizes), new.meta["val"])
        return pytree.tree_map_only(Node, copy_of, results)

    def _copied(self, traced: Node, origin: Node, copy_of: Callable[[Node], Any]) -> Node:
        """A traced node, with what is known of the one it comes from."""
        new = self.graph.node_copy(traced, copy_of)
        new.meta.update({name: value for name, value in origin.meta.items() if name not in _OF_RESULTS})
        note_value(new)
        return new

    def _needed(self, results: Any, own: Collection[Node]) -> list[Node]:
        """What is not copied yet of the traced nodes that some results are computed from, in order."""
        found: set[Node] = set()
        waiting = [leaf for leaf in pytree.tree_leaves(results) if isinstance(leaf, Node)]
        while waiting:
            node = waiting.pop()
            copied = node in own or (node in self._made and not holds_tensor(node))
            if node not in found and not copied:
                found.add(node)
                waiting += node.all_input_nodes
        return sorted(found)

    def program(self, source: torch.export.ExportedProgram) -> torch.export.ExportedProgram:
        """The copy as a program with the weights of ``source``."""
        signature = copy.deepcopy(source.graph_signature)
        name_results(signature, self.graph)
        # numbers that are drawn for nobody, too
        self.graph.eliminate_dead_code(lambda node: node.op in {"placeholder", "output"})
        program = torch.export.ExportedProgram(
            root=torch.nn.Module(),
            graph=self.graph,
            graph_signature=signature,
            state_dict=source.state_dict,
            range_constraints=source.range_constraints,
            module_call_graph=source.module_call_graph,
            example_inputs=source.example_inputs,
            constants=source.constants,
        )
        program.graph_module.meta.update(source.graph_module.meta)
        return program


def name_results(signature: torch.export.ExportGraphSignature, graph: Graph) -> None:
    """Let a signature, in place, name the results that a graph returns."""
    results: Any = graph.output_node().args[0]
    for spec, result in zip(signature.output_specs, results, strict=True):
        if isinstance(result, Node):
            spec.arg = replace(spec.arg, name=result.name)


def _sizes_before(results: Any, node: Node) -> dict[Any, torch.SymInt]:
    """By the symbol that a trace has for a size that depends on values: the size as readers of the node know it."""
    found = [each.meta.get("val") if isinstance(each, Node) else each for each in pytree.tree_leaves(results)]
    known = pytree.tree_leaves(node.meta.get("val"))
    sizes: list[tuple[Any, Any]] = [
        pair
        for one, other in zip(found, known, strict=False)
        if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor) and one.dim() == other.dim()
        for pair in zip(one.shape, other.shape, strict=True)
    ]
    symbols = [(new.node.expr, old) for new, old in sizes if all(isinstance(each, torch.SymInt) for each in (new, old))]
    return {new: old for new, old in symbols if new.is_Symbol and new != old.node.expr}


def _with_sizes(value: Any, sizes: Mapping[Any, torch.SymInt]) -> Any:
    """A traced value with the sizes that were known before."""
    if not sizes:
        return value
    if isinstance(value, torch.SymInt):
        return sizes.get(value.node.expr, value)
    if not isinstance(value, torch.Tensor):
        return value
    shape = [_with_sizes(size, sizes) for size in value.shape]
    return value if all(map(operator.is_, shape, value.shape)) else value.new_empty(shape)


def note_value(node: Node) -> None:
    """Note the value of a traced node, if the trace has noted none: those of arithmetic of sizes."""
    if "val" not in node.meta:
        compute: Any = node.target
        node.meta["val"] = compute(*map_arg(node.args, lambda arg: arg.meta["val"]))


def _apart(values: Sequence[Any]) -> list[Any]:
    """The values, each an object of its own: what is written to keeps its object, and a trace takes both for one."""
    seen: set[int] = set()
    found = []
    for value in values:
        again = isinstance(value, torch.Tensor) and id(value) in seen
        found.append(value.detach() if again else value)
        seen.add(id(value))
    return found


_OF_RESULTS = {"val", "tensor_meta"}


def _placeholders(graph: Graph) -> list[Node]:
    return [node for node in graph.nodes if node.op == "placeholder"]
