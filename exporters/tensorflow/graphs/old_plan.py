"""What is known of the control flow of TensorFlow 1 before its graph is built again: sides, heads of loops, readers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from entrepot.exporters.tensorflow.graphs.body import Body, Ref, Step, ordered
from entrepot.ir.errors import UnsupportedOpError

SWITCHES = frozenset({"Switch", "RefSwitch"})
MERGES = frozenset({"Merge", "RefMerge"})
_Side = tuple[Ref, int]
"""A condition, and whether it holds."""


@dataclass
class Plan:
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
    def of(cls, body: Body, functions: Sequence[Any]) -> Plan:
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
        if step.op in MERGES:
            return frozenset.intersection(*read)
        return frozenset().union(*read, *waited)

    def _sides_at(self, ref: Ref) -> frozenset[_Side]:
        sides = self.sides.get(ref[0], frozenset())
        if self.op(ref[0]) in SWITCHES and not self.is_of_loop(self.steps[ref[0]]):
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
        raise unclear(merge)

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


def unclear(step: Step) -> UnsupportedOpError:
    """The error for what is on no side of anything, or on both."""
    return UnsupportedOpError(
        "which of two branches a result comes from cannot be told",
        node=f"node '{step.name}' ({step.op} of TensorFlow)",
        hint="build the graph with tf.compat.v1.enable_control_flow_v2()",
    )
