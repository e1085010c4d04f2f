"""A graph made ready to run: steps in order, constants known, nothing superfluous."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import onnx
import onnx_ir as ir

from entrepot.ir.table import OpKey
from entrepot.ir.traits import Traits, traits
from entrepot.ir.typing.plain import Type

FUSED = "entrepot.fused"
"""Domain of steps that do the work of several; their results are always memory of their own."""


@dataclass(eq=False)
class Value:
    """What one step produces and others use; two values are the same only if they are the same object.

    Attributes:
        name: Its ONNX name, prefixed by the calling node inside an inlined function.
        type: What is known of it.
        constant: Its value if it is the same in every run.
    """

    name: str
    type: Type | None = None
    constant: Any = None


@dataclass(eq=False)
class Step:
    """One operator applied once: a node with its attributes resolved and its subgraphs lowered.

    Attributes:
        key: Operator and the version that gives its meaning.
        inputs: ``None`` for an absent optional input.
        outputs: ``None`` for an output that was not asked for.
        attributes: Python values and arrays; only those the node carries.
        blocks: Lowered subgraphs by attribute name, of control flow.
        graphs: Subgraphs of other operators, as their function bodies take them.
        where: The node for messages, as ``describe_node`` gives it.
        origin: The node of the main graph that it comes from, described the same way.
        computes: Nodes of the main graph whose work it does: the one that it is, or is a part of, with nothing; others
            with how they came to it: ``fused``, ``absorbed``, ``merged``.
        name: Name of the node.
        metadata: What the node notes about itself: ``entrepot.module``, the part of the source model that it is from,
            and ``entrepot.source``, the file and line.
        opset: Version of the domain that the node was written for.
        on_host: Whether it runs on the host, on NumPy arrays, wherever the other steps run.
        host_results: Of control flow on a device, the positions of results that its bodies compute on the host.
        call: What runs it, once bound by a provider.
    """

    key: OpKey
    inputs: list[Value | None]
    outputs: list[Value | None]
    attributes: dict[str, Any] = field(default_factory=dict)
    blocks: dict[str, Block] = field(default_factory=dict)
    graphs: dict[str, onnx.GraphProto] = field(default_factory=dict)
    where: str = ""
    origin: str = ""
    name: str = ""
    opset: int = 1
    computes: dict[ir.Node, str] = field(default_factory=dict)
    metadata: Mapping[str, str] = field(default_factory=dict)
    on_host: bool = False
    host_results: frozenset[int] = frozenset()
    call: Call | None = None

    @property
    def op_type(self) -> str:
        """Name of the operator."""
        return self.key.op_type

    @property
    def domain(self) -> str:
        """Domain of the operator, empty for ai.onnx."""
        return self.key.domain

    @cached_property
    def traits(self) -> Traits:
        """What may be assumed about the operator."""
        return traits(self.key.domain, self.key.op_type)

    def is_a(self, *op_types: str) -> bool:
        """Whether it is one of these operators of ai.onnx."""
        return self.key.domain == "" and self.key.op_type in op_types

    @cached_property
    def schema(self) -> onnx.defs.OpSchema | None:
        """The operator's definition; ``None`` for an operator ONNX does not define."""
        if not onnx.defs.has(self.op_type, self.domain):
            return None
        return onnx.defs.get_schema(self.op_type, self.key.since, self.domain)

    @property
    def many(self) -> bool:
        """Whether the operator's result is a tuple: its schema has several outputs or a variadic one."""
        schema = self.schema
        if schema is None:
            return len(self.outputs) > 1
        variadic = onnx.defs.OpSchema.FormalParameterOption.Variadic
        return len(schema.outputs) > 1 or any(output.option == variadic for output in schema.outputs)

    def uses(self) -> Iterator[Value]:
        """Every value it reads, those captured by its subgraphs included."""
        yield from (value for value in self.inputs if value is not None)
        for block in self.blocks.values():
            yield from block.captured()


@dataclass(eq=False)
class Block:
    """A graph or subgraph: steps in an order in which they can run."""

    inputs: list[Value]
    outputs: list[Value | None]
    steps: list[Step]
    name: str = ""

    def captured(self) -> list[Value]:
        """Values read here that are made outside, constants included."""
        made = set(self.inputs)
        for step in self.steps:
            made.update(value for value in step.outputs if value is not None)
        reads = [value for step in self.steps for value in step.uses()]
        reads += [value for value in self.outputs if value is not None]
        return [value for value in dict.fromkeys(reads) if value not in made]


@dataclass(frozen=True)
class Spelling:
    """How a call is written where the text must stand for itself: in a file, without objects made beforehand.

    Attributes:
        template: An expression; ``{0}``, ``{1}`` stand for the inputs, ``{perm}`` for an attribute.
        imports: Statements that it needs, such as ``import numpy as np``.
        literals: Positions of inputs that are written as Python values, tuples for arrays; they have to be constant.
            All other constants become parameters.
    """

    template: str
    imports: tuple[str, ...] = ()
    literals: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Call:
    """A function bound to one step: ``function(*leading, *inputs, **attributes)``.

    Attributes:
        function: The kernel.
        kind: Where it was found: ``prepared``, ``native``, ``shared``, ``fused``; ``host`` for what runs there, and
            ``copy`` for what moves a value there or back.
        leading: What comes before the inputs (the backend of a shared meaning).
        attributes: Keyword arguments.
        spelling: How it is written in a file; as a call of ``function`` by its name if left out.
    """

    function: Any
    kind: str
    leading: tuple[Any, ...] = ()
    attributes: dict[str, Any] = field(default_factory=dict)
    spelling: Spelling | None = None

    def __call__(self, *inputs: Any) -> Any:
        """Run it."""
        return self.function(*self.leading, *inputs, **self.attributes)


def with_work_of(step: Step, others: Iterable[Step], how: str) -> dict[ir.Node, str]:
    """What a step computes that does the work of others too."""
    joined: dict[ir.Node, str] = {}
    for other in others:
        for node, known in other.computes.items():
            joined.setdefault(node, known or how)
    return {**joined, **step.computes}


def as_tuple(result: Any) -> tuple[Any, ...]:
    """A kernel's results in schema order; one that makes a single output may return it bare."""
    return result if isinstance(result, tuple) else (result,)


def first(result: Any) -> Any:
    """The first of a kernel's results."""
    return result[0] if isinstance(result, tuple) else result


def pruned(block: Block, wanted: Sequence[Value | None] | None = None) -> Block:
    """The same block with only the steps that its outputs (or ``wanted``) need."""
    outputs = block.outputs if wanted is None else list(wanted)
    live = {value for value in outputs if value is not None}
    kept = []
    for step in reversed(block.steps):
        if any(value in live for value in step.outputs if value is not None):
            step.blocks = {name: pruned(inner) for name, inner in step.blocks.items()}
            kept.append(step)
            live.update(step.uses())
    return Block(block.inputs, list(outputs), kept[::-1], block.name)


def without_unread(block: Block) -> Block:
    """The block, in which loops no longer name the results that nothing reads; it is changed in place."""
    read = {value for step in block.steps for value in step.uses()} | set(block.outputs)
    for step in block.steps:
        for inner in step.blocks.values():
            without_unread(inner)
        if step.blocks:
            step.outputs = [value if value in read else None for value in step.outputs]
    return block


def last_uses(block: Block) -> list[list[Value]]:
    """Per step, the block's own values that nothing reads after it; outputs of the block never die."""
    own = {value for step in block.steps for value in step.outputs if value is not None} | set(block.inputs)
    seen = {value for value in block.outputs if value is not None}
    dying: list[list[Value]] = []
    for step in reversed(block.steps):
        ends = [value for value in dict.fromkeys(_touched(step)) if value in own and value not in seen]
        seen.update(ends)
        dying.append(ends)
    return dying[::-1]


def _touched(step: Step) -> Iterable[Value]:
    yield from step.uses()
    yield from (value for value in step.outputs if value is not None)
