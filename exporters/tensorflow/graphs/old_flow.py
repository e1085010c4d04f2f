"""Control flow of TensorFlow 1 as branches and loops that are functions.

There, a value is sent one way or the other by a Switch and fetched by a Merge, and loops are circles in the graph:
Enter, Merge, Switch, NextIteration, Exit. Here the graph is built once more, from what is asked for backwards: a Merge
is a ``tf.cond`` whose branches are what comes from either side of a Switch, an Exit is a ``tf.while_loop``, and what
neither of both concerns is copied node by node. Arrays of tensors become lists.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from entrepot.exporters.tensorflow.graphs.body import Body, Ref, Step, of_graph
from entrepot.exporters.tensorflow.graphs.old_arrays import ARRAYS, array_value
from entrepot.exporters.tensorflow.graphs.old_plan import MERGES, SWITCHES, Plan, unclear
from entrepot.ir.errors import ConversionError

_OLD = frozenset({"Switch", "Merge", "Enter", "Exit", "NextIteration", "LoopCond", "RefSwitch", "RefMerge"})


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
    plan = Plan.of(body, functions)
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
        self, plan: Plan, graph: Any, outer: _Scope | None = None, inside: Iterable[str] = (),
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
        if step.op in MERGES:
            condition, yes, no = self._plan.condition(step)
            return ([yes if self._assumed[condition] else no]) if condition in self._assumed else [condition]
        return step.inputs[:1] if step.op in SWITCHES else step.inputs

    def _make(self, ref: Ref) -> None:
        if not self._is_inside(ref[0]):
            assert self._outer is not None
            self._known[ref] = self._outer.value(ref)
            return
        step = self._plan.steps[ref[0]]
        if step.op == "Exit":
            self._loop(step)
        elif step.op in MERGES:
            self._known[ref] = self._merged(step)
        elif step.op in SWITCHES:
            if self._plan.decides(step) not in self._assumed:
                raise unclear(step)
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
        switches = [step.name for step in steps if step.op in SWITCHES and self._plan.decides(step) == condition]
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
        heads = [step for step in steps.values() if step.op in MERGES and self._plan.is_head(step)]
        heads = [step for step in heads if _frame_of(steps[step.inputs[0][0]]) == frame]
        starts = [self.value(step.inputs[0]) for step in heads]
        switches = {steps[name].inputs[0][0]: steps[name] for head in heads for name in self._plan.readers[head.name]
                    if steps[name].op in SWITCHES}  # fmt: skip
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


def _copied(plan: Plan, step: Step, given: Sequence[Any]) -> Sequence[Any]:
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
