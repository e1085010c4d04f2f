"""One conversion: every node is walked through its steps and replaced by what the adapters write."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import onnx_ir as ir

from entrepot.ir.errors import DEFECT, MALFORMED, ConversionError, EntrepotError, describe_node
from entrepot.ir.opset import DEFAULT, ir_version
from entrepot.ir.opset.builder import OpBuilder
from entrepot.ir.opset.names import Names
from entrepot.ir.opset.place import ReadersFirstError, Surroundings
from entrepot.ir.opset.rules import Rule, Step, find, find_vanished, route
from entrepot.ir.opset.schemas import CEILINGS, canonical, since
from entrepot.ir.opset.scopes import Scope, callers_first, scopes, stamp
from entrepot.ir.opset.settle import settle
from entrepot.ir.opset.values import Known
from entrepot.ir.subgraphs import subgraphs, with_subgraphs
from entrepot.ir.traits import traits_of
from entrepot.ir.typing.query import Types
from entrepot.ir.typing.spec import Spec


class Conversion:
    """One conversion: a graph that is changed, and the reasons found against it.

    Args:
        graph: What is converted; nobody else may have it.
        targets: Versions by domain.
        names: Gives names that are new, where the graph is only a part of what they must be new to.
    """

    def __init__(self, graph: ir.Model, targets: Mapping[str, int], names: Names | None = None) -> None:
        self.result = graph
        self.blockers: list[EntrepotError] = []
        self._targets = targets
        self._names = names or Names(self.result)
        self._graph_name: str | None = None
        self._calls: dict[tuple[str, str, str], list[list[Spec]]] = {}
        self._origins: dict[ir.Node, tuple[ir.Node, int | None]] = {}
        self._touched: list[ir.Node] = []
        self._lowered = False
        self._postponed: dict[ir.Node, tuple[int, int, ConversionError]] = {}
        self._around: Surroundings
        self._opsets: dict[str, int] = {}

    def run(self) -> None:
        """Convert ``result`` in place; if there are ``blockers`` afterwards, it is unusable."""
        read = _read_weights(self.result)
        for scope in callers_first(self.result):
            self._scope(scope)
        if self.blockers:
            return
        _drop_unread(read)
        wrote_standard = any(not node.domain for node in self._touched)
        for scope in scopes(self.result):
            stamp(scope, self._targets)
            if wrote_standard and "ai.onnx" not in scope.opset_imports:
                scope.opset_imports.setdefault("", self._around.targets.get("", DEFAULT))
        for node in self._touched:
            node.version = None
        ir_version.restamp(self.result, self._names, lowered=self._lowered)

    def run_on(self, nodes: Iterable[ir.Node], types: Types) -> bool:
        """Convert some nodes of the main graph and nothing else; whether they could all be converted in order.

        Args:
            nodes: Every node that may change, in the order of the graph.
            types: What is known of the values around them.
        """
        self._opsets = dict(types.opsets)
        self._around = Surroundings(
            self._names, types.known, types, {**self._opsets, **self._targets}, self.result.graph, self._touched
        )
        self._nodes(nodes)
        for node in self._touched:
            node.version = None
        return not (self.blockers or self._postponed)

    def _scope(self, scope: Scope) -> None:
        imports = {**self.result.graph.opset_imports, **scope.opset_imports}
        self._opsets = {canonical(domain): version for domain, version in imports.items()}
        self._lowered |= any(self._opsets.get(domain, 0) > version for domain, version in self._targets.items())
        too_new = [domain for domain in CEILINGS if self._opsets.get(domain, 0) > CEILINGS[domain]]
        if too_new:
            self._block_scope(scope, too_new[0])
            return
        self._graph_name = scope.name
        types = Types(Known(self.result.ir_version), self._opsets, self.result.functions)
        if isinstance(scope, ir.Function):
            types.assume_call(scope, self._calls.get(scope.identifier(), ()))
        main = scope if isinstance(scope, ir.Graph) else None
        self._around = Surroundings(
            self._names, types.known, types, {**self._opsets, **self._targets}, main, self._touched
        )
        self._note_calls(scope, types)
        self._nodes(scope)
        self._revisit()

    def _note_calls(self, scope: Scope, types: Types) -> None:
        """What functions are called with, read before conversion: nothing else tells their inputs' types."""
        if self.result.functions:
            for node in scope.all_nodes():
                name = (node.domain, node.op_type, node.overload)
                if name in self.result.functions:
                    self._calls.setdefault(name, []).append([types.spec(value) for value in node.inputs])

    def _revisit(self) -> None:
        """Return to the nodes that waited for their readers, last ones first."""
        while self._postponed:
            waiting, self._postponed = self._postponed, {}
            self._nodes(reversed(waiting))
            if len(self._postponed) == len(waiting):
                for node, (version, target, error) in self._postponed.items():
                    self._block(node, version, target, error)
                self._postponed = {}

    def _block_scope(self, scope: Scope, domain: str) -> None:
        have, most = self._opsets[domain], CEILINGS[domain]
        self.blockers.append(
            ConversionError(
                f"it is written for {domain or 'ai.onnx'} {have}; this entrepot knows versions up to {most}",
                graph=scope.name,
                hint="update entrepot, or export the model at an older opset",
            )
        )

    def _nodes(self, nodes: Iterable[ir.Node]) -> None:
        """Convert nodes and, after each, the nodes that replaced it; a body is converted before its node."""
        for first in nodes:
            stack = [first]
            while stack:
                node = stack.pop()
                if node.domain or traits_of(node).control_flow:  # other domains may have more
                    if not node.domain:
                        self._around.types.carry(node)
                        if self._lowered and node.op_type == "Scan":
                            _state_results(node, self._around.types)
                    for body in subgraphs(node):
                        self._nodes(body)
                stack.extend(reversed(self._node(node)))

    def _node(self, node: ir.Node) -> list[ir.Node]:
        target = self._targets.get(node.domain)
        version = node.version or self._opsets.get(node.domain, 0)
        fresh = node in self._origins
        if target is None or (version == target and not fresh):
            return []
        start = since(node.domain, node.op_type, version)
        if not start:
            return self._unknown(node, version, target)
        stop = since(node.domain, node.op_type, target)
        if start == stop and not fresh:
            return []
        try:
            for step in route(node.domain, node.op_type, start, stop):
                replaced = self._step(node, step, _rule(step))
                if replaced is not None:
                    return replaced
            return self._settle(node, target, descending=target < self._opsets.get(node.domain, target))
        except ReadersFirstError as error:
            self._postponed[node] = (version, target, error)
        except ConversionError as error:
            self._block(node, version, target, error)
        return []

    def _step(self, node: ir.Node, step: Step, rule: Rule) -> list[ir.Node] | None:
        reading = step.stop if step.stop > step.start else step.start - 1
        op = OpBuilder(node, reading, self._around, step.domain, since=step.start)
        try:
            result = rule(op, node)
        except ConversionError:
            raise
        except MALFORMED as error:
            raise op.refusal(f"it is not a valid node ({type(error).__name__}: {error})", hint=DEFECT) from error
        if result is None:
            self._origins.setdefault(node, (node, step.start))
            node.version = reading
            self._touched.append(node)
            _insert(node, op.emitted)
            self._adopt(node, op.emitted)
            return [*op.emitted, node] if op.emitted else None
        return self._replace(node, op, [result] if isinstance(result, ir.Value) else list(result))

    def _settle(self, node: ir.Node, target: int, *, descending: bool) -> list[ir.Node]:
        op = OpBuilder(node, target, self._around, node.domain)
        result = settle(op, node, descending=descending)
        return [] if result is None else self._replace(node, op, list(result))

    def _replace(self, node: ir.Node, op: OpBuilder, results: list[ir.Value | None]) -> list[ir.Node]:
        """Put what the adapter wrote in the node's place; every output keeps its name, type and metadata."""
        made = {output for item in op.emitted for output in item.outputs}
        given: set[ir.Value] = set()
        pairs: list[tuple[ir.Value, ir.Value]] = []
        missing = [None] * (len(node.outputs) - len(results))
        for old, new in zip(node.outputs, [*results, *missing], strict=False):
            if not old.name or (new is None and not op.used(old.index() or 0)):
                if new is not None and new in made and not new.uses():
                    new.name = ""  # this output was not named, and naming it can change what an operator does
                continue
            if new is None:
                op.refuse(f"its output '{old.name}' has no counterpart")
            if new.is_initializer() and new not in made and not old.is_graph_output():
                old.replace_all_uses_with(new)
                continue
            final = new if new in made and new not in given else op.standard.Identity(new)
            given.add(final)
            pairs.append((old, final))
        _insert(node, op.emitted)
        self._adopt(node, op.emitted)
        types = self._around.types
        for old, final in pairs:
            if self._lowered and old.shape is None:  # what replaces it may be harder to follow
                types.remember(final, types.spec(old))
            _take_over(old, final)
        _bear_name(node, pairs)
        node.graph.remove(node, safe=True)  # type: ignore[union-attr]
        return op.emitted

    def _adopt(self, node: ir.Node, emitted: list[ir.Node]) -> None:
        origin = self._origins.get(node) or (node, node.version or self._opsets.get(node.domain))
        for item in emitted:
            self._origins[item] = origin
            for body in subgraphs(item):
                self._origins.update(dict.fromkeys((inner for inner in body.all_nodes() if inner.version), origin))

    def _unknown(self, node: ir.Node, version: int, target: int) -> list[ir.Node]:
        """A node that no schema of its opset describes: a call of a local function, or an experimental operator."""
        if (node.domain, node.op_type, node.overload) in self.result.functions:
            return []
        found = None if node.domain else find_vanished(node.op_type)
        try:
            if found is None:
                raise ConversionError(f"{node.domain or 'ai.onnx'} {version} has no operator of this name")  # noqa: TRY301
            rule, reading = found
            return self._step(node, Step("", node.op_type, 0, reading), rule) or []
        except ConversionError as error:
            self._block(node, version, target, error)
            return []

    def _block(self, node: ir.Node, version: int, target: int, error: ConversionError) -> None:
        described = describe_node(*self._origins.get(node, (node, version)))
        inner = f"its {node.op_type}: " if node in self._origins and node.op_type not in described else ""
        blocker = ConversionError(
            f"{inner}{error.message} (on the way from opset {version} to {target})",
            graph=self._graph_name,
            node=described,
            hint=error.hint,
        )
        if str(blocker) not in map(str, self.blockers[-8:]):
            self.blockers.append(blocker)


def _rule(step: Step) -> Rule:
    rule = find(step)
    if rule is None:
        stop = f"opset {step.start - 1}, where it does not exist" if step.stop == 0 else f"version {step.stop}"
        raise ConversionError(f"no rule takes {step.op_type} from version {step.start} to {stop}")
    return rule


def _read_weights(model: ir.Model) -> list[ir.Value]:
    """The initializers that something reads."""
    graphs = (model.graph, *(function.graph for function in model.functions.values()))
    return [value for graph in with_subgraphs(*graphs) for value in graph.initializers.values() if value.uses()]


def _drop_unread(weights: Iterable[ir.Value]) -> None:
    """Remove those that nothing reads any more, such as axes that became an attribute: runtimes warn of each."""
    for value in weights:
        graph = value.graph
        if graph is not None and not (value.uses() or value.is_graph_output() or value.is_graph_input()):
            graph.initializers.pop(value.name or "", None)


def _state_results(scan: ir.Node, types: Types) -> None:
    """Write the shapes of a body's results down: onnxruntime wants them, and not every operator lets it infer them."""
    for output in scan.attributes["body"].as_graph().outputs:
        found = types.spec(output)
        if output.shape is None and found.shape is not None:
            output.type, output.shape = found.type, ir.Shape([d if isinstance(d, int) else None for d in found.shape])


def _insert(node: ir.Node, emitted: list[ir.Node]) -> None:
    if emitted:
        node.graph.insert_before(node, emitted)  # type: ignore[union-attr]


def _take_over(old: ir.Value, new: ir.Value) -> None:
    new.type, new.shape, new.doc_string = old.type or new.type, old.shape, old.doc_string
    new.metadata_props.update(old.metadata_props)
    new.meta.update(old.meta)
    old.replace_all_uses_with(new, replace_graph_outputs=True)
    new.name = old.name


def _bear_name(node: ir.Node, pairs: list[tuple[ir.Value, ir.Value]]) -> None:
    """The node that produces the first output takes the old node's name."""
    if pairs and node.name and (producer := pairs[0][1].producer()) is not None:
        producer.name, producer.doc_string = node.name, node.doc_string
