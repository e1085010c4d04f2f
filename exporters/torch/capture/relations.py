"""Which sizes follow from others, as a module says when it runs on tensors without values whose sizes are symbols.

What torch notes on the way are equations: ``mask == past + new`` where two tensors are added, ``16 == width`` where one
meets a weight. They are solved for as few sizes as possible; the prober tries the solutions on the module itself.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import sympy  # type: ignore[import-untyped]
import torch

from entrepot.exporters.axes.groups import Axis, axis_word
from entrepot.exporters.axes.relations import Relation
from entrepot.exporters.torch.capture.numpy_arrays import numpy_of_sizes
from entrepot.exporters.torch.capture.rewriting import Rewriting, decided_flags
from entrepot.exporters.torch.capture.symbolic import symbolic_run
from entrepot.exporters.torch.running.eager import Eager
from entrepot.exporters.torch.running.errors import MODEL_ERRORS
from entrepot.exporters.torch.running.guard import quiet
from entrepot.exporters.torch.translations.packing import padded_recurrences
from entrepot.exporters.torch.upstream import masks_as_they_are, size_functions
from entrepot.ir.typing.formula import Formula


def suggested_relations(
    eager: Eager, tensors: Sequence[torch.Tensor], equal: Sequence[Collection[Axis]]
) -> list[Relation] | None:
    """The relations between the axes of ``tensors`` that a run without values notes.

    What it noted before it failed is as good; ``None`` if that is nothing.

    Args:
        eager: The module.
        tensors: What it takes.
        equal: Axes that are known to have one size.
    """
    with (
        eager.restoring(),
        quiet(),
        numpy_of_sizes(),
        decided_flags(),
        masks_as_they_are(),
        padded_recurrences(),
        Rewriting(),
    ):
        noted = symbolic_run(eager.follow, tensors, MODEL_ERRORS)
    axes = {symbol: axis for axis, symbol in noted.axes.items()}
    sizes = {symbol: tensors[index].shape[axis] for symbol, (index, axis) in axes.items()}
    solved = _Solved(sizes)
    for first, *others in map(sorted, equal):
        for other in others:
            solved.add(noted.axes.get(first, 0) - noted.axes.get(other, 0))
    known = {*solved.found}
    sides = [_told_apart(*each) for each in noted.equations]
    made = {number: term for term, number in sides if number > 1 and term.is_Symbol}
    for left, right in _about_symbols(sides, made):
        solved.add(left - right)
    needed = {*solved.found}
    for difference in _squeezed(solved, noted.at_most):
        solved.add(_meaning(difference, made, solved))
    found = [*_relations(solved, axes, known, needed)]
    return found if found or noted.complete else None


def _about_symbols(sides: Sequence[tuple[Any, Any]], made: Mapping[Any, Any]) -> Iterator[tuple[Any, Any]]:
    """The equations; where a loop of Python has made a number of a size, that number elsewhere is the size again.

    ``length == 5`` and ``rows == 5 + 1`` come of ``range(length)``, and of results beside ``rows[:-1]``.

    Args:
        sides: Terms and the numbers that they are.
        made: The sizes that have become numbers, by number.
    """
    meant = {made[number] for term, number in sides if number in made and not term.is_Symbol}
    for term, number in sides:
        if number in made and not term.is_Symbol and made[number] not in term.free_symbols:
            yield term, made[number]
        elif term not in meant:
            yield term, number


def _meaning(difference: Any, made: Mapping[Any, Any], solved: _Solved) -> Any:
    """What is zero, with the size in place of the number that a loop has made of it."""
    constant, rest = sympy.expand(difference).as_coeff_Add()
    size = made.get(abs(constant))
    if size is None or size in rest.free_symbols:
        return difference
    solved.found.pop(size, None)
    return rest + size * sympy.sign(constant)


def _told_apart(left: Any, right: Any) -> tuple[Any, Any]:
    """The two sides of an equation as a term and the number that it is."""
    if left.is_Integer or right.is_Integer:
        return (left, right) if right.is_Integer else (right, left)
    constant, term = sympy.expand(left - right).as_coeff_Add()
    return (-term, constant) if constant > 0 else (term, -constant)


class _Solved:
    """Equations over sizes, solved as they come.

    Args:
        sizes: The symbols and their values, which every equation holds for.

    Attributes:
        found: Symbols that follow from others, with how.
    """

    def __init__(self, sizes: Mapping[Any, int]) -> None:
        self._sizes = sizes
        self.found: dict[Any, Any] = {}

    def add(self, difference: Any) -> None:
        """Take in that something is zero."""
        difference = self.replaced(self._within(sympy.sympify(difference)))
        choices = [choice for symbol in difference.free_symbols if (choice := self._solution(difference, symbol))]
        if not choices:
            return
        symbol, value = min(choices, key=self._awkwardness)
        self.found = {known: term.xreplace({symbol: value}) for known, term in self.found.items()}
        self.found[symbol] = value

    def replaced(self, term: Any) -> Any:
        """A term over the symbols that follow from nothing."""
        return sympy.sympify(term).xreplace(self.found)

    def _within(self, term: Any) -> Any:
        """A term where slices begin before the end, as those of the sample do: ``x[n:]`` has ``x - n`` elements."""
        lengths = {}
        for slice_ in term.atoms(size_functions.Max):
            known, rest = slice_.xreplace(self._sizes), [each for each in slice_.args if not each.is_zero]
            if len(rest) < len(slice_.args) and known.is_positive:
                begins = {begin: min(begin.args, key=self._at_sample) for begin in rest[0].atoms(size_functions.Min)}
                lengths[slice_] = rest[0].xreplace(begins)
        return term.xreplace(lengths)

    def _at_sample(self, term: Any) -> int:
        return int(term.xreplace(self._sizes))

    def _solution(self, difference: Any, symbol: Any) -> tuple[Any, Any] | None:
        """The symbol in terms of the others, if they make it a whole number; 1 is too often a coincidence."""
        factor = sympy.expand(difference).coeff(symbol, 1)
        if factor not in (1, -1) or symbol not in self._sizes:
            return None
        rest = sympy.expand(difference - factor * symbol)
        value = -rest / factor
        fits = symbol not in value.free_symbols and value.free_symbols <= self._sizes.keys()
        return (symbol, value) if fits and not (value.is_Integer and value <= 1) else None

    def _awkwardness(self, choice: tuple[Any, Any]) -> tuple[int, int]:
        """Sums rather than differences, later axes rather than earlier ones."""
        symbol, value = choice
        terms = sympy.Add.make_args(value)
        return sum(term.could_extract_minus_sign() for term in terms), -list(self._sizes).index(symbol)


def _squeezed(solved: _Solved, at_most: Sequence[Any]) -> Iterator[Any]:
    """Differences that are at most zero and at least zero: a path that is taken for one size only."""
    terms = dict.fromkeys(sympy.expand(solved.replaced(term)) for term in at_most)
    for term in terms:
        if term.free_symbols and sympy.expand(-term) in terms:
            yield term


def _relations(
    solved: _Solved, axes: Mapping[Any, Axis], known: Collection[Any], needed: Collection[Any]
) -> Iterator[Relation]:
    words = {symbol: sympy.Symbol(axis_word(axis), integer=True) for symbol, axis in axes.items()}
    for symbol, value in solved.found.items():
        formula = Formula.of(str(value.xreplace(words)))
        if formula is not None and formula.names and symbol not in known:
            yield Relation(frozenset([axes[symbol]]), formula, certain=symbol not in needed)
