"""``return``, ``break`` and ``continue`` inside branches, written as branches that reach the end of their block.

Before: ``if c: return a`` and then the rest. After: ``if c: return a`` with the rest as its ``else``. A ``break`` becomes a
flag that the loop tests, a ``return`` in a loop becomes a flag and a value that are looked at after it. Statements after a branch that may or may
not leave are repeated in both arms.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Sequence

RETURNED, RESULT = "_ep_returned", "_ep_result"


class TooIntricateError(Exception):
    """A function jumps in a way that is not written anew; it is left as it is."""


def straighten(function: ast.FunctionDef) -> None:
    """Rewrite the jumps of a function in place.

    Raises:
        TooIntricateError: It returns out of a ``with`` or ``try`` on some paths only.
    """
    function.body = _Jumps().function(function.body)


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
    if not body:
        return False
    last = body[-1]
    if isinstance(last, ast.Return | ast.Break | ast.Continue | ast.Raise):
        return True
    if isinstance(last, ast.If):
        return _leaves(last.body) and _leaves(last.orelse)
    return isinstance(last, ast.With) and _leaves(last.body)


def _only_returns(loop: ast.For | ast.While) -> bool:
    """Whether a loop can be left by returning only."""
    forever = isinstance(loop, ast.While) and isinstance(loop.test, ast.Constant) and bool(loop.test.value)
    return forever and not jumps(loop.body, ast.Break)


class _Jumps:
    def __init__(self) -> None:
        self._loops = 0

    def function(self, body: list[ast.stmt]) -> list[ast.stmt]:
        return self._block(body, ())

    def _block(self, body: Sequence[ast.stmt], kinds: tuple[type[ast.AST], ...], flag: str = "") -> list[ast.stmt]:
        """A block of a function (no kinds but Return) or of a loop, whose jumps end the block."""
        done: list[ast.stmt] = []
        inside = (ast.Return, *kinds)
        for at, statement in enumerate(body):
            rest = list(body[at + 1 :])
            match statement:
                case ast.Return() if flag:
                    value = statement.value or ast.Constant(None)
                    return [*done, *_at(statement, _assign(RESULT, value), *map(_set, (RETURNED, flag)))]
                case ast.Return() | ast.Raise():
                    return [*done, statement]
                case ast.Break():
                    return [*done, *_at(statement, _set(flag))]
                case ast.Continue():
                    return [*done, *_at(statement, ast.Pass())]
                case ast.If() if jumps(statement, *inside):
                    arms = [
                        self._block([*arm, *([] if _leaves(arm) else copy.deepcopy(rest))], kinds, flag) or [ast.Pass()]
                        for arm in (statement.body, statement.orelse)
                    ]
                    if not flag:
                        end = _at(statement, ast.Return(ast.Constant(None)))
                        arms = [arm if _leaves(arm) else [*arm, *end] for arm in arms]
                    return [*done, *_at(statement, ast.If(statement.test, *arms))]
                case ast.If():
                    statement.body = self._block(statement.body, kinds, flag)
                    statement.orelse = self._block(statement.orelse, kinds, flag)
                    done.append(statement)
                case ast.For() | ast.While():
                    returns, endless = jumps(statement, ast.Return), _only_returns(statement)
                    done += self._loop(statement)
                    if returns:
                        if endless:
                            return [*done, *self._block(_at(statement, ast.Return(_name(RESULT))), kinds, flag)]
                        after = ast.If(_name(RETURNED), [ast.Return(_name(RESULT))], [])
                        return [*done, *self._block([*_at(statement, after), *rest], kinds, flag)]
                case ast.With() | ast.Try():
                    leaves = isinstance(statement, ast.With) and _leaves(statement.body)
                    if jumps(statement, *inside) and (flag or not leaves):
                        raise TooIntricateError
                    for block in ("body", "orelse", "finalbody"):
                        if getattr(statement, block, None):
                            setattr(statement, block, self._block(getattr(statement, block), kinds, flag))
                    for handler in getattr(statement, "handlers", ()):
                        handler.body = self._block(handler.body, kinds, flag)
                    done.append(statement)
                case _:
                    done.append(statement)
        return done

    def _loop(self, loop: ast.For | ast.While) -> list[ast.stmt]:
        before: list[ast.stmt] = []
        leaves = jumps(loop.body, ast.Break, ast.Return)
        returns = jumps(loop.body, ast.Return)
        self._loops += 1
        flag = f"_ep_left_{self._loops}"
        if leaves:
            before += _at(loop, _set(flag, value=False), *([_set(RETURNED, value=False)] if returns else []))
            loop.flag = flag  # type: ignore[union-attr]
        loop.body = self._block(loop.body, (ast.Break, ast.Continue), flag)
        after: list[ast.stmt] = []
        if loop.orelse:
            otherwise = self._block(loop.orelse, ())
            if jumps(otherwise, ast.Return, ast.Break, ast.Continue):
                raise TooIntricateError
            after = _at(loop, ast.If(ast.UnaryOp(ast.Not(), _name(flag)), otherwise, [])) if leaves else otherwise
            loop.orelse = []
        return [*before, loop, *after]


def _name(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def _assign(name: str, value: ast.expr) -> ast.stmt:
    return ast.Assign([ast.Name(name, ast.Store())], value)


def _set(name: str, *, value: bool = True) -> ast.stmt:
    return _assign(name, ast.Constant(value))


def _at(place: ast.stmt, *statements: ast.stmt) -> list[ast.stmt]:
    return [ast.fix_missing_locations(ast.copy_location(each, place)) for each in statements]
