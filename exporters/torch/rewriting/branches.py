"""A branch whose condition is known only when the graph runs: both arms are run aside and noted as bodies of ``If``."""

from __future__ import annotations

import copy
import dataclasses
import functools
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import sympy  # type: ignore[import-untyped]
import torch

from entrepot.exporters.torch.rewriting.apart import pattern
from entrepot.exporters.torch.rewriting.beginnings import settle_beginnings
from entrepot.exporters.torch.rewriting.emptiness import FormError, sufficient_arm
from entrepot.exporters.torch.rewriting.endless import MOST_SIZES_WITHIN_ITSELF, MOST_WITHIN_ITSELF, within
from entrepot.exporters.torch.rewriting.environment import (
    as_in_sample,
    aside,
    environment,
    expression,
    is_private,
    may_be_none,
    supposed,
    taken_at,
)
from entrepot.exporters.torch.rewriting.flows import Body, Flow, emit
from entrepot.exporters.torch.rewriting.links import (
    is_row,
    kept_apart,
    lopsided,
    lopsided_after_loop,
    queued,
    rows_by_turns,
)
from entrepot.exporters.torch.rewriting.lists import Grown, Stacked
from entrepot.exporters.torch.rewriting.part import Inputs, Outcome, Part, State, same_number, stand_ins
from entrepot.exporters.torch.rewriting.reaching import LEFT_OUT
from entrepot.exporters.torch.rewriting.results import Results, as_result, outside, type_of
from entrepot.exporters.torch.rewriting.shapes import (
    as_tensor,
    breaks,
    by_extreme,
    by_remainder,
    ones_where,
    sizes_where,
    unified,
)
from entrepot.exporters.torch.rewriting.stored import followed
from entrepot.exporters.torch.rewriting.trees import (
    NUMBERS,
    UNDEFINED,
    Fork,
    Place,
    Rest,
    Undefined,
    UnlikeError,
    gather,
    moved,
    paired,
    places,
)

_ARMS = (True, False)


def branch(test: Any, arms: Sequence[Callable[[], Any]], state: State, line: int, *, returns: bool = False) -> Any:
    """Put a branch into the graph.

    Args:
        test: A condition on sizes, or a tensor.
        arms: What to do where it holds, and where not.
        state: The variables that the arms mention.
        line: Where it is.
        returns: Whether the arms return what the function returns.

    Raises:
        NotFollowedError: It comes up in its own arms again and again.
        UnlikeError: The arms leave different things behind.
    """
    place = state.place(line)
    settle_beginnings(state)
    most = MOST_SIZES_WITHIN_ITSELF if _is_about_sizes(test) else MOST_WITHIN_ITSELF
    with within(place, most):
        try:
            return followed(state, lambda wider: _Branch(test, arms, wider, returns=returns).emit(place), give_up=True)
        except FormError as error:
            LEFT_OUT[place] = "form"
            return arms[error.arm]()


class _Branch:
    def __init__(self, test: Any, arms: Sequence[Callable[[], Any]], state: State, *, returns: bool) -> None:
        self.test, self.state, self.returns = test, state, returns
        self.parts = [Part(state, functools.partial(_call, arm), once=True) for arm in arms]
        self.leaves = self.parts[0].leaves
        self.env = environment([test, *self.leaves])
        compared = expression(test) if isinstance(test, torch.SymBool) else None
        self.condition = compared if _is_about_sizes(test) else None
        self.assumed = compared if self.condition is None else None
        self.results = Results()

    def emit(self, place: str) -> Any:
        outcomes = [self._tried(part, holds) for part, holds in zip(self.parts, _ARMS, strict=True)]
        trees, pairs = self._alike(outcomes)
        merged = self._all_merged(outcomes, [(first.index, second.index) for first, second, _ in pairs])
        inputs = Inputs(self.leaves)
        bodies = [
            self._body(
                part,
                inputs,
                outcome,
                [
                    ((first, second)[number].index, result)
                    for (first, second, _), (result, _) in zip(pairs, merged, strict=True)
                    if result is not None
                ],
                holds,
            )
            for number, (part, outcome, holds) in enumerate(zip(self.parts, outcomes, _ARMS, strict=True))
        ]
        flow = Flow(bodies, self.results.templates, place)
        made = emit(flow, [as_tensor(self.test), *inputs.tensors], inputs.ints, self.results.sizes)
        leaves = [*outcomes[0].leaves, *outcomes[1].leaves]
        for (first, _, target), (result, value) in zip(pairs, merged, strict=True):
            leaves[target] = value if result is None else self._outside(outcomes, first.index, made[result], value)
        owners = outcomes[0].copies
        returned, values = gather(trees, leaves, owners=owners)
        if not self.returns:
            self.state.put(values)
        return returned

    def _tried(self, part: Part, holds: bool) -> Outcome:
        sizes: Any = {}
        met: Any = None
        if self.condition is not None:
            sizes = sizes_where(self.condition, self.env.backed_var_to_val, holds=holds)
            met = self.condition if holds else sympy.Not(self.condition)
            if sizes is None:
                raise UnlikeError("no sizes are known at which the condition is otherwise")
        with aside(self.env) as found, taken_at(self.env, sizes), supposed(self.env, met):
            outcome = part.try_on(stand_ins(part.leaves, found, sizes), found)
        if self.condition is None:
            found.adopt()
        else:
            guard = breaks(found.conditions(), self.condition, self.env.backed_var_to_val, holds=holds)
            if guard is not None:
                raise UnlikeError(f"what it does needs {guard.expr}")
        return outcome

    def _mattering(self, outcome: Outcome) -> Fork:
        """The part of the structure that is of use afterwards."""
        return Fork((), (), (outcome.tree.parts[0], Rest(()))) if self.returns else outcome.tree

    def _alike(self, outcomes: Sequence[Outcome]) -> tuple[Fork, list[tuple[Place, Place, int]]]:
        """The structure after both arms, its places in them, and among the leaves of the first and those of the second.

        A variable that they make different things of has no value. One that a single arm sets is what that makes of it.
        """
        first, second = map(self._mattering, outcomes)
        if self.returns:
            return first, [(one, other, one.index) for one, other in paired(first, second)]
        parts: list[Any] = []
        pairs: list[tuple[Place, Place, int]] = []
        for one, other in zip(first.parts[1].parts, second.parts[1].parts, strict=True):
            if self._is_unset(outcomes[0], one) and isinstance(other, Fork):
                tree = moved(other, count := len(outcomes[0].leaves))
                parts.append(tree)
                pairs += [(one, place, count + place.index) for place in places(other)]
            elif self._is_unset(outcomes[1], other) and isinstance(one, Fork):
                parts.append(one)
                pairs += [(place, other, place.index) for place in places(one)]
            else:
                try:
                    pairs += [(a, b, a.index) for a, b in paired(one, other)]
                    element = isinstance(one, Place) and isinstance(other, Fork)
                    parts.append(dataclasses.replace(other, parts=(one,)) if element else _new(outcomes, one, other))
                except UnlikeError:
                    self._check_lists(outcomes, one, other)
                    parts.append(Rest(UNDEFINED))
        values = dataclasses.replace(first.parts[1], parts=tuple(parts))
        return dataclasses.replace(first, parts=(Rest(None), values)), pairs

    def _check_lists(self, outcomes: Sequence[Outcome], *trees: Any) -> None:
        """Have a list that one arm alone gives a tensor kept in another form.

        Raises:
            ListError: It is one.
        """
        one, other = trees
        if not (isinstance(one, Fork) and isinstance(other, Fork)):
            return
        if one.keys == other.keys and len(one.parts) == len(other.parts):
            for inside in zip(one.parts, other.parts, strict=True):
                self._check_lists(outcomes, *inside)
            return
        owners = [
            outcome.copies.get(id(tree.model), (None, None))[1] for outcome, tree in zip(outcomes, trees, strict=True)
        ]
        if isinstance(one.model, Grown) and isinstance(other.model, Grown):
            self._check_grown(outcomes, next((each for each in owners if each is not None), None), one, other)
        elif isinstance(one.model, list) and isinstance(other.model, list) and owners[0] is owners[1] is not None:
            self._check_list(outcomes, owners[0], one, other)
        elif isinstance(one.model, deque) and isinstance(other.model, deque) and owners[0] is owners[1] is not None:
            self._check_queue(outcomes, owners[0], one, other)

    def _check_queue(self, outcomes: Sequence[Outcome], owner: Any, *trees: Fork) -> None:
        outcome, tree = max(zip(outcomes, trees, strict=True), key=lambda pair: len(pair[1].parts))
        raise queued(owner, tree.parts[-1], _leaf(outcome, tree.parts[-1]))

    def _check_grown(self, outcomes: Sequence[Outcome], owner: Any, *trees: Fork) -> None:
        """The same for a list that a loop has made."""
        if not isinstance(owner, Grown):
            return
        outcome, tree = max(zip(outcomes, trees, strict=True), key=lambda pair: len(pair[1].parts))
        items = [_item(outcome, part) for part in tree.parts]
        alike = {(item.dtype, item.dim()) if isinstance(item, torch.Tensor) else None for item in items}
        if len(alike) > 1 or None in alike:
            return
        sizes = [{expression(size) for size in each} for each in zip(*(item.shape for item in items), strict=True)]
        axes = [at for at, different in enumerate(sizes) if len(different) > 1]
        if len(axes) <= 1:
            raise lopsided_after_loop(owner, items[-1], axes)

    def _check_list(self, outcomes: Sequence[Outcome], owner: Any, *trees: Fork) -> None:
        pairs = list(zip(outcomes, trees, strict=True))
        self._check_rows(owner, [(outcome, row) for outcome, tree in pairs for row in tree.parts])
        items = [_leaf(outcome, part) for outcome, tree in pairs for part in tree.parts]
        if any(item is None or isinstance(item, Undefined) or type_of(item) != type_of(items[-1]) for item in items):
            return
        like = items[-1]
        if not any(isinstance(item, torch.Tensor) for item in items):
            raise lopsided(owner, torch.empty((), dtype=type_of(like)), uneven=False, numbers=True)
        if not all(isinstance(item, torch.Tensor) and item.dim() == like.dim() for item in items):
            return
        varying = [at for at, size in enumerate(like.shape) if self._is_unknown(size)]
        if varying in ([], [0]):
            raise lopsided(owner, like, uneven=bool(varying))

    def _is_unknown(self, size: Any) -> bool:
        """Whether a size means nothing outside of the arm: it depends on data, or on the turn of a loop."""
        return is_private(size) or not expression(size).free_symbols <= self.env.backed_var_to_val.keys()

    def _check_rows(self, owner: Any, rows: Sequence[tuple[Outcome, Any]]) -> None:
        """The same for one that is given a list or tuple.

        Raises:
            ListError: It is one.
        """
        apart = next((row for _, row in rows if pattern(row) is not None and not is_row(row)), None)
        if apart is not None:
            raise kept_apart(owner, apart)
        if not all(is_row(row) for _, row in rows) or len({len(row.parts) for _, row in rows}) > 1:
            return
        outcome, row = rows[-1]
        leaves = [_leaf(outcome, part) for part in row.parts]
        like = [torch.empty(getattr(leaf, "shape", ()), dtype=type_of(leaf)) for leaf in leaves]
        kind = tuple if isinstance(row.model, tuple) else list
        raise rows_by_turns(owner, like, [not isinstance(leaf, torch.Tensor) for leaf in leaves], kind)

    @staticmethod
    def _is_unset(outcome: Outcome, tree: Any) -> bool:
        """Whether a variable has no value after an arm."""
        return isinstance(tree, Place) and isinstance(outcome.leaves[tree.index], Undefined)

    def _all_merged(
        self, outcomes: Sequence[Outcome], pairs: Sequence[tuple[int, int]]
    ) -> list[tuple[int | None, Any]]:
        try:
            return [self._merged(outcomes, first, second) for first, second in pairs]
        except UnlikeError as error:
            arm = None
            if self.assumed is not None:
                left = [(outcomes[0].leaves[first], outcomes[1].leaves[second]) for first, second in pairs]
                arm = sufficient_arm(self.assumed, left, self.env)
            if arm is None:
                raise
            raise FormError(str(error), arm) from error

    def _merged(self, outcomes: Sequence[Outcome], first: int, second: int) -> tuple[int | None, Any]:
        """The number of a result with a leaf like it, or ``None`` with a leaf that is the same in both arms."""
        a, b = outcomes[0].leaves[first], outcomes[1].leaves[second]
        kept = outcomes[0].kept(a)
        if kept is not None and kept == outcomes[1].kept(b) and not any(kept in each.written for each in outcomes):
            return None, self.leaves[kept]
        if isinstance(a, Undefined) and isinstance(b, Undefined):
            return None, UNDEFINED
        if same_number(a, b):
            return None, as_in_sample(a)
        tensors = [leaf for leaf in (a, b) if isinstance(leaf, torch.Tensor)]
        if not tensors:
            return self._number(a, b)
        return self._tensor(tensors)

    def _number(self, a: Any, b: Any) -> tuple[int | None, Any]:
        known = [leaf for leaf in (a, b) if not isinstance(leaf, Undefined)]
        if len(known) == 2 and {type_of(a), type_of(b)} == {torch.int64}:
            one = unified(self.condition, a, b, self.env.backed_var_to_val)
            one = by_remainder(self.condition, a, b, self.env) if one is None else one
            if one is not None:
                return None, as_in_sample(one)
        kinds = {type_of(leaf) for leaf in known}
        dtype = kinds.pop() if len(kinds) == 1 else torch.float64
        like = known[0] if dtype is not torch.float64 else 0.0
        return self.results.add(dtype, ()), like

    def _tensor(self, tensors: Sequence[torch.Tensor]) -> tuple[int, Any]:
        first, last = tensors[0], tensors[-1]
        if first.dtype != last.dtype or first.dim() != last.dim():
            raise UnlikeError(
                f"a tensor of {first.dtype} and rank {first.dim()} becomes one of {last.dtype} and rank {last.dim()}"
            )
        sizes = [self._size(a, b) for a, b in zip(first.shape, last.shape, strict=True)]
        return self.results.add(first.dtype, [as_in_sample(size) for size in sizes]), first

    def _size(self, a: Any, b: Any) -> Any:
        """The size of an axis after both arms; a name where nobody knows, the same for all that are equal in either."""
        one = unified(self.condition, a, b, self.env.backed_var_to_val)
        for formula in (by_extreme, by_remainder):
            one = formula(self.condition, a, b, self.env) if one is None else one
        known = one is not None and expression(one).free_symbols <= self.parts[0].symbols(self.env)
        differ = one is not None and expression(a) != expression(b)
        if differ and any(may_be_none(size) for size in (a, b)):  # the formula need not hold where it is 0
            known = False
        return one if known else f"{expression(a)}, {expression(b)}"

    def _body(self, part: Part, inputs: Inputs, outcome: Outcome, wanted: list[tuple[int, int]], holds: bool) -> Body:
        templates = self.results.templates

        def run(tensors: Sequence[torch.Tensor], ints: Sequence[Any]) -> list[Any]:
            _, leaves = part.run(writable(inputs.given(tensors, ints), outcome.written))
            return [as_result(leaves[leaf], templates[result]) for leaf, result in wanted]

        condition, sizes, ones = None, {}, {}
        if self.condition is not None:
            condition = self.condition, holds
            sizes = sizes_where(self.condition, self.env.backed_var_to_val, holds=holds) or {}
            ones = ones_where(self.condition, self.env.backed_var_to_val, holds=holds)
        return Body(
            run,
            inputs.operands(),
            inputs.numbers(),
            inputs.samples(),
            sizes,
            condition,
            weights=outcome.weights,
            needed={**outcome.needed, **ones},
            assumed=self.assumed if holds or self.assumed is None else sympy.Not(self.assumed),
        )

    def _outside(self, outcomes: Sequence[Outcome], leaf: int, made: torch.Tensor, like: Any) -> Any:
        kept = outcomes[0].kept(outcomes[0].leaves[leaf])
        if kept is not None and any(kept in outcome.written for outcome in outcomes):
            return self.leaves[kept].copy_(made)
        return outside(made, like)


def _is_about_sizes(test: Any) -> bool:
    """Whether a condition is known for the sample, as no data are in it."""
    return isinstance(test, torch.SymBool) and test.node.has_hint()


def _leaf(outcome: Outcome, tree: Any) -> Any:
    return outcome.leaves[tree.index] if isinstance(tree, Place) else None


def _new(outcomes: Sequence[Outcome], one: Any, other: Any) -> Any:
    """A structure in which no list or dict from before is filled that one arm alone puts another in the place of."""
    if not (isinstance(one, Fork) and isinstance(other, Fork)):
        return one
    owners = [
        outcome.copies.get(id(each.model), (None, None))[1]
        for outcome, each in zip(outcomes, (one, other), strict=True)
    ]
    model = one.model
    if owners[0] is not owners[1] and isinstance(model, list | dict | deque):
        model = [*list.__iter__(model)] if isinstance(model, list) else copy.copy(model)
    parts = tuple(_new(outcomes, *each) for each in zip(one.parts, other.parts, strict=True))
    return Fork(model, one.keys, parts)


def _item(outcome: Outcome, tree: Any) -> Any:
    """What an item of a list is like, of those that a loop has made as well; numbers are like tensors of one."""
    if isinstance(tree, Fork) and isinstance(tree.model, Stacked):
        rows = _leaf(outcome, tree.parts[0])
        return torch.empty(rows.shape[1:], dtype=rows.dtype)
    leaf = _leaf(outcome, tree)
    return torch.empty((), dtype=type_of(leaf)) if isinstance(leaf, NUMBERS) else leaf


def _call(arm: Callable[[], Any], _: Any) -> Any:
    return arm()


def writable(leaves: list[Any], written: set[int]) -> list[Any]:
    """Copies of the tensors that are written to; a tensor that occurs twice is copied once."""
    copies = {id(leaves[at]): leaves[at].clone() for at in written}
    return [copies.get(id(leaf), leaf) for leaf in leaves]
