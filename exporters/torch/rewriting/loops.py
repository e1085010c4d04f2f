"""A loop whose length is known only when the graph runs: its body is run aside, and noted as the body of a ``Loop``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from entrepot.exporters.torch.rewriting.branches import _writable
from entrepot.exporters.torch.rewriting.environment import Aside, aside, environment, expression, hint
from entrepot.exporters.torch.rewriting.flows import Body, Flow, emit
from entrepot.exporters.torch.rewriting.part import Inputs, Outcome, Part, State, same_number, stand_ins
from entrepot.exporters.torch.rewriting.results import Results, as_result, outside, type_of
from entrepot.exporters.torch.rewriting.sequences import Grown, Stacked, Tracked, Trailing, Unfinished
from entrepot.exporters.torch.rewriting.shapes import as_tensor
from entrepot.exporters.torch.rewriting.trees import Fork, Place, Rest, Undefined, UnlikeError, gather

_ROUNDS = 6


def loop(
    state: State,
    body: Callable[[Any], Any],
    line: int,
    *,
    items: Unfinished | None = None,
    going: Callable[[], Any] | None = None,
    starts: Any = None,
) -> None:
    """Put a loop into the graph.

    Args:
        state: The variables that the body mentions.
        body: Is called with each item.
        line: Where it is.
        items: What it runs over.
        going: Says after each time whether it goes on.
        starts: Whether it starts.

    Raises:
        UnlikeError: The body leaves other things behind than it finds.
    """
    _Loop(state, body, items, going, starts).emit(state.place(line))


class _Loop:
    def __init__(self, state: State, body: Any, items: Unfinished | None, going: Any, starts: Any) -> None:
        self.state, self.items, self.going, self.starts = state, items, going, starts
        self._body, self._index = body, None
        self.part = Part(state, self._step, items)
        self.leaves = self.part.leaves
        self.env = environment([starts, items.length if items is not None else None, *self.leaves])
        self.promoted: set[int] = set()
        self.open: dict[int, set[int]] = {}
        self.filled: dict[int, torch.Tensor] = {}
        self.test: Any = None

    def emit(self, place: str) -> None:
        outcome, links = self._settled()
        results = Results()
        carried = [(leaf, after) for leaf, after in links.kept if self._varies(outcome, leaf, after)]
        leaves = [self.filled.get(at, leaf) for at, leaf in enumerate(self.leaves)]
        inputs = Inputs(leaves, sorted(self.promoted))
        wanted: list[tuple[int, int]] = []
        positions = []
        for leaf, after in carried:
            like = leaves[leaf]
            opened = self.open.get(leaf, set())
            shape = (
                [None if axis in opened else size for axis, size in enumerate(like.shape)]
                if isinstance(like, torch.Tensor)
                else []
            )
            wanted.append((after, results.add(type_of(like), shape)))
            positions.append(inputs.position(leaf))
        count = None if self.going is not None or self.items is None else self.items.length
        for after in links.rows:
            leaf = outcome.leaves[after]
            shape = list(leaf.shape) if isinstance(leaf, torch.Tensor) else []
            if any(expression(size).free_symbols & outcome.aside.private for size in shape):
                raise UnlikeError("what a list is given changes its size from one time to the next")
            wanted.append((after, results.add(type_of(leaf), [count, *shape])))
        tensors, ints, numbers, samples = inputs.tensors, list(inputs.ints), inputs.numbers(), inputs.samples()
        for leaf in self.promoted:
            if (at := inputs.position(leaf)) is not None and at >= len(tensors):
                numbers[at - len(tensors)] = None
        operands = inputs.operands()
        for leaf, axes in self.open.items():
            at = inputs.position(leaf)
            shape = tuple(None if axis in axes else size for axis, size in enumerate(operands[at].shape))
            operands[at] = type(operands[at])(operands[at].dtype, shape, operands[at].sample)
        if self.items is not None:
            ints, numbers, samples = (
                [self.items.length, *ints],
                [expression(self.items.length), *numbers],
                [_sample(self.items.length), *samples],
            )
            positions = [at + 1 if at >= len(tensors) else at for at in positions]
        run = self._run(inputs, outcome, wanted, results, skip=self.items is not None)
        flow = Flow(
            [Body(run, operands, [None, *numbers], [self._index_hint(), *samples])],
            results.templates,
            place,
            carried=positions,
            stacked=len(links.rows),
            trips=self.items is not None,
            going=self.going is not None,
        )
        extra = [as_tensor(self.starts if self.starts is not None else True)] if self.going is not None else []
        made = emit(flow, [*tensors, *extra], ints, results.sizes)
        self._put(outcome, links, carried, made)

    def _index_hint(self) -> int:
        length = None if self.items is None else hint(self.items.length)
        return 2 if length is None or length > 3 else max(length - 1, 0)

    def _settled(self) -> tuple[Outcome, _Links]:
        """A run of the body that finds everything as the run before left it."""
        for _ in range(_ROUNDS):
            with aside(self.env) as found:
                outcome = self.part.try_on(self._given(found), found)
            links = _Links(self.part.tree, outcome.tree, outcome.copies)
            if not self._changed(outcome, links):
                found.adopt()
                return outcome, links
        raise UnlikeError("each time, the body leaves something else behind")

    def _given(self, found: Aside) -> list[Any]:
        leaves = stand_ins([self.filled.get(at, leaf) for at, leaf in enumerate(self.leaves)], found, {})
        for at in self.promoted:
            leaves[at] = self._varying(leaves[at], found)
        for at, axes in self.open.items():
            leaf = leaves[at]
            shape = [
                found.size(max(hint(size) or 3, 3) + 1) if axis in axes else size
                for axis, size in enumerate(leaf.shape)
            ]
            leaves[at] = torch.empty(shape, dtype=leaf.dtype)
        self._index = found.size(self._index_hint())
        return leaves

    def _varying(self, leaf: Any, found: Aside) -> Any:
        if type_of(leaf) is torch.int64:
            return found.size(5 if hint(leaf) is None else max(int(hint(leaf)), 0) + 3)
        return torch.empty((), dtype=type_of(leaf))

    def _changed(self, outcome: Outcome, links: _Links) -> bool:
        """Take note of what the body changes; whether anything is new."""
        new = False
        for leaf, after in links.kept:
            before, now = outcome.given[leaf], outcome.leaves[after]
            original = self.filled.get(leaf, self.leaves[leaf])
            if isinstance(before, Undefined) and not isinstance(now, Undefined):
                self.filled[leaf] = _blank(now, outcome.aside)
                new = True
            elif isinstance(before, torch.Tensor) and leaf not in self.promoted:
                new |= self._tensor_changed(leaf, before, now, outcome.aside)
            elif (
                not isinstance(before, Undefined | torch.Tensor)
                and leaf not in self.promoted
                and not same_number(before, now)
            ):
                if isinstance(now, torch.Tensor) and (now.dim() or now.dtype != type_of(original)):
                    raise UnlikeError("a number becomes a tensor")
                self.promoted.add(leaf)
                new = True
        return new

    def _tensor_changed(self, leaf: int, before: torch.Tensor, now: Any, found: Aside) -> bool:
        if not isinstance(now, torch.Tensor):
            raise UnlikeError("a tensor becomes a number")
        if before is now:
            return False
        if before.dtype != now.dtype or before.dim() != now.dim():
            raise UnlikeError(
                f"a tensor of {before.dtype} and rank {before.dim()} becomes one of {now.dtype} and rank {now.dim()}"
            )
        moved = {
            axis
            for axis, (one, other) in enumerate(zip(before.shape, now.shape, strict=True))
            if expression(one) != expression(other)
        }
        moved -= self.open.get(leaf, set())
        if moved:
            self.open.setdefault(leaf, set()).update(moved)
        return bool(moved)

    def _varies(self, outcome: Outcome, leaf: int, after: int) -> bool:
        now = outcome.leaves[after]
        if leaf in self.promoted:
            return True
        if isinstance(now, torch.Tensor):
            return now is not outcome.given[leaf] or leaf in outcome.written
        return False

    def _run(self, inputs: Inputs, outcome: Outcome, wanted: Any, results: Results, *, skip: bool) -> Any:
        templates = results.templates

        def run(tensors: Sequence[torch.Tensor], ints: Sequence[Any]) -> list[Any]:
            self._index, *ints = ints
            given = inputs.given(tensors, ints[1:] if skip else ints)
            _, leaves = self.part.run(_writable(given, outcome.written))
            goes = [] if self.test is None else [as_tensor(self.test).reshape(()).to(torch.bool)]
            return [*goes, *(as_result(leaves[leaf], templates[result]) for leaf, result in wanted)]

        return run

    def _step(self, items: Any) -> None:
        self._body(None if items is None else items.at(self._index))
        self.test = None if self.going is None else self.going()

    def _put(self, outcome: Outcome, links: _Links, carried: Any, made: list[torch.Tensor]) -> None:
        leaves = [self.filled.get(at, leaf) for at, leaf in enumerate(self.leaves)]
        after = list(outcome.leaves)
        for leaf, place in links.kept:
            after[place] = leaves[leaf]
        for (leaf, place), tensor in zip(carried, made, strict=False):
            written = leaf in outcome.written and outcome.leaves[place] is outcome.given[leaf]
            after[place] = leaves[leaf].copy_(tensor) if written else outside(tensor, leaves[leaf])
        for place, tensor in zip(links.rows, made[len(carried) :], strict=True):
            after[place] = tensor
        tree = links.finished(outcome.tree, after)
        _, values = gather(tree, after, owners=outcome.copies)
        self.state.put(values)


def _sample(size: Any) -> int:
    return 5 if hint(size) is None else int(hint(size))


def _blank(leaf: Any, found: Aside) -> torch.Tensor:
    """What a variable holds before it has a value: zeros, which nobody reads."""
    if not isinstance(leaf, torch.Tensor):
        return as_tensor(0).to(type_of(leaf))
    shape = [1 if expression(size).free_symbols & found.private else size for size in leaf.shape]
    return torch.zeros(shape, dtype=leaf.dtype)


class _Links:
    """Which leaf after a run is which before, and which are new items of lists.

    Attributes:
        kept: Leaves before and after.
        rows: Leaves that lists have been given.
    """

    def __init__(self, before: Any, after: Any, copies: Mapping[int, Any]) -> None:
        self._copies = copies
        self.kept: list[tuple[int, int]] = []
        self.rows: list[int] = []
        self._grown: dict[int, tuple[int, int]] = {}
        self._link(before.parts[0], after.parts[1])

    def _link(self, before: Any, after: Any) -> None:
        match before, after:
            case Place(one), Place(other):
                self.kept.append((one, other))
            case Fork(model), Fork() if isinstance(model, list | Grown) and len(after.parts) > len(before.parts):
                self._list(before, after)
            case Fork(), Fork() if (
                type(before.model) in (type(after.model), *_LISTS[: isinstance(after.model, list)])
                and before.keys == after.keys
                and len(before.parts) == len(after.parts)
            ):
                for one, other in zip(before.parts, after.parts, strict=True):
                    self._link(one, other)
            case Rest(value), Rest(other) if value is other or value == other:
                return
            case _:
                raise UnlikeError("the body changes the structure of a variable")

    def _list(self, before: Fork, after: Fork) -> None:
        if getattr(after.model, "read", False):
            raise ReadError(self._copies.get(id(after.model)))
        old, front = len(before.parts), after.model.front
        new = len(after.parts) - old
        if front not in (0, new):
            raise UnlikeError("a list grows at both ends")
        self._grown[id(after)] = front, new
        for one, other in zip(before.parts, after.parts[front : front + old], strict=True):
            self._link(one, other)
        for part in after.parts[:front] or after.parts[old:]:
            if not isinstance(part, Place):
                raise UnlikeError("a list is given something else than tensors and numbers")
            self.rows.append(part.index)

    def finished(self, tree: Any, leaves: list[Any]) -> Any:
        """The structure after the loop: what lists were given is stacked."""
        if not isinstance(tree, Fork):
            return tree
        parts = [self.finished(part, leaves) for part in tree.parts]
        if isinstance(tree.model, Trailing):
            (grown,) = [part for part in parts if isinstance(part, Fork)]
            old = [Rest(item) for item in tree.model.items]
            return Fork(Grown(), (), (*old, *grown.parts))
        if id(tree) not in self._grown:
            return Fork(tree.model, tree.keys, tuple(parts))
        front, new = self._grown[id(tree)]
        rows = [leaves[part.index] for part in (parts[:front] or parts[-new:])]
        if front:
            rows = [row.flip(0) for row in rows]
        stack = rows[0] if new == 1 else torch.stack(rows, 1).flatten(0, 1)
        leaves.append(stack)
        grown = Fork(Stacked(stack), (), (Place(len(leaves) - 1),))
        return Fork(Grown(), (), (grown, *parts[front:]) if front else (*parts[:-new], grown))


_LISTS = (list, Tracked)


class ReadError(UnlikeError):
    """A list that grows is looked at.

    Attributes:
        read: The list, as it is outside.
    """

    def __init__(self, read: Any) -> None:
        super().__init__("a list that grows in the loop is looked at in it")
        self.read = read
