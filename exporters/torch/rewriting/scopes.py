"""The variables of a function, and which of them a block reads or writes."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

STEPS = "_ep_steps"


@dataclass(frozen=True)
class Names:
    """The variables of a function.

    Attributes:
        parameters: Those that a call gives values.
        assigned: The others.
        free: Those of functions around it.
        inner: Those that inner functions and lambdas read, who may be called anywhere.
    """

    parameters: tuple[str, ...]
    assigned: tuple[str, ...]
    free: tuple[str, ...]
    inner: frozenset[str]

    @property
    def every(self) -> tuple[str, ...]:
        """All of them."""
        return *self.parameters, *self.assigned, *self.free

    @classmethod
    def of(cls, function: ast.FunctionDef, free: Sequence[str] = ()) -> Names:
        """Those of a function, which reads some of functions around it."""
        arguments = function.args
        given = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        given += [each for each in (arguments.vararg, arguments.kwarg) if each is not None]
        parameters = tuple(each.arg for each in given)
        finder = _Assigned()
        for statement in function.body:
            finder.visit(statement)
        inner = {name.id for scope in finder.scopes for name in ast.walk(scope) if isinstance(name, ast.Name)}
        assigned = tuple(name for name in finder.found if name not in parameters and name not in finder.elsewhere)
        return cls(parameters, assigned, tuple(free), frozenset(inner))


def names_in(body: Sequence[ast.AST], names: Names) -> list[str]:
    """The variables of a function that a block mentions, directly or through inner functions."""
    known = {*names.every}
    found = [node.id for statement in body for node in ast.walk(statement) if isinstance(node, ast.Name)]
    for statement in body:  # flags that a loop sets are not in its own text
        found += [flag for node in ast.walk(statement) if (flag := getattr(node, "flag", ""))]
    found += [name for name in names.every if name in names.inner]
    return [name for name in dict.fromkeys(found) if name in known]


def mentions(node: ast.AST) -> Counter[str]:
    """How often each name occurs; flags of loops count as well."""
    found = Counter(each.id for each in ast.walk(node) if isinstance(each, ast.Name))
    found.update(flag for each in ast.walk(node) if (flag := getattr(each, "flag", "")))
    return found


def always_raises(body: Sequence[ast.stmt]) -> bool:
    """Whether a block ends in an error."""
    return bool(body) and isinstance(body[-1], ast.Raise)


class _Assigned(ast.NodeVisitor):
    def __init__(self) -> None:
        self.found: dict[str, None] = {}
        self.elsewhere: set[str] = set()
        self.scopes: list[ast.AST] = []

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Store | ast.Del):
            self.found[node.id] = None

    def visit_Global(self, node: ast.Global) -> None:
        self.elsewhere |= set(node.names)

    def visit_Nonlocal(self, node: ast.Nonlocal) -> None:
        self.elsewhere |= set(node.names)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self.found[node.name] = None
        self.scopes.append(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.found[node.name] = None
        self.scopes.append(node)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self.scopes.append(node)

    def visit_Import(self, node: ast.Import | ast.ImportFrom) -> None:
        for alias in node.names:
            self.found[(alias.asname or alias.name).partition(".")[0]] = None

    visit_ImportFrom = visit_Import

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        if node.name:
            self.found[node.name] = None
        self.generic_visit(node)

    def visit_ListComp(self, node: ast.ListComp) -> None:
        targets = {
            each.id
            for generator in node.generators
            for each in ast.walk(generator.target)
            if isinstance(each, ast.Name)
        }
        before = dict(self.found)
        self.generic_visit(node)
        for name in targets - before.keys():
            del self.found[name]

    visit_SetComp = visit_DictComp = visit_GeneratorExp = visit_ListComp  # type: ignore[assignment]
