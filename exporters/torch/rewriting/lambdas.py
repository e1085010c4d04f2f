"""The text of a lambda, as that of a function."""

from __future__ import annotations

import ast
import copy
import functools
import inspect
import types
from collections.abc import Iterable
from typing import TypeAlias

_Extent: TypeAlias = tuple[int, int, int]


def source_of_lambda(code: types.CodeType) -> ast.FunctionDef | None:
    """A lambda as a function that returns its value; ``None`` if its text is not found, or could be another's."""
    try:
        lines, _ = inspect.findsource(code)
        parsed = _parsed("".join(lines))
    except (OSError, TypeError, SyntaxError):
        return None
    extent = _extent((first, last, left, right) for first, last, left, right in code.co_positions() if left != right)
    found = {ast.dump(each): each for each in ast.walk(parsed) if _may_be(each, code, extent)}
    if len(found) != 1:
        return None
    (text,) = copy.deepcopy(list(found.values()))
    if not isinstance(text, ast.Lambda):
        return None
    body = ast.copy_location(ast.Return(text.body), text.body)
    return ast.copy_location(ast.FunctionDef("_ep_lambda", text.args, [body], []), text)


@functools.lru_cache(maxsize=4)
def _parsed(text: str) -> ast.Module:
    return ast.parse(text)


def _may_be(node: ast.AST, code: types.CodeType, extent: _Extent) -> bool:
    if not isinstance(node, ast.Lambda) or node.lineno != code.co_firstlineno:
        return False
    arguments = node.args
    names = [each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    if tuple(names) != code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]:
        return False
    spans = ((each.lineno, each.end_lineno, each.col_offset, each.end_col_offset) for each in _within(node.body))
    return _extent(spans) == extent


def _within(node: ast.expr) -> list[ast.expr]:
    return [each for each in ast.walk(node) if isinstance(each, ast.expr)]


def _extent(spans: Iterable[tuple[int | None, int | None, int | None, int | None]]) -> _Extent:
    """The first line, the last one, and how wide it is: a function that is written anew has other columns."""
    known = [(a, b, c, d) for a, b, c, d in spans if None not in (a, b, c, d)]
    if not known:
        return (0, 0, 0)
    (first, left), (last, right) = min((a, c) for a, _, c, _ in known), max((b, d) for _, b, _, d in known)
    return (first or 0, last or 0, (right or 0) - (left or 0))
