"""``return``, ``break`` and ``continue`` inside branches, written as branches that reach the end of their block.

Before: ``if c: return a``, and then the rest. After: ``if c: return a``, with the rest as its ``else``. A ``break``
becomes a flag that the loop tests; a ``return`` in a loop becomes a flag and a value, which are looked at after it.
What follows a branch that may or may not jump is repeated in both arms.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Sequence
from dataclasses import dataclass

RETURNED, RESULT = "_ep_returned", "_ep_result"


class TooIntricateError(Exception):
    """A function jumps in a way that is not written anew; it is left as it is."""


def straighten(function: ast.FunctionDef) -> None:
    """Rewrite the jumps of a function in place.

    Raises:
        TooIntricateError: It returns out of a ``with``, ``match`` or what a ``try`` tries on some paths only.
    """
    function.body = _Block([0]).straight(function.body)


def jumps(node: ast.AST | Sequence[ast.AST], *kinds: type[ast.AST]) -> bool:
    """Whether statements contain a jump out of themselves, other than one that an inner loop or function takes."""
    if not isinstance(node, ast.AST):
        return any(jumps(each, *kinds) for each in node)
    if isinstance(node, kinds):
        return True
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
        return False
    if isinstance(node, ast.For | ast.While):
        kinds = tuple(kind for kind in kinds if kind is ast.Return)
    return any(jumps(each, *kinds) for each in ast.iter_child_nodes(node)) if kinds else False


def _leaves(body: Sequence[ast.stmt]) -> bool:
    """Whether a block never reaches its end."""
    match body[-1] if body else None:
        case ast.Return() | ast.Break() | ast.Continue() | ast.Raise():
            return True
        case ast.If(_, then, otherwise):
            return _leaves(then) and _leaves(otherwise)
        case ast.With(_, inner):
            return _leaves(inner)
        case ast.Try(inner, handlers, otherwise, last):
            goes_on = not (_leaves(inner) or _leaves(otherwise))
            return _leaves(last) or not (goes_on or any(not _leaves(each.body) for each in handlers))
    return False


def _only_returns(loop: ast.For | ast.While) -> bool:
    """Whether a loop can be left by returning only."""
    forever = isinstance(loop, ast.While) and isinstance(loop.test, ast.Constant) and bool(loop.test.value)
    return forever and not jumps(loop.body, ast.Break)


@dataclass(frozen=True)
class _Block:
    """A block of a function, or of a loop.

    Attributes:
        loops: How many loops there are so far.
        flag: The variable that says that the loop is left; empty for a function.
    """

    loops: list[int]
    flag: str = ""

    def straight(self, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        """The same without jumps, but for a ``return`` at the end of a function's paths."""
        done: list[ast.stmt] = []
        for at, statement in enumerate(body):
            end = self._end(statement, list(body[at + 1 :]))
            if end is not None:
                return [*done, *end]
            done.append(self._inner(statement))
        return done

    @property
    def _kinds(self) -> tuple[type[ast.AST], ...]:
        return (ast.Return, ast.Break, ast.Continue) if self.flag else (ast.Return,)

    def _end(self, statement: ast.stmt, rest: list[ast.stmt]) -> list[ast.stmt] | None:
        """What a block ends with from a statement on that may leave it; ``None`` for one that does not."""
        match statement:
            case ast.Return() if self.flag:
                value = statement.value or ast.Constant(None)
                return _at(statement, _assign(RESULT, value), _set(RETURNED), _set(self.flag))
            case ast.Return() | ast.Raise():
                return [statement]
            case ast.Break() | ast.Continue():
                return _at(statement, _set(self.flag) if isinstance(statement, ast.Break) else ast.Pass())
            case ast.If() if jumps(statement, *self._kinds):
                return _at(
                    statement,
                    ast.If(statement.test, *(self._arm(arm, rest) for arm in (statement.body, statement.orelse))),
                )
            case ast.For() | ast.While():
                return self._loop(statement, rest)
        return self._attempt(statement, rest) if isinstance(statement, ast.Try) else None

    def _arm(self, arm: list[ast.stmt], rest: Sequence[ast.stmt]) -> list[ast.stmt]:
        """An arm of a branch, with all that follows unless it never gets there."""
        new = self.straight([*arm, *([] if _leaves(arm) else copy.deepcopy(list(rest)))]) or [ast.Pass()]
        return new if self.flag or _leaves(new) else [*new, ast.Return(ast.Constant(None))]

    def _attempt(self, attempt: ast.Try, rest: list[ast.stmt]) -> list[ast.stmt] | None:
        """A ``try`` that may leave its block; what follows is in its handlers and its ``else``, so not caught."""
        if not jumps(attempt, *self._kinds) or jumps(attempt.finalbody, *self._kinds):
            return None
        body, goes_on = attempt.body, not _leaves([attempt]) and bool(rest)
        if (jumps(body, *self._kinds) and not _leaves(body)) or (goes_on and attempt.finalbody):
            raise TooIntricateError
        attempt.body = self.straight(body) or [ast.Pass()]
        for handler in attempt.handlers:
            handler.body = self._arm(handler.body, rest)
        attempt.orelse = [] if _leaves(body) else self._arm(attempt.orelse, rest)
        return _at(attempt, attempt)

    def _inner(self, statement: ast.stmt) -> ast.stmt:
        """A statement that goes on to the next one, with its own blocks rewritten."""
        match statement:
            case ast.If():
                statement.body, statement.orelse = self.straight(statement.body), self.straight(statement.orelse)
            case ast.With() | ast.Try() | ast.Match():
                if jumps(statement, *self._kinds) and (self.flag or not _leaves([statement])):
                    raise TooIntricateError
                for block in ("body", "orelse", "finalbody"):
                    if getattr(statement, block, None):
                        setattr(statement, block, self.straight(getattr(statement, block)))
                for handler in getattr(statement, "handlers", ()):
                    handler.body = self.straight(handler.body)
        return statement

    def _loop(self, loop: ast.For | ast.While, rest: list[ast.stmt]) -> list[ast.stmt]:
        """A loop, whose jumps set a flag, and all that follows."""
        breaks, returns, endless = jumps(loop.body, ast.Break), jumps(loop, ast.Return), _only_returns(loop)
        leaves = breaks or returns
        self.loops[0] += 1
        inner = _Block(self.loops, f"_ep_left_{self.loops[0]}")
        before = [_set(inner.flag, value=False)] if leaves else []
        before += [_set(RETURNED, value=False)] if returns else []
        if leaves:
            loop.flag = inner.flag  # type: ignore[union-attr]
        loop.body = inner.straight(loop.body)
        after: list[ast.stmt] = []
        if returns:
            value = ast.Return(_name(RESULT))
            after = [value if endless else ast.If(_name(RETURNED if breaks else inner.flag), [value], [])]
        if loop.orelse:
            unless = ast.If(ast.UnaryOp(ast.Not(), _name(inner.flag)), loop.orelse, [])
            after += [unless] if leaves else loop.orelse
            loop.orelse = []
        return [*_at(loop, *before), loop, *self.straight([*_at(loop, *after), *([] if endless else rest)])]


def _name(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def _assign(name: str, value: ast.expr) -> ast.stmt:
    return ast.Assign([ast.Name(name, ast.Store())], value)


def _set(name: str, *, value: bool = True) -> ast.stmt:
    return _assign(name, ast.Constant(value))


def _at(place: ast.stmt, *statements: ast.stmt) -> list[ast.stmt]:
    return [ast.fix_missing_locations(ast.copy_location(each, place)) for each in statements]
