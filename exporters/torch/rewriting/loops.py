"""A loop whose length is known only when the graph runs: its body is run aside, and noted as the body of a ``Loop``."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import torch

from entrepot.exporters.torch.rewriting.branches import writable
from entrepot.exporters.torch.rewriting.environment import Aside, aside, environment, expression, hint
from entrepot.exporters.torch.rewriting.flows import Body, Flow, emit
from entrepot.exporters.torch.rewriting.links import Links
from entrepot.exporters.torch.rewriting.part import Inputs, Outcome, Part, State, same_number, stand_ins
from entrepot.exporters.torch.rewriting.results import Results, as_result, outside, type_of
from entrepot.exporters.torch.rewriting.sequences import Unfinished
from entrepot.exporters.torch.rewriting.shapes import as_tensor
from entrepot.exporters.torch.rewriting.stored import followed
from entrepot.exporters.torch.rewriting.trees import Undefined, UnlikeError, gather

_ROUNDS = 6


def loop(
    state: State,
    body: Callable[[Any], Any],
    line: int,
    *,
    items: Unfinished | None = None,
    going: Callable[[], Any] | None = None,
    starts: Any = None,
    holds: Callable[[], Any] | None = None,
    give_up: bool = True,
) -> None:
    """Put a loop into the graph.

    Args:
        state: The variables that the body mentions.
        body: Is called with each item.
        line: Where it is.
        items: What it runs over.
        going: Says after each time whether it goes on.
        starts: Whether it starts.
        holds: Says what holds whenever the body begins.
        give_up: Whether to leave out what the body stores in modules, if that cannot be followed.

    Raises:
        UnlikeError: The body leaves other things behind than it finds.
    """
    followed(
        state, lambda wider: _Loop(wider, body, items, going, starts, holds).emit(state.place(line)), give_up=give_up
    )


class _Loop:
    def __init__(
        self, state: State, body: Any, items: Unfinished | None, going: Any, starts: Any, holds: Any = None
    ) -> None:
        self.state, self.items, self.going, self.starts = state, items, going, starts
        self._body, self._index = body, None
        self.part = Part(state, self._step, items)
        self.leaves = self.part.leaves
        self.env = environment([starts, items.length if items is not None else None, *self.leaves])
        self.promoted: set[int] = set()
        self.open: dict[int, set[int]] = {}
        self.filled: dict[int, torch.Tensor] = {}
        self.together: set[int] = set()
        self.test: Any = None
        self.holds = holds
        self.entered: Any = None

    def emit(self, place: str) -> None:
        outcome, links = self._settled()
        changed = [(leaf, after) for leaf, after in links.kept if self._varies(outcome, leaf, after)]
        leaves = self._apart([leaf for leaf, _ in changed], outcome)
        inputs = Inputs(leaves, sorted(self.promoted))
        results = Results()
        wanted = [(after, self._carried(results, leaf, leaves[leaf])) for leaf, after in changed]
        wanted += [(after, self._row(results, outcome, after, links)) for after in links.rows]
        tensors, ints = list(inputs.tensors), list(inputs.ints)
        positions = [inputs.position(leaf) for leaf, _ in changed]
        if self.items is not None:  # its length comes before the other numbers
            ints.insert(0, self.items.length)
            positions = [at + 1 if at >= len(tensors) else at for at in positions]
        if self.going is not None:
            tensors.append(as_tensor(self.starts))
        flow = Flow(
            [self._noted(inputs, self._run(inputs, outcome, wanted, results, len(links.rows)), outcome.weights)],
            results.templates,
            place,
            carried=positions,
            stacked=len(links.rows),
            trips=self.items is not None,
            going=self.going is not None,
        )
        made = emit(flow, tensors, ints, results.sizes)
        self._put(outcome, links, changed, leaves, made)

    def _apart(self, changed: Sequence[int], outcome: Outcome) -> list[Any]:
        """The leaves; variables that start as one tensor, ``h = c = zeros``, part unless it is written to."""
        leaves = [self.filled.get(at, leaf) for at, leaf in enumerate(self.leaves)]
        shared = Counter(map(id, leaves))
        for at in changed:
            if isinstance(leaves[at], torch.Tensor) and shared[id(leaves[at])] > 1 and at not in outcome.written:
                leaves[at] = leaves[at].clone()
        return leaves

    def _carried(self, results: Results, leaf: int, like: Any) -> int:
        """A result that the body is given back the next time."""
        sizes = like.shape if isinstance(like, torch.Tensor) else ()
        opened = self.open.get(leaf, set())
        return results.add(type_of(like), [None if axis in opened else size for axis, size in enumerate(sizes)])

    def _row(self, results: Results, outcome: Outcome, after: int, links: Links) -> int:
        """A result with what a list is given each time."""
        leaf = outcome.leaves[after]
        sizes = list(leaf.shape) if isinstance(leaf, torch.Tensor) else []
        known = self._known(outcome)
        changing = [at for at, size in enumerate(sizes) if not expression(size).free_symbols <= known]
        if changing and links.is_several(after):
            raise links.varying(after)
        if changing:
            raise links.changing(after, changing)
        count = None if self.going is not None or self.items is None else self.items.length
        return results.add(type_of(leaf), [count, *sizes])

    def _noted(self, inputs: Inputs, run: Any, weights: set[str]) -> Body:
        """The body, which is told how often it has run, then the length, if there is one, and all other numbers."""
        operands, numbers, samples = inputs.operands(), inputs.numbers(), inputs.samples()
        for leaf in self.promoted:
            if (at := inputs.position(leaf)) >= len(operands):
                numbers[at - len(operands)] = None
        for leaf, axes in self.open.items():
            at = inputs.position(leaf)
            operands[at] = operands[at].opened(axes)
        if self.items is not None:
            numbers.insert(0, expression(self.items.length))
            samples.insert(0, 5 if hint(self.items.length) is None else int(hint(self.items.length)))
        return Body(run, operands, [None, *numbers], [self._index_hint(), *samples], weights=weights, entered=self._met)

    def _met(self) -> Any:
        """What held when the body began in its last run, if that was about sizes and numbers alone."""
        return expression(self.entered) if isinstance(self.entered, torch.SymBool) else None

    def _index_hint(self) -> int:
        length = None if self.items is None else hint(self.items.length)
        return 2 if length is None or length > 3 else max(length - 1, 0)

    def _settled(self) -> tuple[Outcome, Links]:
        """A run of the body that finds everything as the run before left it."""
        for _ in range(_ROUNDS):
            with aside(self.env) as found:
                outcome = self.part.try_on(self._given(found), found)
            if self._writes_to_several(outcome):
                continue
            links = Links(self.part.tree, outcome.tree, outcome.leaves, outcome.copies)
            if not self._changed(outcome, links):
                found.adopt()
                return outcome, links
        raise UnlikeError("each time, the body leaves something else behind")

    def _known(self, outcome: Outcome) -> set[Any]:
        """The symbols that mean something outside of the loop as well."""
        return self.part.symbols(self.env) - outcome.aside.private

    def _writes_to_several(self, outcome: Outcome) -> bool:
        """Take note of a tensor that the body writes to, and that several variables hold: it stays one."""
        held = [id(leaf) for leaf in self.leaves]
        several = {held[at] for at in outcome.written if held.count(held[at]) > 1} - self.together
        self.together |= several
        return bool(several)

    def _given(self, found: Aside) -> list[Any]:
        """What stands for the leaves, each for itself: ``h = c = zeros`` holds for the first turn only."""
        leaves = [self.filled.get(at, leaf) for at, leaf in enumerate(self.leaves)]
        leaves = stand_ins(leaves, found, {}, apart=lambda at: id(self.leaves[at]) not in self.together)
        for at in self.promoted:
            leaves[at] = self._varying(leaves[at], found)
        for at, axes in self.open.items():
            leaf = leaves[at]
            shape = [
                found.size(max(hint(size) or 3, 3) + 1) if axis in axes else size
                for axis, size in enumerate(leaf.shape)
            ]
            leaves[at] = torch.empty(shape, dtype=leaf.dtype)
        self._index = found.number(self._index_hint())
        return leaves

    def _varying(self, leaf: Any, found: Aside) -> Any:
        if type_of(leaf) is torch.int64:
            return found.number(5 if hint(leaf) is None else max(int(hint(leaf)), 0) + 3)
        return torch.empty((), dtype=type_of(leaf))

    def _changed(self, outcome: Outcome, links: Links) -> bool:
        """Take note of what the body changes; whether anything is new."""
        new = False
        for leaf, after in links.kept:
            before, now = outcome.given[leaf], outcome.leaves[after]
            original = self.filled.get(leaf, self.leaves[leaf])
            if isinstance(before, Undefined) and not isinstance(now, Undefined):
                self.filled[leaf] = _blank(now, self._known(outcome))
                new = True
            elif isinstance(before, torch.Tensor) and leaf not in self.promoted:
                new |= self._tensor_changed(leaf, before, now, outcome.aside)
            elif (
                not isinstance(before, Undefined | torch.Tensor)
                and leaf not in self.promoted
                and not same_number(before, now)
            ):
                if isinstance(now, torch.Tensor) and (now.dim() or now.dtype != type_of(original)):
                    self.filled[leaf] = _as_tensor_like(original, now)
                else:
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

    def _run(
        self, inputs: Inputs, outcome: Outcome, wanted: list[tuple[int, int]], results: Results, stacked: int
    ) -> Any:
        first = 0 if self.items is None else 1
        templates = [*results.templates]
        for _, result in wanted[len(wanted) - stacked :]:  # each time, the body makes one row
            templates[result] = dataclasses.replace(templates[result], shape=templates[result].shape[1:])

        def run(tensors: Sequence[torch.Tensor], ints: Sequence[Any]) -> list[Any]:
            self._index, *others = ints
            _, leaves = self.part.run(writable(inputs.given(tensors, others[first:]), outcome.written))
            goes = [] if self.test is None else [as_tensor(self.test).reshape(()).to(torch.bool)]
            return [*goes, *(as_result(leaves[leaf], templates[result]) for leaf, result in wanted)]

        return run

    def _step(self, items: Any) -> None:
        self.entered = None if self.holds is None else self.holds()
        self._body(None if items is None else items.at(self._index))
        self.test = None if self.going is None else self.going()

    def _put(
        self,
        outcome: Outcome,
        links: Links,
        changed: list[tuple[int, int]],
        leaves: list[Any],
        made: list[torch.Tensor],
    ) -> None:
        """Give the variables the values that they have after the loop."""
        after = list(outcome.leaves)
        for leaf, place in links.kept:
            after[place] = leaves[leaf]
        for (leaf, place), tensor in zip(changed, made, strict=False):
            written = leaf in outcome.written and outcome.leaves[place] is outcome.given[leaf]
            after[place] = leaves[leaf].copy_(tensor) if written else outside(tensor, leaves[leaf])
        for place, tensor in zip(links.rows, made[len(changed) :], strict=True):
            after[place] = tensor
        tree = links.finished(outcome.tree, after)
        _, values = gather(tree, after, owners=outcome.copies)
        self.state.put(values)


def _as_tensor_like(number: Any, like: torch.Tensor) -> torch.Tensor:
    """What a number is where a body makes a tensor without axes of it: ``loss = 0.0``, ``loss = loss - x.sum()``.

    Raises:
        UnlikeError: The tensor has axes, or does not hold the number as it is.
    """
    exact = type(number) in (int, float) and like.dtype.is_floating_point and not like.dim()
    if not exact or torch.tensor(number, dtype=like.dtype).item() != number:
        raise UnlikeError("a number becomes a tensor")
    return as_tensor(float(number)).to(like.dtype)


def _blank(leaf: Any, known: set[Any]) -> torch.Tensor:
    """What a variable holds before it has a value: zeros, which nobody reads."""
    if not isinstance(leaf, torch.Tensor):
        return as_tensor(0).to(type_of(leaf))
    shape = [size if expression(size).free_symbols <= known else 1 for size in leaf.shape]
    return torch.zeros(shape, dtype=leaf.dtype)
