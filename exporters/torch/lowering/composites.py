"""Operators that are made of others, left whole or taken apart as a table says, for as long as a program is decomposed.

torch (2.13) looks them all up, and sets each by itself, for every program: a fifth of a second, however small that is.
What it has set is remembered here, and set again.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from entrepot.exporters.torch.capture.upstream import has_own_kernel
from entrepot.exporters.torch.upstream import (
    composites_known,
    fake_rules,
    forget_dispatch,
    split_composites,
    with_composites,
)


@contextlib.contextmanager
def decomposing(table: Mapping[Any, Callable[..., Any]]) -> Iterator[tuple[dict[Any, Any], set[Any]]]:
    """Inside, operators that are made of others are what a table says of them, as in ``run_decompositions``.

    Args:
        table: Not changed between calls: it is known again by being the same one.

    Yields:
        The rest of the table, for ``make_fx``, and the operators made of others that return new tensors.
    """
    known = next((each for each in _REMEMBERED if each.is_of(table)), None)
    if known is not None:
        with known.set_again():
            yield dict(known.rest), set(known.before)
        return
    composites, rest = split_composites(dict(table))
    for operator in [each for each in composites if has_own_kernel(each)]:  # what they are made of is not asked for
        rest[operator] = composites.pop(operator)
    before, rules = {operator: dict(operator.py_kernels) for operator in composites}, dict(fake_rules)
    try:
        with with_composites(composites):
            inside = {operator: dict(operator.py_kernels) for operator in composites}
            added = {operator: rule for operator, rule in fake_rules.items() if operator not in rules}
            _REMEMBERED[:] = [_Set(table, composites_known(), dict(rest), before, inside, added)]
            yield rest, set(composites)
    finally:  # torch drops them
        fake_rules.update({operator: rule for operator, rule in rules.items() if operator in composites})


@dataclass(frozen=True)
class _Set:
    """What torch has set for a table.

    Attributes:
        table: It.
        known: The operators that there were.
        rest: What of the table is for other operators.
        before: By operator, its kernels outside.
        inside: And inside.
        rules: What they do to tensors without values inside, where nothing else says so.
    """

    table: Mapping[Any, Any]
    known: list[str]
    rest: dict[Any, Any]
    before: dict[Any, dict[Any, Any]]
    inside: dict[Any, dict[Any, Any]]
    rules: dict[Any, Any]

    def is_of(self, table: Mapping[Any, Any]) -> bool:
        """Whether torch would set the same for a table now."""
        return (
            self.table is table
            and all(operator.py_kernels == kernels for operator, kernels in self.before.items())
            and fake_rules.keys().isdisjoint(self.rules)
            and self.known == composites_known()
        )

    @contextlib.contextmanager
    def set_again(self) -> Iterator[None]:
        """As ``with_composites``."""
        fake_rules.update(self.rules)
        _put(self.inside)
        try:
            yield
        finally:
            _put(self.before)
            for operator in self.rules:
                del fake_rules[operator]


_REMEMBERED: list[_Set] = []
"""The last one: exports use the same table as long as no user registers a translation."""


def _put(kernels: Mapping[Any, Mapping[Any, Any]]) -> None:
    for operator, own in kernels.items():
        operator.py_kernels.clear()
        operator.py_kernels.update(own)
        forget_dispatch(operator)
