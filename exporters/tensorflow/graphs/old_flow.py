"""Control flow of TensorFlow 1 as branches and loops that are functions.

There, a value is sent one way or the other by a Switch and fetched by a Merge, and loops are circles in the graph:
Enter, Merge, Switch, NextIteration, Exit. Here the graph is built once more, from what is asked for backwards: a Merge
is a ``tf.cond`` whose branches are what comes from either side of a Switch, an Exit is a ``tf.while_loop``, and what
neither of both concerns is copied node by node. Arrays of tensors become lists.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import tensorflow as tf

from entrepot.exporters.tensorflow.graphs.body import Body, Ref, Step, of_graph, ordered
from entrepot.exporters.tensorflow.graphs.old_arrays import ARRAYS, array_value
from entrepot.ir.errors import ConversionError, UnsupportedOpError

_OLD = frozenset({"Switch", "Merge", "Enter", "Exit", "NextIteration", "LoopCond", "RefSwitch", "RefMerge"})
_SWITCHES = frozenset({"Switch", "RefSwitch"})
_MERGES = frozenset({"Merge", "RefMerge"})
_Side = tuple[Ref, int]
"""A condition, and whether it holds."""


def has_old_flow(body: Body) -> bool:
    """Whether there is anything to be done."""
    return any(step.op in _OLD or step.op in ARRAYS for step in body.steps)


def functional(body: Body, types: Sequence[tf.DType], functions: Sequence[Any]) -> tuple[Body, list[Any]]:
    """A body without the control flow of TensorFlow 1.

    Args:
        body: What is built again.
        types: Of its arguments.
        functions: Definitions of those that it calls.

    Returns:
        It, and the definitions of the functions that branches and loops became.

    Raises:
        UnsupportedOpError: Which branch a result comes from cannot be told.
        ConversionError: TensorFlow does not take what becomes of it.
    """
    plan = _Plan.of(body, functions)
    graph = tf.compat.v1.wrap_function(lambda: None, []).graph
    with graph.as_default():
        given = {
            ref: tf.compat.v1.placeholder(dtype, name=ref[0]) for ref, dtype in zip(body.arguments, types, strict=True)
        }
        whole = _Scope(plan, graph, known=given)
        try:
            found = [tf.identity(whole.value(ref)) for ref in body.results]
        except (ValueError, TypeError, tf.errors.OpError) as error:
            raise ConversionError(f"its control flow is not that of TensorFlow 1: {error}") from error
    definition = graph.as_graph_def()
    results = [(tensor.op.name, tensor.value_index) for tensor in found]
    return of_graph(body.name, definition.node, body.arguments, results), list(definition.library.function)


@dataclass
class _Plan:
    """What is known of the graph before it is built again.

    Attributes:
        steps: By name.
        functions: Definitions of those that it calls.
        readers: Who reads a step, by its name.
        sides: On which side of which conditions each step is.
    """

    steps: Mapping[str, Step]
    functions: Sequence[Any]
    readers: Mapping[str, list[str]]
    sides: dict[str, frozenset[_Side]] = field(default_factory=dict)

    @classmethod
    def of(cls, body: Body, functions: Sequence[Any]) -> _Plan:
        """That of a body."""
        steps = {step.name: step for step in body.steps}
        readers = defaultdict(list)
        for step in body.steps:
            for name, _ in step.inputs:
                readers[name].append(step.name)
        plan = cls(steps, functions, readers)
        forwards = [replace(step, inputs=plan.forwards(step)) for step in steps.values()]
        for step in ordered(forwards):
            plan.sides[step.name] = plan.sides_of(step)
        return plan

    def forwards(self, step: Step) -> tuple[Ref, ...]:
        """What a step reads, without what closes a circle."""
        return tuple(ref for ref in step.inputs if self.op(ref[0]) != "NextIteration")

    def op(self, name: str) -> str:
        """The operator of a step; nothing for an argument."""
        return self.steps[name].op if name in self.steps else ""

    def sides_of(self, step: Step) -> frozenset[_Side]:
        """Those of all that it reads; a Merge is on those that both of its sides have in common."""
        read = [self._sides_at(ref) for ref in step.inputs]
        waited = [self._sides_at((name, 0)) for name in step.controls]
        if step.op in _MERGES:
            return frozenset.intersection(*read)
        return frozenset().union(*read, *waited)

    def _sides_at(self, ref: Ref) -> frozenset[_Side]:
        sides = self.sides.get(ref[0], frozenset())
        if self.op(ref[0]) in _SWITCHES and not self.is_of_loop(self.steps[ref[0]]):
            return sides | {(self.decides(self.steps[ref[0]]), ref[1])}
        return sides

    def decides(self, switch: Step) -> Ref:
        """What a Switch depends on, itself and not a copy of it."""
        ref = switch.inputs[1]
        while self.op(ref[0]) == "Identity":
            ref = self.steps[ref[0]].inputs[0]
        return ref

    def is_of_loop(self, switch: Step) -> bool:
        """Whether a Switch says if there is another turn."""
        return self.op(switch.inputs[1][0]) == "LoopCond"

    def is_head(self, merge: Step) -> bool:
        """Whether a Merge begins a turn of a loop."""
        return any(self.op(name) == "NextIteration" for name, _ in merge.inputs)

    def condition(self, merge: Step) -> tuple[Ref, Ref, Ref]:
        """What a Merge depends on, and what it is if that holds, and if it does not."""
        first, second = (self._sides_at(ref) for ref in merge.inputs)
        for condition, side in sorted(first):
            if (condition, 1 - side) in second:
                yes, no = merge.inputs if side else merge.inputs[::-1]
                return condition, yes, no
        raise _unclear(merge)

    def after(self, names: Iterable[str]) -> set[str]:
        """All steps that depend on some, themselves included, but not what comes after a loop that they are in."""
        waiting = list(names)
        found = set(waiting)
        while waiting:
            for reader in self.readers.get(waiting.pop(), ()):
                if reader not in found and self.steps[reader].op != "NextIteration":
                    found.add(reader)
                    waiting.append(reader)
        return found


class _Scope:
    """The graph, a branch or a turn of a loop that is being built.

    Args:
        plan: What is built.
        graph: Where its nodes go.
        outer: Around it.
        inside: The steps that are in it; without them, all.
        known: Results that it is given.
        assumed: Conditions of which it is the one side.
    """

    def __init__(
        self, plan: _Plan, graph: Any, outer: _Scope | None = None, inside: Iterable[str] = (),
        known: Mapping[Ref, Any] | None = None, assumed: Mapping[Ref, int] | None = None,
    ) -> None:  # fmt: skip
        self._plan, self._graph, self._outer, self._inside = plan, graph, outer, frozenset(inside)
        self._known: dict[Ref, Any] = dict(known or {})
        self._assumed = dict(assumed or {})

    def value(self, ref: Ref) -> Any:
        """A result, built if it is not there yet, with all that it depends on."""
        waiting = [ref]
        while waiting:
            top = waiting[-1]
            missing = [each for each in self._needed(top) if each not in self._known] if top not in self._known else []
            waiting += missing
            if not missing:
                waiting.pop()
                if top not in self._known:
                    self._make(top)
        return self._known[ref]

    def _is_inside(self, name: str) -> bool:
        return self._outer is None or name in self._inside or self._plan.op(name) == "Const"

    def _needed(self, ref: Ref) -> Sequence[Ref]:
        """What has to be there before, apart from what branches and loops look for themselves."""
        if not self._is_inside(ref[0]) or self._plan.op(ref[0]) == "Exit":
            return ()
        step = self._plan.steps[ref[0]]
        if step.op in _MERGES:
            condition, yes, no = self._plan.condition(step)
            return ([yes if self._assumed[condition] else no]) if condition in self._assumed else [condition]
        return step.inputs[:1] if step.op in _SWITCHES else step.inputs

    def _make(self, ref: Ref) -> None:
        if not self._is_inside(ref[0]):
            assert self._outer is not None
            self._known[ref] = self._outer.value(ref)
            return
        step = self._plan.steps[ref[0]]
        if step.op == "Exit":
            self._loop(step)
        elif step.op in _MERGES:
            self._known[ref] = self._merged(step)
        elif step.op in _SWITCHES:
            if self._plan.decides(step) not in self._assumed:
                raise _unclear(step)
            self._known[ref] = self._known[step.inputs[0]]
        elif step.op in ("Enter", "NextIteration", "LoopCond", "Identity"):
            self._known[ref] = self._known[step.inputs[0]]
        else:
            self._copy(step)

    def _copy(self, step: Step) -> None:
        given = [self._known[ref] for ref in step.inputs]
        with self._graph.as_default():
            if step.op in ARRAYS:
                found = array_value(step, given)
            else:
                found = _copied(self._plan, step, given)
        self._known |= {(step.name, at): value for at, value in enumerate(found)}

    # branches --------------------------------------------------------------------------------------------------------

    def _merged(self, merge: Step) -> Any:
        condition, yes, no = self._plan.condition(merge)
        if condition in self._assumed:
            return self._known[yes if self._assumed[condition] else no]
        steps = self._plan.steps.values()
        switches = [step.name for step in steps if step.op in _SWITCHES and self._plan.decides(step) == condition]
        inside = self._plan.after([*switches, *self._waiting_for(condition)])

        def branch(side: int, ref: Ref) -> Any:
            graph = tf.compat.v1.get_default_graph()
            scope = _Scope(self._plan, graph, self, inside & self._mine(), None, {**self._assumed, condition: side})
            return tf.identity(scope.value(ref))

        with self._graph.as_default():
            holds = tf.reshape(self._known[condition], [])
            return tf.cond(holds, lambda: branch(1, yes), lambda: branch(0, no), name=merge.name)

    def _waiting_for(self, condition: Ref) -> list[str]:
        """Steps without inputs that are on one side of a condition: constants of a branch."""
        sides = self._plan.sides
        return [name for name, found in sides.items() if any(each == condition for each, _ in found)]

    def _mine(self) -> frozenset[str]:
        return self._inside if self._outer is not None else frozenset(self._plan.steps)

    # loops -----------------------------------------------------------------------------------------------------------

    def _loop(self, end: Step) -> None:
        """The loop that an Exit leaves, with all that it returns."""
        steps = self._plan.steps
        frame = self._frame(end)
        heads = [step for step in steps.values() if step.op in _MERGES and self._plan.is_head(step)]
        heads = [step for step in heads if _frame_of(steps[step.inputs[0][0]]) == frame]
        starts = [self.value(step.inputs[0]) for step in heads]
        switches = {steps[name].inputs[0][0]: steps[name] for head in heads for name in self._plan.readers[head.name]
                    if steps[name].op in _SWITCHES}  # fmt: skip
        going = steps[next(iter(switches.values())).inputs[1][0]]
        inside = self._plan.after(head.name for head in heads)

        def turn(values: Sequence[Any]) -> _Scope:
            known = {(head.name, 0): value for head, value in zip(heads, values, strict=True)}
            known |= {
                (switches[head.name].name, 1): value
                for head, value in zip(heads, values, strict=True) if head.name in switches
            }  # fmt: skip
            return _Scope(self._plan, tf.compat.v1.get_default_graph(), self, inside, known, self._assumed)

        ranks = [_open(each.shape) for each in starts]

        def after(*values: Any) -> list[Any]:
            scope = turn(values)
            found = [scope.value(steps[head.inputs[1][0]].inputs[0]) for head in heads]
            for value, shape in zip(found, ranks, strict=True):
                value.set_shape(shape)  # TensorFlow 1 takes no other
            return found

        with self._graph.as_default():
            found = tf.while_loop(
                lambda *values: turn(values).value(going.inputs[0]), after, starts,
                shape_invariants=ranks, name=end.name,
            )  # fmt: skip
        for head, value in zip(heads, found, strict=True):
            for reader in self._plan.readers[switches[head.name].name] if head.name in switches else ():
                if steps[reader].op == "Exit":
                    self._known[(reader, 0)] = value

    def _frame(self, end: Step) -> str:
        steps = self._plan.steps
        head = steps[steps[end.inputs[0][0]].inputs[0][0]]
        return _frame_of(steps[head.inputs[0][0]])


def _frame_of(enter: Step) -> str:
    return str(enter.attributes["frame_name"].s.decode())


def _open(shape: tf.TensorShape) -> tf.TensorShape:
    """As many axes, of any size."""
    return shape if shape.rank is None else tf.TensorShape([None] * shape.rank)


def _copied(plan: _Plan, step: Step, given: Sequence[Any]) -> Sequence[Any]:
    """The node once more, reading other tensors."""
    single = tf.compat.v1.GraphDef()
    single.versions.producer = tf.version.GRAPH_DEF_VERSION
    single.library.function.extend(plan.functions)
    node = single.node.add(name=step.name, op=step.op)
    for name, value in step.attributes.items():
        if name != "_class":
            node.attr[name].CopyFrom(value)
    node.input.extend(f"given_{at}:0" for at in range(len(given)))
    graph: Any = tf.compat.v1.get_default_graph()
    mapped = {f"given_{at}:0": graph.capture(each) for at, each in enumerate(given)}
    (made,) = tf.graph_util.import_graph_def(single, mapped, return_elements=[step.name], name="")
    return list(made.outputs)


def _unclear(step: Step) -> UnsupportedOpError:
    return UnsupportedOpError(
        "which of two branches a result comes from cannot be told",
        node=f"node '{step.name}' ({step.op} of TensorFlow)",
        hint="build the graph with tf.compat.v1.enable_control_flow_v2()",
    )
