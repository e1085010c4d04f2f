"""A function's branches and loops as calls that decide, when they run, whether Python or the graph takes them.

Before: ``if c: y = a``. After::

    def then():
        nonlocal y
        y = a

    def otherwise(): ...
    def get(): return (y, a)
    def put(values): nonlocal y, a; (y, a) = values

    steps.branch(c, then, otherwise, State(get, put, ("y", "a")), line)
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from entrepot.exporters.torch.rewriting.expressions import Expressions
from entrepot.exporters.torch.rewriting.jumps import jumps
from entrepot.exporters.torch.rewriting.liveness import passing
from entrepot.exporters.torch.rewriting.scopes import STEPS, Names, always_raises, mentions, names_in


class Statements(Expressions):
    """Rewrites the statements of one function.

    Args:
        names: The variables of the function.
        first: Its first argument, which ``super()`` means.
        function: The function itself.
    """

    def __init__(self, names: Names, first: str, function: ast.FunctionDef) -> None:
        super().__init__(first)
        self._names = names
        self._mentions = mentions(function)
        self._passing = passing(function, names)
        self._count = 0
        self._around: list[str] = []

    def visit_If(self, node: ast.If) -> Any:
        """A branch."""
        state, unread = names_in([node], self._names), self._passing[node]
        returns = jumps([*node.body, *node.orelse], ast.Return)
        raises = (always_raises(node.body), always_raises(node.orelse))
        line = node.lineno
        self._count += 1
        mark = self._count
        test = self.condition(node.test)
        then, otherwise = (
            self._function(f"{word}_{mark}", self._visited(arm), state)
            for word, arm in (("then", node.body), ("else", node.orelse))
        )
        arguments = [
            test,
            _load(then.name),
            _load(otherwise.name),
            self._state(mark, state, unread.all),
            ast.Constant(line),
            ast.Tuple([ast.Constant(each) for each in raises], ast.Load()),
        ]
        call = _steps("choose" if returns else "branch", arguments)
        last = ast.Return(call) if returns else ast.Expr(call)
        return _at(node, *_forgotten(unread.new), then, otherwise, *self._accessors(mark, state), last)

    def visit_While(self, node: ast.While) -> Any:
        """A loop that goes on while a condition holds."""
        state, unread = names_in([node], self._names), self._passing[node]
        self._count += 1
        mark = self._count
        test: ast.expr = node.test
        plain = not any(isinstance(each, ast.Call | ast.NamedExpr) for each in ast.walk(test))
        if flag := getattr(node, "flag", ""):
            test = ast.BoolOp(ast.And(), [ast.UnaryOp(ast.Not(), _load(flag)), test])
        condition = self._function(f"test_{mark}", [ast.Return(self.condition(test))], state)
        body = self._function(f"body_{mark}", self._visited(node.body), state)
        call = _steps(
            "repeat",
            [
                _load(condition.name),
                _load(body.name),
                self._state(mark, state, unread.all),
                ast.Constant(node.lineno),
                ast.Constant(plain),
            ],
        )
        return _at(node, *_forgotten(unread.new), condition, body, *self._accessors(mark, state), ast.Expr(call))

    def visit_For(self, node: ast.For) -> Any:
        """A loop over something."""
        state, unread = names_in([node], self._names), self._passing[node]
        self._count += 1
        mark = self._count
        item = f"_ep_item_{mark}"
        take = ast.Assign([node.target], _load(item))
        body = self._function(f"body_{mark}", [take, *self._visited(node.body)], state, (item,))
        flag = getattr(node, "flag", "")
        left: ast.expr = ast.Lambda(_arguments(), _load(flag)) if flag else ast.Constant(None)
        arguments = [
            self.visit(node.iter),
            _load(body.name),
            left,
            self._state(mark, state, unread.all),
            ast.Constant(node.lineno),
        ]
        return _at(
            node, *_forgotten(unread.new), body, *self._accessors(mark, state), ast.Expr(_steps("each", arguments))
        )

    def visit_Assert(self, node: ast.Assert) -> Any:
        """A check: one of tensors is left out of a graph."""
        message = ast.Lambda(_arguments(), self.visit(node.msg) if node.msg else ast.Constant(None))
        call = _steps(
            "check", [ast.Lambda(_arguments(), self.condition(node.test)), message, ast.Constant(node.lineno)]
        )
        return _at(node, ast.Expr(call))

    def visit_Delete(self, node: ast.Delete) -> Any:
        """A variable that is deleted loses its value only: the functions around it go on sharing it."""
        known = {*self._names.parameters, *self._names.assigned}
        names = {each.id for each in node.targets if isinstance(each, ast.Name)} & known
        kept = [each for each in node.targets if not (isinstance(each, ast.Name) and each.id in names)]
        return _at(node, *_forgotten(names), *([ast.Delete(kept)] if kept else []))

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        """An inner function keeps its form."""
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        """So does a class."""
        return node

    def visit_ListComp(self, node: ast.ListComp) -> Any:
        """``[f(x) for x in xs]``: a list of what a function returns for each; with more loops inside, of its items.

        With ``if``, a second function says for each whether it is one of them.
        """
        if any(generator.is_async for generator in node.generators):
            return self.generic_visit(node)
        generator, *inside = node.generators
        original = copy.deepcopy(node)
        item = "_ep_item"
        names = sorted({each.id for each in ast.walk(generator.target) if isinstance(each, ast.Name)})
        bound = {*names, *self._around}
        state = [name for name in names_in([ast.Expr(node)], self._names) if name not in bound]
        around = [name for name in self._around if name not in names and mentions(node)[name]]
        outer, self._around = self._around, [*around, *names]
        element = self.visit(ast.copy_location(ast.ListComp(node.elt, inside), node) if inside else node.elt)
        tests = generator.ifs
        test = self.condition(tests[0] if len(tests) == 1 else ast.BoolOp(ast.And(), tests)) if tests else None
        self._around = outer

        def function(value: ast.expr) -> ast.Lambda:
            target = ast.comprehension(generator.target, ast.Tuple([_load(item)], ast.Load()), [], 0)
            one = ast.ListComp(value, [target])
            return ast.Lambda(_arguments(item, *around), ast.Subscript(one, ast.Constant(0), ast.Load()))

        self._count += 1
        mark = self._count
        self.hoisted += self._accessors(mark, state)
        return _steps(
            "listed_flat" if inside else "taken" if _is_taken(original.elt, names) else "listed",
            [
                self.visit(generator.iter),
                function(element),
                ast.Constant(None) if test is None else function(test),
                self._state(mark, state, {name for name in state if self._only_in(original, name)}),
                ast.Constant(node.lineno),
                *map(_load, around),
            ],
        )

    # --- pieces

    def _visited(self, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        done: list[ast.stmt] = []
        for statement in body:
            outer, self.hoisted = self.hoisted, []
            found = self.visit(statement)
            done += [*self.hoisted, *(found if isinstance(found, list) else [found])]
            self.hoisted = outer
        return done

    def body(self, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        """The statements of the function itself."""
        return self._visited(body)

    def _function(
        self, name: str, body: list[ast.stmt], state: Sequence[str], parameters: Sequence[str] = ()
    ) -> ast.FunctionDef:
        declared: list[ast.stmt] = [ast.Nonlocal(list(state))] if state else []
        arguments = _arguments(*parameters)
        return ast.FunctionDef(f"_ep_{name}", arguments, [*declared, *(body or [ast.Pass()])], [])

    def _accessors(self, mark: int, state: Sequence[str]) -> Iterator[ast.stmt]:
        values = ast.Tuple([_load(name) for name in state], ast.Load())
        yield self._function(f"get_{mark}", [ast.Return(values)], state)
        targets = ast.Tuple([ast.Name(name, ast.Store()) for name in state], ast.Store())
        put: list[ast.stmt] = [ast.Assign([targets], _load("_ep_values"))] if state else []
        yield self._function(f"put_{mark}", put, state, ["_ep_values"])

    def _state(self, mark: int, state: Sequence[str], unread: Collection[str]) -> ast.expr:
        names = ast.Tuple([ast.Constant(name) for name in state], ast.Load())
        inner = ast.Tuple([ast.Constant(name) for name in state if name in unread], ast.Load())
        return _steps("state", [_load(f"_ep_get_{mark}"), _load(f"_ep_put_{mark}"), names, inner])

    def _only_in(self, node: ast.AST, name: str) -> bool:
        """Whether no other part of the function mentions a variable, nor one of those around it."""
        return name not in self._names.free and mentions(node)[name] == self._mentions[name]


def undefined() -> ast.expr:
    """What stands for the value of a variable that has none."""
    return ast.Attribute(_load(STEPS), "UNDEFINED", ast.Load())


def _forgotten(names: Collection[str]) -> list[ast.stmt]:
    return [ast.Assign([ast.Name(name, ast.Store())], undefined()) for name in sorted(names)]


def _is_taken(element: ast.expr, names: Sequence[str]) -> bool:
    """Whether an element of a list is a part of an item, ``x[key]`` or ``x.key``."""
    match element:
        case ast.Name(name) | ast.Attribute(ast.Name(name)) | ast.Subscript(ast.Name(name), ast.Constant()):
            return name in names
        case ast.Subscript(ast.Name(name), ast.Name(key)):
            return name in names and key not in names
    return False


def _load(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def _steps(name: str, arguments: Sequence[ast.expr]) -> ast.Call:
    return ast.Call(ast.Attribute(_load(STEPS), name, ast.Load()), list(arguments), [])


def _arguments(*names: str) -> ast.arguments:
    return ast.arguments([], [ast.arg(name) for name in names], None, [], [], None, [])


def _at(place: ast.stmt, *statements: ast.stmt) -> list[ast.stmt]:
    for statement in statements:
        for node in ast.walk(statement):
            if not hasattr(node, "lineno") and isinstance(node, ast.stmt | ast.expr | ast.arg):
                ast.copy_location(node, place)
    return list(statements)
