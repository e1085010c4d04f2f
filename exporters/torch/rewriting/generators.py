"""Generators as functions that return all of their items in a list, whose loops can then be followed."""

from __future__ import annotations

import ast
from typing import Any

_MADE = "_ep_items"
_ENDLESS = frozenset(("count", "cycle", "repeat"))


def collected(tree: ast.FunctionDef) -> bool:
    """Let a generator return its items at once, if that is plainly the same; whether it is.

    One that need not end, that is sent values, or that is decorated (as a context manager, for one) is left alone.
    """
    own = _Own()
    own.visit_body(tree)
    if tree.decorator_list or own.refused:
        return False
    _Collecting().visit_body(tree)
    tree.body = [
        ast.Assign([ast.Name(_MADE, ast.Store())], ast.List([], ast.Load())),
        *tree.body,
        ast.Return(ast.Name(_MADE, ast.Load())),
    ]
    for statement in (tree.body[0], tree.body[-1]):
        ast.copy_location(statement, tree)
    ast.fix_missing_locations(tree)
    return True


class _Body(ast.NodeTransformer):
    """Visits what belongs to a function, but not to others inside."""

    def visit_body(self, tree: ast.FunctionDef) -> None:
        """Visit its statements."""
        changed = (self.visit(statement) for statement in tree.body)
        tree.body = [statement for statement in changed if statement is not None]

    def _left(self, node: ast.AST) -> ast.AST:
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = visit_Lambda = visit_ClassDef = _left


class _Own(_Body):
    """Whether a generator does something that a list cannot stand for."""

    def __init__(self) -> None:
        self.refused = False

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        if isinstance(node.value, ast.Yield | ast.YieldFrom):
            for child in ast.iter_child_nodes(node.value):
                self.visit(child)
            return node
        return self.generic_visit(node)

    def visit_Return(self, node: ast.Return) -> ast.AST:
        self.refused |= node.value is not None
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        self.refused |= name in _ENDLESS
        return self.generic_visit(node)

    def _refuse(self, node: ast.AST) -> ast.AST:
        self.refused = True
        return node

    visit_While = visit_Yield = visit_YieldFrom = visit_Await = _refuse


class _Collecting(_Body):
    """Items are put into a list."""

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        match node.value:
            case ast.Yield(value):
                return _put("append", value or ast.Constant(None), node)
            case ast.YieldFrom(value):
                return _put("extend", value, node)
        return node

    def visit_Return(self, node: ast.Return) -> ast.AST:
        return ast.copy_location(ast.Return(ast.Name(_MADE, ast.Load())), node)


def _put(how: str, value: Any, node: ast.Expr) -> ast.AST:
    call = ast.Call(ast.Attribute(ast.Name(_MADE, ast.Load()), how, ast.Load()), [value], [])
    return ast.copy_location(ast.Expr(call), node)
