"""``itertools`` over sequences whose length varies: every pair of a table, every choice of a few items."""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch

from entrepot.exporters.torch.rewriting.apart import Apart, picked
from entrepot.exporters.torch.rewriting.environment import expression
from entrepot.exporters.torch.rewriting.links import whole
from entrepot.exporters.torch.rewriting.lists import Columns, Tracked
from entrepot.exporters.torch.rewriting.sequences import Numbers, Rows, Span, Together, Unfinished
from entrepot.exporters.torch.rewriting.shapes import as_tensor
from entrepot.exporters.torch.rewriting.trees import NUMBERS, UnlikeError, gather, paired, spread


def are_alike(items: Any) -> bool:
    """Whether a list holds numbers, or tensors of one shape."""
    shapes = [[expression(size) for size in each.shape] for each in items if isinstance(each, torch.Tensor)]
    numbers = all(isinstance(each, NUMBERS) for each in items)
    return bool(items) and (numbers or (len(shapes) == len(items) and all(shape == shapes[0] for shape in shapes)))


def one_of(items: Any, index: Any) -> Any:
    """An item of a list; one of them all, if they are alike and which one it is varies."""
    if not are_alike(items) or expression(index).is_Integer:
        return items[index]
    if isinstance(items, Tracked):
        items.look()
    found = torch.stack([as_tensor(each) for each in items])[index]
    return found if isinstance(items[0], torch.Tensor) else found.item()


def exchange(items: Any, index: Any, value: Any) -> None:
    """``items[index] = value`` where it varies which of them it is: each stays unless it is the one."""
    place = as_tensor(index) % len(items)
    leaves: list[Any] = []
    new = spread(value, leaves)
    for at, item in enumerate(list(items)):
        old = spread(item, leaves)
        for one, other in paired(old, new):
            leaves[one.index] = _either(place == at, leaves[other.index], leaves[one.index])
        items[at] = gather(old, leaves)


def _either(holds: torch.Tensor, one: Any, other: Any) -> Any:
    """One of two tensors or numbers that are alike."""
    tensors = as_tensor(one), as_tensor(other)
    sizes = [[expression(size) for size in each.shape] for each in tensors]
    if isinstance(one, torch.Tensor) is not isinstance(other, torch.Tensor) or sizes[0] != sizes[1]:
        raise UnlikeError("an item of a list is exchanged for something of another size")
    if tensors[0].dtype != tensors[1].dtype:
        raise UnlikeError("an item of a list is exchanged for something of another type")
    found = torch.where(holds, *tensors)
    return found if isinstance(one, torch.Tensor) else found.item()


class Product(Unfinished):
    """``product``: every item of one with every item of the next, the last one changing first."""

    def __init__(self, *wholes: Any) -> None:
        self.wholes = wholes
        self._lengths = [each.length if isinstance(each, Unfinished) else len(each) for each in wholes]
        self.length = functools.reduce(operator.mul, self._lengths)

    def parts(self) -> Sequence[Any]:
        """What is gone through."""
        return self.wholes

    def at(self, index: Any) -> Any:
        """One item of each."""
        found = []
        for each, length in zip(reversed(self.wholes), reversed(self._lengths), strict=True):
            found.append(_taken(each, index % length))
            index = index // length
        return tuple(reversed(found))


class Choices(Unfinished):
    """``combinations`` and ``permutations``: some items in every order that counts.

    Args:
        whole: What is chosen from.
        table: The places of the items of each choice.
        length: How many choices there are.
    """

    def __init__(self, whole: Any, table: torch.Tensor, length: Any) -> None:
        self.whole, self.table, self.length = whole, table, length

    def parts(self) -> Sequence[Any]:
        """What is chosen from, and how."""
        return self.whole, self.table, self.length

    def at(self, index: Any) -> Any:
        """The items of a choice."""
        row = self.table.select(0, index)
        return tuple(_taken(self.whole, place.item()) for place in row.unbind(0))

    def columns(self) -> Columns:
        """The numbers of a range that are chosen, as one tensor for each place."""
        span = self.whole
        chosen = self.table * span.step + span.start
        return Columns(*chosen.unbind(1), numbers=[True] * self.table.shape[1], kind=tuple)


def _taken(items: Any, index: Any) -> Any:
    return items.at(index) if isinstance(items, Unfinished) else one_of(items, index)


def _varies(value: Any) -> bool:
    return isinstance(value, Unfinished) and not isinstance(value.length, int)


def _followed(value: Any) -> Any:
    """Something to go through, as what can be gone through in a graph."""
    value = whole(value)
    if isinstance(value, torch.Tensor):
        rows = Rows(value)
        return rows if _varies(rows) else list(value.unbind(0))
    return value if isinstance(value, Unfinished) else list(value)


def _product(plain: Any, *values: Any, repeat: int = 1) -> Any:
    wholes = [_followed(each) for each in values] * repeat
    return Product(*wholes) if any(map(_varies, wholes)) else plain(*wholes)


def _choices(
    holds: Callable[[torch.Tensor, torch.Tensor], torch.Tensor], count: Callable[[Any, int], Any], far: bool
) -> Callable[..., Any]:
    """The rule for a function of ``itertools``.

    Args:
        holds: Whether a choice may have one place before another.
        count: How many choices of so many items there are.
        far: Whether each place is compared with all later ones, not with the next alone.
    """

    def choose(plain: Any, values: Any, r: int | None = None) -> Any:
        items = _followed(values)
        if not _varies(items) or r is None or r < 1:
            return plain(items, r) if r is not None else plain(items)
        axes = [torch.arange(items.length).reshape([-1 if at == axis else 1 for at in range(r)]) for axis in range(r)]
        pairs = [(one, other) for one, other in itertools.combinations(range(r), 2) if far or other == one + 1]
        allowed = torch.ones([items.length] * r, dtype=torch.bool)
        for one, other in pairs:
            allowed = allowed & holds(axes[one], axes[other])
        table = torch.nonzero(allowed)  # in the order of ``itertools``
        if r > 2:  # torch solves no equations of the third degree
            return Choices(items, table, table.shape[0])
        length = count(items.length, r)
        torch._check(table.shape[0] == length)  # noqa: SLF001 - torch's own word for what is known of sizes
        return Choices(items, table, length)

    return choose


def _falling(size: Any, count: int) -> Any:
    return functools.reduce(operator.mul, [size - at for at in range(count)])


def _rising(size: Any, count: int) -> Any:
    return functools.reduce(operator.mul, [size + at for at in range(count)])


def _pairwise(plain: Any, values: Any) -> Any:
    items = _followed(values)
    return Together(items[:-1], items[1:]) if _varies(items) else plain(items)


def transposed(plain: Any, rows: Any, **how: Any) -> Any:
    """``zip(*rows)``."""
    from entrepot.exporters.torch.rewriting.calls import callee

    rows = whole(rows)
    if isinstance(rows, Choices) and isinstance(rows.whole, Span):
        rows = rows.columns()
    if isinstance(rows, Columns):
        pairs = zip(rows.columns, rows.numbers, strict=True)
        return [Numbers(column) if number else Rows(column) for column, number in pairs]
    if isinstance(rows, Apart) and type(rows.row.model) is tuple:
        found = [picked(rows, operator.itemgetter(at)) for at in range(len(rows.row.parts))]
        if all(column is not None for column in found):
            return found
    return callee(plain)(*rows, **how)


def keyed(pairs: Any) -> dict[Any, Any]:
    """``{k: f(k) for k in ks}``, given the pairs."""
    return dict(pairs)


def _number(count: Callable[[Any, int], Any], plain: Any, size: Any, chosen: Any) -> Any:
    """``comb`` and ``perm``."""
    varies = isinstance(size, torch.SymInt) and isinstance(chosen, int) and chosen > 0
    return count(size, chosen) if varies else plain(size, chosen)


def _combinations(size: Any, count: int) -> Any:
    return _falling(size, count) // math.factorial(count)


FUNCTIONS: dict[Any, Callable[..., Any]] = {
    itertools.product: _product,
    itertools.combinations: _choices(torch.lt, _combinations, False),
    itertools.combinations_with_replacement: _choices(torch.le, lambda n, r: _rising(n, r) // math.factorial(r), False),
    itertools.permutations: _choices(torch.ne, _falling, True),
    itertools.pairwise: _pairwise,
    math.comb: functools.partial(_number, _combinations),
    math.perm: functools.partial(_number, _falling),
}
