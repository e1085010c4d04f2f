"""Which variables matter only while a block of a function runs: it assigns them, and nothing reads what it leaves.

Temporaries of loops are of this kind. Were they carried from turn to turn, they would have to have one size in all of
them, and be there before the first. What a branch makes of a variable for its own use would have to be like what the
variable was before.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from entrepot.exporters.torch.rewriting.scopes import Names

Block = ast.If | ast.For | ast.While
_LOOKING = frozenset({"locals", "vars", "eval", "exec"})
"""Functions that read variables without their names."""


class Passing(NamedTuple):
    """Variables of a block that nothing reads after it.

    Attributes:
        all: Whatever the block does with them.
        new: Those of which the block does not read either what they are before it.
    """

    all: frozenset[str]
    new: frozenset[str]


def passing(function: ast.FunctionDef, names: Names) -> dict[Block, Passing]:
    """The variables of each block of a function that nothing reads after one of its runs.

    Args:
        function: Without jumps, but for those at the end of its paths.
        names: Its variables.
    """
    every = frozenset(names.every)
    kept = every if _LOOKING & {*_names(function, ast.Load)} else every & {*names.inner, *names.free}
    finder = _Passing(every, kept)
    finder.before(function.body, kept)
    return finder.found


class _Passing:
    """Goes through blocks from their end to their beginning, with the variables that what follows reads.

    Args:
        every: All variables.
        kept: Those that may be read anywhere.

    Attributes:
        found: For each branch and loop, the variables that nothing reads after it.
    """

    def __init__(self, every: frozenset[str], kept: frozenset[str]) -> None:
        self.every = every
        self.kept = kept
        self.found: dict[Block, Passing] = {}

    def before(self, body: Sequence[ast.stmt], after: frozenset[str]) -> frozenset[str]:
        """Those that a block or what follows it reads, with the values they have before it."""
        for statement in reversed(body):
            after = self._before(statement, after) | self.kept
        return after

    def _before(self, node: ast.stmt, after: frozenset[str]) -> frozenset[str]:
        match node:
            case ast.If():
                before = self._arms(node, after)
            case ast.For(target, iterated):
                before = self._turns(node, after, _reads(target), _stored(target)) | _reads(iterated)
            case ast.While(test):
                before = self._turns(node, after, _reads(test))
            case ast.Return() | ast.Raise():
                before = _reads(node)
            case ast.Assign(targets, value):
                stored = frozenset[str]().union(*map(_stored, targets))
                before = after - stored | _reads(value).union(*map(_reads, targets))
            case ast.AugAssign(target):
                before = after | _reads(node) | _stored(target)
            case ast.With(body=body):
                before = _reads(node) | self._within(after, [body])
            case ast.Try() | ast.TryStar() | ast.Match():
                before = self._within(self.every, _blocks(node))
            case _:
                before = after | _reads(node)
        return before

    def _arms(self, node: ast.If, after: frozenset[str]) -> frozenset[str]:
        start = self.before(node.body, after) | self.before(node.orelse, after) | _reads(node.test)
        self._note(node, after, start)
        return start

    def _turns(
        self,
        node: ast.For | ast.While,
        after: frozenset[str],
        head: frozenset[str],
        items: frozenset[str] = frozenset(),
    ) -> frozenset[str]:
        """Of a loop: what a turn leaves is read in the next one, or after the loop.

        Args:
            node: The loop.
            after: What is read after it.
            head: What is read before each turn.
            items: What is stored before each turn.
        """
        flag = getattr(node, "flag", "")
        start = after | head | ({flag} if flag else set())
        while more := self.before(node.body, start) - items - start:
            start |= more
        self._note(node, start | (_reads(node.iter) if isinstance(node, ast.For) else frozenset()), frozenset())
        return start

    def _within(self, kept: frozenset[str], blocks: Iterable[list[ast.stmt]]) -> frozenset[str]:
        """Of blocks that may be left anywhere, where some variables are read."""
        outer, self.kept = self.kept, self.kept | kept
        start = kept.union(*(self.before(block, self.kept) for block in blocks))
        self.kept = outer
        return start

    def _note(self, node: Block, after: frozenset[str], before: frozenset[str]) -> None:
        unread = (_stored_anywhere(node) & self.every) - after - self.kept
        self.found[node] = Passing(unread, unread - before)


def _blocks(node: ast.Try | ast.TryStar | ast.Match) -> Iterator[list[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        if block := getattr(node, name, None):
            yield block
    for part in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
        yield part.body


def _names(node: ast.AST, *kinds: type[ast.expr_context]) -> Iterator[str]:
    return (each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, kinds))


def _stored_anywhere(node: ast.AST) -> frozenset[str]:
    return frozenset(_names(node, ast.Store, ast.Del))


def _stored(target: ast.expr) -> frozenset[str]:
    """The variables that an assignment gives values, whatever they had before."""
    match target:
        case ast.Name(name):
            return frozenset([name])
        case ast.Tuple(parts) | ast.List(parts):
            return frozenset[str]().union(*map(_stored, parts))
        case ast.Starred(value):
            return _stored(value)
    return frozenset()


def _reads(node: ast.AST | None) -> frozenset[str]:
    """The variables that an expression reads; those of a comprehension are its own."""
    match node:
        case None:
            return frozenset()
        case ast.Name(name, ast.Load()):
            return frozenset([name])
        case (
            ast.ListComp(generators=generators)
            | ast.SetComp(generators=generators)
            | ast.GeneratorExp(generators=generators)
            | ast.DictComp(generators=generators)
        ):
            own = frozenset[str]().union(*(_stored(each.target) for each in generators))
            first = _reads(generators[0].iter)
            return first | frozenset[str]().union(*map(_reads, ast.iter_child_nodes(node))) - own
    return frozenset[str]().union(*map(_reads, ast.iter_child_nodes(node)))
