"""Steps that run together: a product or convolution with what follows it, and results written over dead operands.

A rule looks at a producer whose one result is read once, by the next step of a pattern. The result is a step of its
own, bound at once; where it cannot bind, nothing changes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import onnx_ir as ir

from entrepot.ir.table import OpKey
from entrepot.runtime.plan import FUSED, Block, Call, Step, Value, with_work_of
from entrepot.runtime.providers.cpu import epilogues, gelu_pattern
from entrepot.runtime.providers.cpu.bind import view
from entrepot.runtime.providers.cpu.linear import linear
from entrepot.runtime.providers.cpu.prepared.conv import conv_with
from entrepot.runtime.providers.cpu.prepared.matmul import gemm_with
from entrepot.runtime.types import Type


def fused(block: Block) -> Block:
    """The block with its patterns replaced, and those of the blocks within it."""
    for step in block.steps:
        step.blocks = {name: fused(inner) for name, inner in step.blocks.items()}
    graph = _Graph(block)
    for step in list(block.steps):
        if step not in graph.gone:
            graph.anchor = step
            for rule in _RULES.get(step.op_type if step.domain == "" else "", ()):
                rule(graph, step)
    return Block(block.inputs, block.outputs, [step for step in graph.steps() if step not in graph.gone], block.name)


class _Graph:
    """Which steps read and which step produces each value of one block."""

    def __init__(self, block: Block) -> None:
        self._block = block
        self.anchor: Step | None = None
        """The step that rules look at: what is fused counts as fused into it."""
        self.gone: set[Step] = set()
        self._instead: dict[Step, Step] = {}
        self._reads: Counter[Value] = Counter()
        self._reader: dict[Value, Step] = {}
        for step in block.steps:
            for value in step.uses():
                self._reads[value] += 1
                self._reader[value] = step
        self._reads.update(value for value in block.outputs if value is not None)
        self._place = {step: index for index, step in enumerate(block.steps)}
        self._made = {value: step for step in block.steps for value in step.outputs if value is not None}

    def only_reader(self, step: Step) -> Step | None:
        """The one step that reads the one result of a step; ``None`` when there are more, or it is an output."""
        if len(step.outputs) != 1 or step.outputs[0] is None or self._reads[step.outputs[0]] != 1:
            return None
        reader = self._reader.get(step.outputs[0])
        if reader is None or reader.blocks or reader in self.gone or reader in self._instead:
            return None  # a step that already belongs to a pattern belongs to no other
        return reader

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


def _tail(graph: _Graph, step: Step) -> tuple[Step | None, epilogues.Activation | None]:
    """The activation that follows a step, if one does that can work in place."""
    after = graph.only_reader(step)
    activation = None if after is None else epilogues.activation(after)
    return (after, activation) if activation is not None else (None, None)


def _fuse_conv(graph: _Graph, conv: Step) -> None:
    """Conv, then Add of a tensor of its result's shape, then an activation; each of the two may be missing."""
    steps, residual = [conv], None
    added = graph.only_reader(conv)
    if added is not None and added.is_a("Add"):
        residual = _other(added, conv)
        if residual is None or residual.constant is not None or not _same_shape(residual.type, conv.outputs[0]):
            residual = None
        else:
            steps.append(added)
    after, activation = _tail(graph, steps[-1])
    if after is not None:
        steps.append(after)
    if len(steps) == 1:
        return
    function = conv_with(view(conv), epilogues.of_tile(residual is not None, activation))
    if function is None:
        return
    inputs = [*conv.inputs, *[None] * (3 - len(conv.inputs)), *([] if residual is None else [residual])]
    graph.replace(steps, _step(steps, inputs, _checked(function) if residual is not None else function))


def _checked(function: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    """The pattern relies on declared shapes; a residual that would broadcast after all is refused, not mangled."""

    def conv_add(X: np.ndarray, W: np.ndarray, B: np.ndarray | None, residual: np.ndarray) -> np.ndarray:
        y = function(X, W, B, residual)
        if y.shape != residual.shape:
            raise ValueError(f"declared shapes are wrong: {y.shape} and {residual.shape} should be equal")
        return y

    return conv_add


def _fuse_gemm(graph: _Graph, gemm: Step) -> None:
    """Gemm with constant weights, then an activation."""
    after, activation = _tail(graph, gemm)
    if after is None or activation is None:
        return
    function = gemm_with(view(gemm), activation, epilogues.floor(after))
    if function is not None:
        graph.replace([gemm, after], _step([gemm, after], list(gemm.inputs), function))


def _fuse_matmul(graph: _Graph, product: Step) -> None:
    """MatMul by a constant matrix, then Add of a constant row, then an activation or Add of a like tensor."""
    weight = product.inputs[1]
    added = graph.only_reader(product)
    if weight is None or not isinstance(weight.constant, np.ndarray) or added is None or not added.is_a("Add"):
        return
    bias = _other(added, product)
    if bias is None or not isinstance(bias.constant, np.ndarray):
        return
    steps = [product, added]
    residual = None
    after, activation = _tail(graph, added)
    if after is not None:
        steps.append(after)
    else:
        second = graph.only_reader(added)
        residual = None if second is None or not second.is_a("Add") else _other(second, added)
        if second is not None and residual is not None and _same_shape(residual.type, added.outputs[0]):
            steps.append(second)
        else:
            residual = None
    function = linear(weight.constant, bias.constant, activation)
    if function is not None:
        inputs = [product.inputs[0], weight, bias, *([] if residual is None else [residual])]
        graph.replace(steps, _step(steps, inputs, function))


def _fuse_gelu(graph: _Graph, erf: Step) -> None:
    found = gelu_pattern.find(erf, graph.maker, graph.only_reader)
    if found is not None:
        graph.replace(*found)


def _fuse_swish(graph: _Graph, sigmoid: Step) -> None:
    """Sigmoid(x) times x, as exporters write it before opset 24."""
    product, x = graph.only_reader(sigmoid), sigmoid.inputs[0]
    if product is None or not product.is_a("Mul") or x is None or x not in product.inputs:
        return
    if x.type is not None and x.type.dtype == ir.DataType.FLOAT:  # narrower types round in between
        graph.replace([sigmoid, product], replace(product, key=OpKey("", "Swish", 24), inputs=[x], attributes={}))


def _other(added: Step, step: Step) -> Value | None:
    """The operand of a commutative step that is not the result of ``step``."""
    left, right = added.inputs
    return right if left is step.outputs[0] else left


def _same_shape(known: Type | None, value: Value | None) -> bool:
    """Whether two values certainly have one shape: every axis is declared, and declared alike."""
    other = None if value is None else value.type
    if known is None or other is None or known.shape is None or known.dtype != other.dtype:
        return False
    return None not in known.shape and known.shape == other.shape


def _step(steps: list[Step], inputs: list[Value | None], function: Callable[..., object]) -> Step:
    """One step for several: it reads ``inputs`` and produces what the last of them did."""
    name = "_".join(step.op_type.lower() for step in steps)
    function.__name__ = name
    last = steps[-1]
    return replace(
        last,
        key=OpKey(FUSED, "".join(step.op_type for step in steps), 1),
        inputs=inputs,
        attributes={},
        blocks={},
        where=" with ".join(step.where for step in steps),
        call=Call(function, "fused"),
    )


_RULES: dict[str, tuple[Callable[[_Graph, Step], None], ...]] = {
    "Erf": (_fuse_gelu,),
    "Sigmoid": (_fuse_swish,),
    "Conv": (_fuse_conv,),
    "Gemm": (_fuse_gemm,),
    "MatMul": (_fuse_matmul,),
}
