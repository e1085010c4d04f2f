"""A part of a function, run on other values of its variables than they have."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

import torch

from entrepot.exporters.torch.rewriting.environment import Aside, expression, hint, with_hints
from entrepot.exporters.torch.rewriting.flows import Operand, operand
from entrepot.exporters.torch.rewriting.reading import Reader
from entrepot.exporters.torch.rewriting.shapes import as_tensor
from entrepot.exporters.torch.rewriting.stored import StoresError, stores_now
from entrepot.exporters.torch.rewriting.trees import UNDEFINED, Undefined, gather, spread
from entrepot.exporters.torch.upstream import FakeTensor, writes

_INSIDE: ContextVar[bool] = ContextVar("_INSIDE", default=False)


def inside() -> bool:
    """Whether a block is being run: lists are copies of those outside then."""
    return _INSIDE.get()


@dataclasses.dataclass(frozen=True)
class State:
    """The variables that a part of a function mentions.

    Attributes:
        get: Gives their values.
        put: Changes their values.
        names: Their names.
        inner: Those of which nothing reads what the part leaves.
        file: The source, if not that of ``get``.
        stores: Whether what the part stores in modules is to be among them.
    """

    get: Callable[[], tuple[Any, ...]]
    put: Callable[[tuple[Any, ...]], None]
    names: tuple[str, ...]
    inner: frozenset[str]
    file: str = ""
    stores: bool = True

    def place(self, line: int) -> str:
        """Where the part is."""
        from pathlib import Path

        return f"{Path(self.file or self.get.__code__.co_filename).name}:{line}"

    def with_more(
        self, names: Sequence[str], get: Callable[[], tuple[Any, ...]], put: Callable[[tuple[Any, ...]], None]
    ) -> State:
        """The variables, and values that are kept elsewhere."""
        count = len(self.names)

        def put_all(values: tuple[Any, ...]) -> None:
            self.put(values[:count])
            put(values[count:])

        return dataclasses.replace(
            self,
            get=lambda: (*self.get(), *get()),
            put=put_all,
            names=(*self.names, *names),
            file=self.file or self.get.__code__.co_filename,
        )

    def without_stores(self) -> State:
        """The variables alone, whatever the part stores in modules."""
        return dataclasses.replace(self, stores=False)


@dataclasses.dataclass
class Outcome:
    """What a run has made of the variables.

    Attributes:
        tree: Their structure, and that of what was returned.
        leaves: Their tensors and numbers.
        given: What the leaves were before.
        copies: Which lists and dicts are copies of which.
        written: Leaves from before whose tensors were written to.
        aside: The conditions that were met.
        weights: The names of the weights that were read.
        needed: Sizes that depend on data, and the numbers that they have to be there.
    """

    tree: Any
    leaves: list[Any]
    given: list[Any]
    copies: dict[int, Any]
    written: set[int]
    aside: Aside
    weights: set[str]
    needed: Mapping[Any, int]

    def kept(self, leaf: Any) -> int | None:
        """Which leaf from before this one is."""
        if isinstance(leaf, torch.Tensor):
            return next((at for at, before in enumerate(self.given) if before is leaf), None)
        return None


class Inputs:
    """Which leaves are inputs of a body, and as what.

    Args:
        leaves: Of the variables, as they are outside.
        promoted: Numbers that vary from one time to the next.
    """

    def __init__(self, leaves: Sequence[Any], promoted: Sequence[int] = ()) -> None:
        self.leaves = list(leaves)
        self.tensors: list[Any] = []
        self.ints: list[Any] = []
        self._where: dict[int, tuple[str, int]] = {}
        for at, leaf in enumerate(leaves):
            if isinstance(leaf, torch.Tensor):
                self._where[at] = "tensor", _position(self.tensors, leaf)
            elif isinstance(leaf, torch.SymInt) or (at in promoted and type(leaf) is int):
                self._where[at] = "int", _position(self.ints, leaf, alone=at in promoted)
            elif isinstance(leaf, torch.SymFloat | torch.SymBool) or at in promoted:
                self._where[at] = "tensor", _position(self.tensors, as_tensor(leaf), alone=True)

    def position(self, leaf: int) -> int:
        """Where a leaf is among the inputs: tensors, then numbers."""
        kind, at = self._where[leaf]
        return at if kind == "tensor" else len(self.tensors) + at

    def given(self, tensors: Sequence[Any], ints: Sequence[Any]) -> list[Any]:
        """The leaves with inputs in their places."""
        result = list(self.leaves)
        for at, (kind, index) in self._where.items():
            result[at] = tensors[index] if kind == "tensor" else ints[index]
        return result

    def operands(self) -> list[Operand]:
        """What the tensors are like."""
        return [operand(tensor) for tensor in self.tensors]

    def numbers(self) -> list[Any]:
        """The numbers as expressions over the sizes outside."""
        return [expression(value) for value in self.ints]

    def samples(self) -> list[int]:
        """The numbers in the sample."""
        return [5 if hint(value) is None else int(hint(value)) for value in self.ints]


def _position(found: list[Any], value: Any, *, alone: bool = False) -> int:
    for at, each in enumerate(found) if not alone else ():
        if each is value or (
            isinstance(value, torch.SymInt) and isinstance(each, torch.SymInt) and expression(each) == expression(value)
        ):
            return at
    found.append(value)
    return len(found) - 1


class Part:
    """One block, with the variables that it mentions.

    Args:
        state: Those variables.
        call: Runs the block.
        more: Other values that it is called with, taken apart as the variables are.
        once: Whether it runs once; what a turn of a loop leaves has to be like what was there before it.
    """

    def __init__(self, state: State, call: Callable[[Any], Any], more: Any = None, *, once: bool = False) -> None:
        self.state = state
        self.once = once
        self.call = call
        self.before = state.get()
        self.leaves: list[Any] = []
        self.tree = spread((self.before, more), self.leaves)

    def run(self, leaves: Sequence[Any], copies: dict[int, Any] | None = None) -> tuple[Any, list[Any]]:
        """Run the block with other leaves; what it returned and the variables, taken apart. These are then put back."""
        values, more = gather(self.tree, leaves, copies=copies)
        before = self.state.get()
        self.state.put(values)
        token = _INSIDE.set(True)
        try:
            returned = self.call(more)
            after: list[Any] = []
            return spread((returned, self._lasting(self.state.get())), after), after
        finally:
            _INSIDE.reset(token)
            self.state.put(before)

    def _lasting(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        """The variables, without what only the block itself uses."""
        return tuple(
            UNDEFINED if name in self.state.inner and (self.once or before is UNDEFINED) else value
            for name, before, value in zip(self.state.names, self.before, values, strict=True)
        )

    def symbols(self, env: Any) -> set[Any]:
        """The symbols in sizes that mean something outside as well: those of inputs, and of what the block is given.

        A size that the block reads of tensors, such as where a piece begins and ends, has others.
        """
        return self._given() | {*env.backed_var_to_val}

    def _given(self) -> set[Any]:
        sizes = [size for leaf in self.leaves for size in (leaf.shape if isinstance(leaf, torch.Tensor) else (leaf,))]
        return {symbol for size in sizes if isinstance(size, torch.SymInt) for symbol in expression(size).free_symbols}

    def try_on(self, leaves: Sequence[Any], aside: Aside) -> Outcome:
        """Run the block aside.

        Raises:
            StoresError: It stores something in modules that is not among them.
        """
        copies, given = dict[int, Any](), self._given()
        stored = stores_now() if self.state.stores else None
        counts = {at: writes(leaf) for at, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)}
        with Reader() as reader:
            tree, after = self.run(leaves, copies)
        if stored is not None and (changed := stored.changed()):
            stored.restore()
            raise StoresError(changed)
        written = {at for at, count in counts.items() if writes(leaves[at]) != count}
        return Outcome(tree, after, list(leaves), copies, written, aside, reader.names, aside.needed(given))


def stand_ins(
    leaves: Sequence[Any], aside: Aside, sizes: Mapping[Any, int], *, apart: Callable[[int], bool] = lambda _: False
) -> list[Any]:
    """Tensors without values in place of others, also where the sizes in the sample are to be others.

    Args:
        leaves: What they stand for.
        aside: The run that they are for.
        sizes: Values of symbols.
        apart: Whether a leaf has one of its own where it is the same tensor as another.
    """
    made: dict[Any, Any] = {}
    result = []
    for at, leaf in enumerate(leaves):
        if isinstance(leaf, torch.Tensor):
            key = (at,) if apart(at) else id(leaf)
            if key not in made:
                shape = [with_hints(aside.env, size, sizes) for size in leaf.shape]
                made[key] = torch.empty(shape, dtype=leaf.dtype) if sizes else _like(leaf)
            result.append(made[key])
        else:
            result.append(with_hints(aside.env, leaf, sizes))
    return result


def _like(leaf: torch.Tensor) -> torch.Tensor:
    """A tensor of its kind, of which nothing is known: torch (2.13) takes what lies in memory for a constant's like."""
    found = torch.empty_like(leaf).detach()
    if isinstance(found, FakeTensor):
        found.constant = None
    return found


def same_number(first: Any, second: Any) -> bool:
    """Whether two leaves are one number."""
    if first is second:
        return True
    if (
        isinstance(first, Undefined)
        or isinstance(second, Undefined)
        or isinstance(first, torch.Tensor)
        or isinstance(second, torch.Tensor)
    ):
        return False
    return type(first) is type(second) and bool(expression(first) == expression(second))
