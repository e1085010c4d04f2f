"""Steps that run together, as far as no framework is concerned: the patterns, and two that are operators of ONNX.

A rule looks at a producer whose one result is read once, by the next step of a pattern. What a provider can do in one
kernel it adds as rules of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeAlias

import onnx_ir as ir

from entrepot.ir.table import OpKey
from entrepot.runtime.planning import gelu_pattern
from entrepot.runtime.planning.plan import Block, Step, Value, with_work_of


def fused(block: Block, rules: Rules) -> Block:
    """The block with its patterns replaced, and those of the blocks within it.

    Args:
        block: What is to run.
        rules: Operator of ai.onnx to what is tried on steps of it, in order.
    """
    for step in block.steps:
        step.blocks = {name: fused(inner, rules) for name, inner in step.blocks.items()}
    graph = Neighbours(block)
    for step in list(block.steps):
        if not graph.is_taken(step):
            graph.anchor = step
            for rule in rules.get(step.op_type if step.domain == "" else "", ()):
                rule(graph, step)
    return Block(block.inputs, block.outputs, [step for step in graph.steps() if step not in graph.gone], block.name)


class Neighbours:
    """Which steps read and which step produces each value of one block."""

    def __init__(self, block: Block) -> None:
        self._block = block
        self.anchor: Step | None = None
        """The step that rules look at: what is fused counts as fused into it."""
        self.gone: set[Step] = set()
        self._instead: dict[Step, Step] = {}
        self._reads: Counter[Value] = Counter()
        self._reader: dict[Value, Step] = {}
        self._readers: dict[Value, dict[Step, None]] = {}
        for step in block.steps:
            for value in step.uses():
                self._reads[value] += 1
                self._reader[value] = step
                self._readers.setdefault(value, {})[step] = None
        self._outputs = {value for value in block.outputs if value is not None}
        self._reads.update(value for value in block.outputs if value is not None)
        self._place = {step: index for index, step in enumerate(block.steps)}
        self._made = {value: step for step in block.steps for value in step.outputs if value is not None}

    def is_taken(self, step: Step) -> bool:
        """Whether a step belongs to a pattern that was replaced."""
        return step in self.gone or step in self._instead

    def only_reader(self, step: Step) -> Step | None:
        """The one step that reads the one result of a step; ``None`` when there are more, or it is an output."""
        if len(step.outputs) != 1 or step.outputs[0] is None or self._reads[step.outputs[0]] != 1:
            return None
        reader = self._reader.get(step.outputs[0])
        if reader is None or reader.blocks or self.is_taken(reader):
            return None  # a step that already belongs to a pattern belongs to no other
        return reader

    def readers(self, value: Value | None) -> list[Step]:
        """The steps that read a value; none if it is an output, or one of them is in a pattern or has blocks."""
        found = [] if value is None or value in self._outputs else list(self._readers.get(value, ()))
        return found if found == self.free_readers(value) else []

    def free_readers(self, value: Value | None) -> list[Step]:
        """Those steps that read a value, have no blocks and are in no pattern yet; others may read it too."""
        found = () if value is None else self._readers.get(value, ())
        return [step for step in found if not step.blocks and not self.is_taken(step)]

    def maker(self, value: Value | None) -> Step | None:
        """The step of this block that produces a value."""
        return None if value is None else self._made.get(value)

    def replace(self, steps: list[Step], step: Step) -> None:
        """Put one step where the last of ``steps`` is."""
        step.computes = with_work_of(self.anchor or steps[0], steps, "fused")
        self.gone.update(steps[:-1])
        self._instead[steps[-1]] = step
        for value in step.outputs:
            if value is not None:
                self._made[value] = step

    def steps(self) -> list[Step]:
        """The current steps."""
        return [self._instead.get(step, step) for step in self._block.steps]


def fuse_gelu(graph: Neighbours, function: Step, within: float = gelu_pattern.CLOSE) -> None:
    """Gelu by its steps, around an Erf or a Tanh; ``within`` says how far its constants may be off, relatively."""
    found = gelu_pattern.find(function, graph.maker, graph.only_reader, within)
    if found is not None:
        graph.replace(*found)


def _fuse_swish(graph: Neighbours, sigmoid: Step) -> None:
    """Sigmoid(x) times x, as exporters write it before opset 24."""
    product, x = graph.only_reader(sigmoid), sigmoid.inputs[0]
    if product is None or not product.is_a("Mul") or x is None or x not in product.inputs:
        return
    if x.type is not None and x.type.dtype == ir.DataType.FLOAT:  # narrower types round in between
        graph.replace([sigmoid, product], replace(product, key=OpKey("", "Swish", 24), inputs=[x], attributes={}))


Rule: TypeAlias = Callable[[Neighbours, Step], None]
Rules: TypeAlias = Mapping[str, tuple[Rule, ...]]

RULES: Rules = {"Erf": (fuse_gelu,), "Sigmoid": (_fuse_swish,), "Tanh": (fuse_gelu,)}
"""What exporters spelled out before ONNX had it as one operator."""
