"""Forward substitution that Python spells out row by row, as one operation that solves a triangular system.

Linear attention in chunks inverts a matrix of 64 rows so, in every layer: some six hundred operators for each. Before::

    for i in range(1, size):
        row = x[..., i, :i].clone()
        sub = x[..., :i, :i].clone()
        x[..., i, :i] = row + (row.unsqueeze(-1) * sub).sum(-2)

After: ``_ep_steps.substitute(x, size)``. With ``L`` below the diagonal, and ``U`` on it and above, the new rows ``N``
are those of ``(1 - L) @ N = L + L @ U`` below the diagonal.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import inspect
import sys
import textwrap
import types
from collections.abc import Iterator
from typing import Any

import torch

from entrepot.exporters.torch.rewriting.scopes import STEPS

_LOOP = ast.parse(
    textwrap.dedent("""\
    for I in range(1, SIZE):
        ROW = X[..., I, :I].clone()
        SUB = X[..., :I, :I].clone()
        X[..., I, :I] = ROW + (ROW.unsqueeze(-1) * SUB).sum(-2)
    """)
).body[0]
_ANY = frozenset(("I", "SIZE", "X", "ROW", "SUB"))
_WORDS = frozenset(("range", "clone", "unsqueeze", "sum"))


def substitute(matrix: torch.Tensor, size: Any) -> None:
    """What the loop does to the matrix."""
    part = matrix[..., :size, :size]
    lower, rest = part.tril(-1), part.triu()
    system = torch.eye(size, dtype=part.dtype, device=part.device) - lower
    right = (lower + lower @ rest).tril(-1)
    part.copy_(rest + torch.linalg.solve_triangular(system, right, upper=False, unitriangular=True))


class Substitution(ast.NodeTransformer):
    """Rewrites such loops.

    Attributes:
        found: Whether there was one.
    """

    found = False

    def visit_For(self, node: ast.For) -> ast.AST:
        """A loop."""
        bound: dict[str, ast.expr] = {}
        if not _unified(_LOOP, node, bound) or not isinstance(bound["X"], ast.Name):
            return self.generic_visit(node)
        self.found = True
        function = ast.Attribute(ast.Name(STEPS, ast.Load()), "substitute", ast.Load())
        call = ast.Call(function, [ast.Name(bound["X"].id, ast.Load()), bound["SIZE"]], [])
        return ast.fix_missing_locations(ast.copy_location(ast.Expr(call), node))


def _unified(pattern: Any, node: Any, bound: dict[str, ast.expr]) -> bool:
    """Whether a piece of a program is like a pattern, whatever stands for the names in that."""
    if isinstance(pattern, ast.Name) and pattern.id in _ANY and isinstance(node, ast.expr):
        known = bound.setdefault(pattern.id, node)
        return _text(known) == _text(node)
    if isinstance(pattern, ast.AST):
        return type(pattern) is type(node) and all(
            _unified(value, getattr(node, name), bound) for name, value in ast.iter_fields(pattern) if name != "ctx"
        )
    if isinstance(pattern, list):
        return len(pattern) == len(node) and all(_unified(*each, bound) for each in zip(pattern, node, strict=True))
    return bool(pattern == node)


def _text(node: ast.AST) -> str:
    return ast.unparse(node)


@contextlib.contextmanager
def substitutions_solved(module: torch.nn.Module) -> Iterator[None]:
    """Inside, functions beside the classes of a module's parts solve such systems at once."""
    from entrepot.exporters.torch.rewriting import steps

    files = [sys.modules.get(name) for name in {type(part).__module__ for part in module.modules()}]
    values = [value for file in files if file is not None for value in vars(file).values()]
    inner = {inspect.unwrap(value) for value in values if inspect.isfunction(value)}
    functions = [each for each in inner if inspect.isfunction(each)]  # functions of C and objects are wrapped as well
    changed = [(each, each.__code__, new) for each in functions if (new := _solving(each.__code__)) is not None]
    for function, _, new in changed:
        function.__globals__[STEPS] = steps
        function.__code__ = new
    try:
        yield
    finally:
        for function, old, _ in changed:
            function.__code__ = old
            function.__globals__.pop(STEPS, None)


@functools.cache
def _solving(code: types.CodeType) -> types.CodeType | None:
    """The code of a function that solves; ``None`` where it has no such loop, or needs what is around it."""
    if code.co_freevars or not {*code.co_names} >= _WORDS:
        return None
    try:
        tree = ast.parse(textwrap.dedent("".join(inspect.getsourcelines(code)[0])))
    except (OSError, SyntaxError):
        return None
    ast.increment_lineno(tree, code.co_firstlineno - 1)
    rewriting = Substitution()
    definition = rewriting.visit(tree).body[0]
    if not rewriting.found or not isinstance(definition, ast.FunctionDef):
        return None
    definition.decorator_list = []
    outer = compile(tree, code.co_filename, "exec", flags=code.co_flags & annotations.compiler_flag, dont_inherit=True)
    return next(each for each in outer.co_consts if isinstance(each, types.CodeType) and each.co_name == code.co_name)
