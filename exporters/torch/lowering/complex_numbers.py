"""Complex tensors of a captured graph become pairs of real ones, wherever they come from and wherever they go.

Each node that a complex tensor enters or leaves is traced again by its rule in ``translations/pairs.py`` and what is
traced takes its place. An operator without a rule is taken apart if torch knows how, though it was kept whole because
of real numbers. Else it stays as it is between a joining and a splitting of the parts, which is right for those that
torch.onnx translates itself, such as Fourier transforms.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from entrepot.exporters.torch.lowering.decomposing import name_results, note_value
from entrepot.exporters.torch.lowering.schemas import is_composite
from entrepot.exporters.torch.lowering.spectra import is_of_spectrum, is_transform, shows_angles
from entrepot.exporters.torch.translations.pair import Pair, is_complex
from entrepot.exporters.torch.translations.pairs import rule_for, spectra_of_frames, spectrum
from entrepot.exporters.torch.translations.waves import is_power_of_two
from entrepot.exporters.torch.upstream import OpOverload, enable_python_dispatcher, get_decompositions, make_fx, pytree

aten = torch.ops.aten


def split_complex(program: torch.export.ExportedProgram, decompositions: dict[Any, Any]) -> None:
    """Rewrite a program of decomposed operators in place; inputs, weights and results that are complex stay so."""
    graph = program.graph_module.graph
    if not any(_holds_complex(node.meta.get("val")) for node in graph.nodes):
        return
    splitter = _Splitter(graph, decompositions)
    for node in list(graph.nodes):
        splitter.visit(node)
    name_results(program.graph_signature, graph)
    graph.eliminate_dead_code()
    graph.lint()
    program.graph_module.recompile()


def _holds_complex(value: Any) -> bool:
    return any(is_complex(leaf) for leaf in pytree.tree_leaves(value))


class _Splitter:
    """The pairs of one graph, by the node that they stand for, and by those that compute their absolute values."""

    def __init__(self, graph: torch.fx.Graph, decompositions: dict[Any, Any]) -> None:
        self.graph = graph
        self.decompositions = decompositions
        self.pairs: dict[Any, Any] = {}
        self.sizes: dict[Any, Pair] = {}
        self.spectra: set[Any] = set()
        self.first = next(node for node in graph.nodes if node.op != "placeholder")

    def visit(self, node: torch.fx.Node) -> None:
        """Split one node, if complex numbers enter or leave it."""
        if node.op == "output":
            node.args = pytree.tree_map_only(torch.fx.Node, self._joined_before(node), node.args)
        elif node.op == "placeholder":
            if _holds_complex(node.meta.get("val")):
                self.pairs[node] = self._inserted(self.first, _split, [node])
        elif node.op == "call_function" and _squared(node) in self.sizes:
            self._settle(node, self._inserted(node, _power, _parts(self.sizes[_squared(node)])))
        elif node.op == "call_function" and (_holds_complex(node.meta.get("val")) or self._touches(node)):
            self._replace(node)

    def _touches(self, node: torch.fx.Node) -> bool:
        leaves = pytree.tree_leaves((node.args, node.kwargs))
        return any(
            isinstance(leaf, complex) or leaf in self.pairs
            for leaf in leaves
            if isinstance(leaf, torch.fx.Node | complex)
        )

    def _replace(self, node: torch.fx.Node) -> None:
        if node.target is operator.getitem:
            self._take(node, *node.args)
            return
        pair = self.pairs.get(node.args[0]) if node.target is aten.abs.default else None
        if isinstance(pair, Pair) and is_of_spectrum(pair.re, self.spectra):
            size = self._inserted(node, _size, _parts(pair))
            self.sizes[size] = pair
            self._settle(node, size)
            return
        rule = rule_for(node.target)
        if node.target is aten._fft_r2c.default and not shows_angles(node):  # noqa: SLF001 - what rfft becomes
            rule = functools.partial(spectrum, exact=False)
        if node.target is aten.stft.default and not is_power_of_two(node.args[1]) and _is_plain(node):
            rule = functools.partial(spectra_of_frames, exact=shows_angles(node))
        leaves, spec = pytree.tree_flatten((node.args, node.kwargs))
        if rule is None:
            parts = _parts_of(node.target)
            if parts is None:
                self._island(node, leaves, spec)
            else:
                self._take_apart(node, parts, leaves, spec)
            return
        operands: list[torch.fx.Node] = []
        build = [self._operand(leaf, operands) for leaf in leaves]

        def traced(*values: Any) -> Any:
            args, kwargs = pytree.tree_unflatten([each(values) for each in build], spec)
            return rule(*args, **kwargs)

        result = self._inserted(node, traced, operands)
        if is_transform(node) and isinstance(result, Pair):
            self.spectra |= {result.re, result.im}
        self._settle(node, result)

    def _take(self, node: torch.fx.Node, source: Any, index: Any) -> None:
        """Let one of several results stand for a node that takes it."""
        if source in self.pairs:
            found = self.pairs[source][index]
            if found is None:
                raise NotImplementedError(f"result {index} of {source.target} for complex numbers")
            self._settle(node, found)

    def _take_apart(self, node: torch.fx.Node, parts: Callable[..., Any], leaves: Sequence[Any], spec: Any) -> None:
        """Put in its place what torch makes an operator of; it was kept whole to be translated for real numbers."""
        places = [at for at, leaf in enumerate(leaves) if isinstance(leaf, torch.fx.Node)]

        def traced(*values: Any) -> Any:
            given = dict(zip(places, values, strict=True))
            args, kwargs = pytree.tree_unflatten([given.get(at, leaf) for at, leaf in enumerate(leaves)], spec)
            return parts(*args, **kwargs)

        before = node.prev
        result = self._inserted(node, traced, [leaves[at] for at in places])
        for part in _between(before, node):
            self.visit(part)
        self._settle(node, pytree.tree_map(lambda leaf: self.pairs.get(leaf, leaf), result))

    def _operand(self, leaf: Any, operands: list[torch.fx.Node]) -> Callable[[Sequence[Any]], Any]:
        """How an argument is made of the values that are traced; they are collected on the way."""
        pair = self.pairs.get(leaf) if isinstance(leaf, torch.fx.Node) else None
        if pair is not None:
            at = len(operands)
            operands += pair.tensors
            end = len(operands)
            return lambda values: Pair(*values[at:end])
        if isinstance(leaf, torch.fx.Node):
            at = len(operands)
            operands.append(leaf)
            return lambda values: values[at]
        return lambda values: leaf

    def _island(self, node: torch.fx.Node, leaves: Sequence[Any], spec: Any) -> None:
        """Keep the operator: join what enters it, split what leaves it."""
        joined = [self._joined_before(node)(leaf) if isinstance(leaf, torch.fx.Node) else leaf for leaf in leaves]
        node.args, node.kwargs = pytree.tree_unflatten(joined, spec)
        if isinstance(node.meta.get("val"), torch.Tensor) and _holds_complex(node.meta["val"]):
            self.pairs[node] = self._inserted(node.next, _split, [node])

    def _joined_before(self, place: torch.fx.Node) -> Callable[[torch.fx.Node], torch.fx.Node]:
        def joined(node: torch.fx.Node) -> torch.fx.Node:
            pair = self.pairs.get(node)
            if not isinstance(pair, Pair) or node.op == "placeholder":
                return node
            return self._inserted(place, _join, [pair.re, pair.im])

        return joined

    def _settle(self, node: torch.fx.Node, result: Any) -> None:
        """Let ``result`` stand for ``node``: pairs are looked up, real results and sizes take its place."""
        if isinstance(result, torch.fx.Node):
            node.replace_all_uses_with(result)
        elif isinstance(result, int):
            for user in list(node.users):
                user.args, user.kwargs = pytree.tree_map(
                    lambda leaf: result if leaf is node else leaf, (user.args, user.kwargs)
                )
        else:
            self.pairs[node] = result

    def _inserted(self, place: torch.fx.Node, function: Callable[..., Any], operands: Sequence[torch.fx.Node]) -> Any:
        """Trace ``function`` on the values of some nodes, and put what it does before ``place``."""
        values = [node.meta["val"] for node in operands]
        mode = next(value.fake_mode for value in _tensors(values, self.graph))
        shape: list[Any] = []

        def flat(*given: Any) -> list[Any]:
            leaves, spec = pytree.tree_flatten(function(*given))
            shape[:] = [leaves, spec]
            return [part for leaf in leaves for part in (leaf.tensors if isinstance(leaf, Pair) else (leaf,))]

        with mode, enable_python_dispatcher():  # without it, operators of torch (2.13) take no symbols for numbers
            traced = make_fx(flat, decomposition_table=self.decompositions)(*values)
        starts = [node for node in traced.graph.nodes if node.op == "placeholder"]
        with self.graph.inserting_before(place):
            made: Any = self.graph.graph_copy(traced.graph, dict(zip(starts, operands, strict=True)))
        made = iter(made)
        for node in reversed(list(_since(traced, self.graph, place))):
            node.meta.setdefault("stack_trace", place.meta.get("stack_trace"))
            note_value(node)
        leaves, spec = shape
        results = [
            Pair(*(next(made) for _ in leaf.tensors)) if isinstance(leaf, Pair) else next(made) for leaf in leaves
        ]
        return pytree.tree_unflatten(results, spec)


def _parts_of(operator: Any) -> Callable[..., Any] | None:
    """An operator by others, where torch says how."""
    if not isinstance(operator, OpOverload) or operator.overloadpacket is aten.stft:  # torch.onnx translates that
        return None
    decompose: Callable[..., Any] = operator.decompose
    return decompose if is_composite(operator) else get_decompositions([operator]).get(operator)


def _split(value: torch.Tensor) -> Pair:
    real = torch.view_as_real(value)
    return Pair(real.select(-1, 0), real.select(-1, 1))


def _is_plain(node: torch.fx.Node) -> bool:
    """Whether an ``stft`` is of real numbers, in frames as long as the transform."""
    aligned = node.kwargs.get("align_to_window") or node.args[8:] == (True,)
    given = [each.meta["val"] for each in (*node.args, *node.kwargs.values()) if isinstance(each, torch.fx.Node)]
    return not aligned and not _holds_complex(given)


def _squared(node: torch.fx.Node) -> Any:
    """What a node is the square of."""
    if node.target is aten.pow.Tensor_Scalar and node.args[1] == 2:
        return node.args[0]
    return node.args[0] if node.target is aten.mul.Tensor and node.args[0] is node.args[1] else None


def _parts(pair: Pair) -> list[torch.fx.Node]:
    """Both parts, or what has both on its last axis if they are taken from there."""
    parts = [pair.re, pair.im]
    taken = all(part.target is aten.select.int and part.args[1:] == (-1, at) for at, part in enumerate(parts))
    return [pair.re.args[0]] if taken and pair.re.args[0] is pair.im.args[0] else parts


def _power(*parts: torch.Tensor) -> torch.Tensor:
    """The square of the size of numbers of a spectrum; it is no number where one part is none, or infinite."""
    squares = [part * part for part in parts]
    return squares[0] + squares[1] if len(parts) == 2 else squares[0].sum(-1)


def _size(*parts: torch.Tensor) -> torch.Tensor:
    return _power(*(part.double() for part in parts)).sqrt().to(parts[0].dtype)


def _join(re: torch.Tensor, im: torch.Tensor) -> torch.Tensor:
    return torch.view_as_complex(torch.stack([re, im], -1))


def _tensors(values: Sequence[Any], graph: torch.fx.Graph) -> Iterator[Any]:
    """Fake tensors: among some values, else anywhere in a graph."""
    everything = (node.meta.get("val") for node in graph.nodes)
    return (value for value in (*values, *everything) if hasattr(value, "fake_mode"))


def _between(before: torch.fx.Node, after: torch.fx.Node) -> list[torch.fx.Node]:
    """The nodes that lie between two."""
    found = []
    while (before := before.next) is not after:
        found.append(before)
    return found


def _since(traced: torch.fx.GraphModule, graph: torch.fx.Graph, place: torch.fx.Node) -> Iterator[torch.fx.Node]:
    """The nodes that were put before ``place``."""
    node = place
    for _ in range(sum(each.op == "call_function" for each in traced.graph.nodes)):
        node = node.prev
        yield node
