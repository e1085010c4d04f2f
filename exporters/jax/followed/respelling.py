"""Code of a user's functions, in which what no name stands for is spelled as a call.

``x.squeeze()`` becomes ``_ep_squeezed(x)``, and ``x.shape[0] == 16`` becomes ``_ep_equal(x.shape[0], 16)``: JAX says no
where it cannot know, and nobody would learn that it was asked. So do ``int(x.shape[0])`` and ``ceil(x.shape[0] / 2)``,
which would fix a size. A file is compiled as a whole, so that what is found in it fits a function as its own code does.
"""

from __future__ import annotations

import ast
import functools
import linecache
from collections.abc import Iterator
from types import CodeType

_OPERATORS: dict[type[ast.cmpop], str] = {
    ast.Eq: "_ep_equal",
    ast.NotEq: "_ep_unequal",
    ast.In: "_ep_among",
    ast.NotIn: "_ep_not_among",
}
_TRUNCATED: dict[type[ast.operator], str] = {ast.Div: "_ep_whole_quotient", ast.Mult: "_ep_whole_product"}
_METHODS = {"squeeze": "_ep_squeezed", "get": "_ep_got"}


def respelled(code: CodeType, *, comparisons: bool) -> CodeType:
    """The same code; itself where its source is not known.

    Args:
        code: A function's.
        comparisons: Whether those for equality, and remainders, are spelled out as well.
    """
    if not comparisons and not any("squeeze" in each.co_names for each in _all(code)):
        return code
    return _of_file(code.co_filename, comparisons).get(code, code)


def constants(code: CodeType) -> Iterator[object]:
    """Every constant of a code."""
    for each in _all(code):
        for constant in each.co_consts:
            yield from constant if isinstance(constant, tuple | frozenset) else (constant,)


@functools.lru_cache(64)
def _of_file(name: str, comparisons: bool) -> dict[CodeType, CodeType]:
    text = "".join(linecache.getlines(name))
    try:
        before = compile(text, name, "exec", dont_inherit=True)
        tree = _Respelling(comparisons).visit(ast.parse(text))
        after = compile(ast.fix_missing_locations(tree), name, "exec", dont_inherit=True)
    except SyntaxError:  # a cell of a notebook, with words that are not Python's
        return {}
    return dict(_paired(before, after))


def _paired(before: CodeType, after: CodeType) -> Iterator[tuple[CodeType, CodeType]]:
    """Every code in the one with that in the same place of the other."""
    inner = [[each for each in code.co_consts if isinstance(each, CodeType)] for code in (before, after)]
    if [each.co_name for each in inner[0]] != [each.co_name for each in inner[1]]:
        return
    for one, other in zip(*inner, strict=True):
        if one.co_freevars == other.co_freevars:
            yield one, other
            yield from _paired(one, other)


def _all(code: CodeType) -> Iterator[CodeType]:
    yield code
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _all(each)


class _Respelling(ast.NodeTransformer):
    def __init__(self, comparisons: bool) -> None:
        self._comparisons = comparisons

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if self._comparisons and len(node.args) == 1 and not node.keywords and (new := _whole(node)) is not None:
            return ast.copy_location(new, node)
        if not isinstance(node.func, ast.Attribute) or node.func.attr not in _METHODS:
            return node
        owner = node.func.value
        if isinstance(owner, ast.Call) and isinstance(owner.func, ast.Name) and owner.func.id == "super":
            return node
        new = ast.Call(ast.Name(_METHODS[node.func.attr], ast.Load()), [owner, *node.args], node.keywords)
        return ast.copy_location(new, node)

    def visit_Match(self, node: ast.Match) -> ast.AST:
        self.generic_visit(node)
        values = [each.value for each in ast.walk(node) if isinstance(each, ast.MatchValue)]
        constants: list[ast.expr] = [each for each in values if isinstance(each, ast.Constant)]
        node.subject = ast.Call(
            ast.Name("_ep_matched", ast.Load()), [node.subject, ast.Tuple(constants, ast.Load())], []
        )
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.op, ast.Mod) or not self._comparisons:
            return node
        return ast.copy_location(ast.Call(ast.Name("_ep_remainder", ast.Load()), [node.left, node.right], []), node)

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        name = _OPERATORS.get(type(node.ops[0])) if self._comparisons and len(node.ops) == 1 else None
        if name is None:
            return node
        return ast.copy_location(ast.Call(ast.Name(name, ast.Load()), [node.left, *node.comparators], []), node)


def _whole(node: ast.Call) -> ast.Call | None:
    """``int(x)``, ``int(x * 0.5)`` and ``ceil(x / y)``, which sizes answer with sizes."""
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    (given,) = node.args
    if name == "int" and isinstance(node.func, ast.Name):
        if isinstance(given, ast.BinOp) and isinstance(given.op, ast.Div | ast.Mult):
            return ast.Call(ast.Name(_TRUNCATED[type(given.op)], ast.Load()), [node.func, given.left, given.right], [])
        return ast.Call(ast.Name("_ep_whole", ast.Load()), [node.func, given], [])
    if name in ("ceil", "floor") and isinstance(given, ast.BinOp) and isinstance(given.op, ast.Div):
        operands = [node.func, ast.Constant(name == "ceil"), given.left, given.right]
        return ast.Call(ast.Name("_ep_quotient", ast.Load()), operands, [])
    return None
