"""Types and shapes of values of a long file, most of whose nodes nobody has made yet.

Networks repeat themselves. Where a node is like an earlier one, and so is everything it reads, so is everything it
makes; only the first of them takes a graph and an inference.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import onnx_ir as ir

from entrepot.ir.io.excerpt import Excerpt, Later
from entrepot.ir.opset.schemas import canonical, since
from entrepot.ir.opset.values import Known
from entrepot.ir.table import OpKey
from entrepot.ir.traits import host_operands
from entrepot.ir.typing.query import Types
from entrepot.ir.typing.shown import SHOWN, kind_of_spec
from entrepot.ir.typing.spec import UNKNOWN, Spec, written


class _Fact(NamedTuple):
    """What is known of a value.

    Attributes:
        spec: Type and shape.
        type: The type as it follows from types alone.
        shown: Equal where those are, and the value, as far as shape inference looks at any operand's.
        whole: Equal where the whole value is, as far as it is known.
        known: Whether it is.
    """

    spec: Spec
    type: ir.TypeProtocol | None
    shown: int
    whole: int
    known: bool


_NOTHING = _Fact(UNKNOWN, None, -1, -1, known=False)


class FlowTypes(Types):
    """The same answers as on a graph of the whole file.

    Args:
        excerpt: The part of the file that there is a graph of.
    """

    def __init__(self, excerpt: Excerpt) -> None:
        parsed = excerpt.parsed
        super().__init__(Known(parsed.ir_version), parsed.opsets)
        self._excerpt = excerpt
        self._chosen = set(excerpt.chosen)
        self._next = 0
        self._facts: dict[str, _Fact] = {}
        self._seen: dict[Hashable, list[_Fact]] = {}
        self._numbers: dict[Hashable, int] = {}
        self._told = {like for like in parsed.kinds.values() if _is_told(like, parsed.opsets.get(like.domain, 0))}

    def _sources(self, value: ir.Value) -> list[ir.Value]:
        return [] if isinstance(value, Later) else super()._sources(value)

    def _settle(self, value: ir.Value) -> None:
        if isinstance(value, Later):
            self._reach(value.at)
            self._memo.setdefault(value, self._facts[value.name or ""].spec)
        else:
            super()._settle(value)

    def type(self, value: ir.Value | None) -> ir.TypeProtocol | None:
        """The whole type, or ``None`` when unknown."""
        if isinstance(value, Later):
            self._reach(value.at)
            return self._facts[value.name or ""].type
        return super().type(value)

    def _type_source(self, value: ir.Value) -> ir.Value | ir.TypeProtocol | None:
        source = super()._type_source(value)
        return self.type(source) if isinstance(source, Later) else source

    def _reach(self, position: int) -> None:
        while self._next <= position:
            self._look(self._next)
            self._next += 1

    def _look(self, position: int) -> None:
        """Find out about the outputs of the node at this position; all before it are known."""
        proto = self._excerpt.protos[position]
        if position in self._chosen:
            for name in self._excerpt.exits.keys() & proto.output:
                self._given(name)
            return
        like, outputs = self._excerpt.parsed.alike[position], list(proto.output)
        facts = self._facts
        given = [facts.get(name) or self._given(name) for name in proto.input if name]
        whole = like in self._told or all(fact.known for fact in given)
        numbers = [fact.whole for fact in given] if whole else [fact.shown for fact in given]
        stated = () if self._excerpt.stated.isdisjoint(outputs) else tuple(map(self._excerpt.states, outputs))
        key = (like, whole, tuple(numbers), stated)
        found = self._seen.get(key)
        if found is None:
            found = self._seen[key] = self._made(outputs)
        facts.update(zip(outputs, found, strict=True))

    def _given(self, name: str) -> _Fact:
        value = self._excerpt.value(name)
        fact = self._facts[name] = self._fact(value, self.type(value))
        return fact

    def _made(self, names: Sequence[str]) -> list[_Fact]:
        """Infer what a node makes, as in a graph."""
        values = [self._excerpt.value(name) for name in names if name]
        if not all(spec.type is not None and spec.shape is not None for spec in map(written, values)):
            node = values[0].producer()
            for item in () if node is None else node.inputs:
                if item is not None and item not in self._memo:
                    self._infer(item)
            super()._settle(values[0])
        facts = iter([self._fact(value, self._followed(value)) for value in values])
        return [next(facts) if name else _NOTHING for name in names]

    def _followed(self, value: ir.Value) -> ir.TypeProtocol | None:
        if value.type is not None:
            return value.type
        source = super()._type_source(value)
        return self.type(source) if isinstance(source, ir.Value) else source or self.spec(value).type

    def _fact(self, value: ir.Value, type_: ir.TypeProtocol | None) -> _Fact:
        spec, array = self.spec(value), self.known.array(value)
        kind: Hashable = (kind_of_spec(spec) or object(), type_)
        if array is None:
            number = self._number(kind)
            return _Fact(spec, type_, number, number, known=False)
        small = array.size <= SHOWN and array.dtype.kind in "iufb"
        whole = self._number((kind, array.dtype.str, array.shape, array.tobytes() if small else id(array)))
        return _Fact(spec, type_, whole if small and array.dtype.kind != "f" else self._number(kind), whole, known=True)

    def _number(self, key: Hashable) -> int:
        return self._numbers.setdefault(key, len(self._numbers))


def _is_told(node: ir.Node, opset: int) -> bool:
    """Whether types may follow from any value that a node reads, not only from integers."""
    version = since(node.domain, node.op_type, opset)
    return bool(version and host_operands(OpKey(canonical(node.domain), node.op_type, version)))
