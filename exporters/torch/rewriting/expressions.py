"""Expressions that decide something (``and``, ``or``, ``not``, ``a if c else b``) and calls, as steps."""

from __future__ import annotations

import ast
import copy
from typing import Any

from entrepot.exporters.torch.rewriting.scopes import STEPS


class Expressions(ast.NodeTransformer):
    """Rewrites expressions.

    Args:
        first: The first argument of the function, which ``super()`` means.
    """

    def __init__(self, first: str) -> None:
        self._first = first
        self.hoisted: list[ast.stmt] = []

    def condition(self, node: ast.expr) -> ast.expr:
        """What is only asked whether it holds."""
        match node:
            case ast.BoolOp(operation, values) if not _names_values(node):
                parts = [ast.Lambda(_arguments(), self.condition(value)) for value in values]
                return _step("both" if isinstance(operation, ast.And) else "either", *parts)
            case ast.UnaryOp(ast.Not(), operand):
                return _step("negated", self.condition(operand))
            case ast.Compare(left, [first, second], [middle, right]) if isinstance(middle, ast.Name | ast.Constant):
                return self.condition(
                    ast.BoolOp(
                        ast.And(), [ast.Compare(left, [first], [middle]), ast.Compare(middle, [second], [right])]
                    )
                )
        return self.visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        """``not x``."""
        return self.condition(node) if isinstance(node.op, ast.Not) else self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        """``height % 2 == 1 or width % 2 == 1``; of ``x or y``, the result is one of the two, whatever these are."""
        if _names_values(node):
            return self.generic_visit(node)
        if _is_truth(node):
            return self.condition(node)
        match node:
            case ast.BoolOp(ast.And(), [*parts, last]) if all(map(_is_truth, parts)):
                tests = [ast.Lambda(_arguments(), self.condition(part)) for part in parts]
                return ast.copy_location(_step("last", ast.Lambda(_arguments(), self.visit(last)), *tests), node)
        return self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        """``a ** b``, ``[a] * n``, ``a + (b > c)``."""
        node.left, node.right = _as_number(node.left), _as_number(node.right)
        self.generic_visit(node)
        match node:
            case ast.BinOp(left, ast.Pow(), right):
                return _step("power", left, right)
            case ast.BinOp(ast.List() as items, ast.Mult(), count) | ast.BinOp(count, ast.Mult(), ast.List() as items):
                return _step("repeated", items, count)
        return node

    def visit_Compare(self, node: ast.Compare) -> Any:
        """``a is True``, ``x.shape == y.shape``, ``x.shape[1] in (1, 3)``."""
        lengths = any(_is_length(each) for each in (node.left, *node.comparators))
        self.generic_visit(node)
        match node:
            case ast.Compare(
                left, [ast.Eq() | ast.NotEq() | ast.Lt() | ast.LtE() | ast.Gt() | ast.GtE() as how], [right]
            ) if lengths:
                return _step("compared", left, ast.Constant(type(how).__name__), right)
            case ast.Compare(left, [ast.In() | ast.NotIn() as how], [right]):
                return _step("among", left, right, ast.Constant(isinstance(how, ast.In)))
            case ast.Compare(left, [ast.Eq() | ast.NotEq() as how], [right]) if _is_shape(left) or _is_shape(right):
                return _step("alike", left, right, ast.Constant(isinstance(how, ast.Eq)))
            case ast.Compare(left, [ast.Is() | ast.IsNot() as how], [ast.Constant(bool() as truth)]):
                return _step("same", left, ast.Constant(truth), ast.Constant(isinstance(how, ast.Is)))
        return node

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        """``a if c else b``."""
        arms = [ast.Lambda(_arguments(), self.visit(arm)) for arm in (node.body, node.orelse)]
        return _step("pick", self.condition(node.test), *arms, ast.Constant(node.lineno))

    def visit_Call(self, node: ast.Call) -> Any:
        """A call, of whatever the step makes of the function; ``super()`` is told what it means."""
        match node:
            case ast.Call(ast.Name("next" | "iter")):  # they take a generator item by item
                pass
            case ast.Call(_, [ast.GeneratorExp(element, generators)]):  # the rest take all of it
                node.args = [ast.copy_location(ast.ListComp(element, generators), node)]
            case ast.Call(ast.Name("int"), [ast.Compare() as compared], []):
                node.args = [_as_number(compared)]
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id == "super" and not node.args:
            node.args = [ast.Name("__class__", ast.Load()), ast.Name(self._first, ast.Load())]
            return node
        match node:
            case ast.Call(ast.Name("zip"), [ast.Starred(rows)]):
                turned = _step("transposed", node.func, rows)
                turned.keywords = node.keywords
                return ast.copy_location(turned, node)
        match node.func:
            case ast.Attribute(value, "astype" | "item" as name):
                node.func = _step("method", value, ast.Constant(name))
        node.func = _step("callee", node.func)
        return node

    def visit_Assign(self, node: ast.Assign) -> Any:
        """``x[i] = y``; what is given to several variables is taken as a whole."""
        match node:
            case ast.Assign([ast.Tuple() | ast.List()], ast.GeneratorExp(element, generators)):
                node.value = ast.copy_location(ast.ListComp(element, generators), node.value)
        self.generic_visit(node)
        match node.targets:
            case [ast.Subscript(value, index)]:
                return ast.copy_location(ast.Expr(_step("store", value, _plain(index), node.value)), node)
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        """``x[i] += y``, ``n += a > b``."""
        node.value = _as_number(node.value)
        self.generic_visit(node)
        match node.target:
            case ast.Subscript(value, index):
                present = ast.Subscript(copy.deepcopy(value), copy.deepcopy(index), ast.Load())
                new: ast.expr = ast.BinOp(present, node.op, node.value)
                if isinstance(node.op, ast.Add):
                    new = _step("plus", present, node.value)
                return ast.copy_location(ast.Expr(_step("store", value, _plain(index), new)), node)
        return node

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        """``x[rows, i]``, ``items[i]`` and ``x[:n]``."""
        self.generic_visit(node)
        match node:
            case ast.Subscript(value, ast.Tuple(parts) as index, ast.Load()):
                reads = [part for part in parts if not isinstance(part, ast.Slice | ast.Constant)]
                if len(reads) > 1 or any(isinstance(part, ast.Call) for part in reads):
                    return ast.copy_location(_step("item", value, _plain(index)), node)
            case ast.Subscript(value, index, ast.Load()) if isinstance(index, _ITEMS):
                return ast.copy_location(_step("item", value, index), node)
        if isinstance(node.ctx, ast.Load) and _has_bounds(node.slice) and not _is_shape(node):
            return ast.copy_location(_step("cut", node.value, _plain(node.slice)), node)
        return node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> Any:
        """``f"layer_{i}"``."""
        self.generic_visit(node)
        pieces: list[ast.expr] = []
        for piece in node.values:
            match piece:
                case ast.FormattedValue(value, -1, None):
                    pieces.append(value)
                case ast.Constant():
                    pieces.append(piece)
                case _:
                    return node
        return ast.copy_location(_step("text", *pieces), node)

    def visit_FormattedValue(self, node: ast.FormattedValue) -> Any:
        """What is formatted; how is said by a text of its own form."""
        node.value = self.visit(node.value)
        return node

    def visit_List(self, node: ast.List) -> Any:
        """``[a, *xs, b]``."""
        self.generic_visit(node)
        if not isinstance(node.ctx, ast.Load) or not any(isinstance(item, ast.Starred) for item in node.elts):
            return node
        pieces = [item.value if isinstance(item, ast.Starred) else ast.List([item], ast.Load()) for item in node.elts]
        return ast.copy_location(_step("spread", *pieces), node)

    def visit_Starred(self, node: ast.Starred) -> Any:
        """``*(f(x) for x in xs)``, which takes all of them."""
        match node.value:
            case ast.GeneratorExp(element, generators):
                node.value = ast.copy_location(ast.ListComp(element, generators), node.value)
        return self.generic_visit(node)

    def visit_Lambda(self, node: ast.Lambda) -> Any:
        """A lambda keeps its form."""
        return node

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> Any:
        """So does a generator."""
        return node

    visit_SetComp = visit_GeneratorExp  # type: ignore[assignment]

    def visit_DictComp(self, node: ast.DictComp) -> Any:
        """``{k: f(k) for k in ks}``, as a dict of a list of pairs."""
        pairs = ast.ListComp(ast.Tuple([node.key, node.value], ast.Load()), node.generators)
        return ast.copy_location(_step("keyed", self.visit(ast.copy_location(pairs, node))), node)


_ITEMS = (ast.Name, ast.Attribute, ast.Subscript, ast.Call, ast.BinOp, ast.UnaryOp, ast.JoinedStr, ast.List)


def _has_bounds(index: ast.expr) -> bool:
    """Whether an index says from where or to where, in a way that may vary."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    bounds = [each for part in parts if isinstance(part, ast.Slice) for each in (part.lower, part.upper)]
    return not all(each is None or isinstance(each, ast.Constant) for each in bounds)


def _is_truth(node: ast.expr) -> bool:
    """Whether an expression is true or false, and nothing else."""
    match node:
        case ast.BoolOp(_, values):
            return all(map(_is_truth, values))
        case ast.Compare() | ast.UnaryOp(ast.Not()) | ast.Constant(bool()):
            return True
    return False


def _names_values(node: ast.expr) -> bool:
    """Whether an expression gives a variable a value, ``(count := len(x))``, which a function in it would keep."""
    return any(isinstance(each, ast.NamedExpr) for each in ast.walk(node))


def _as_number(node: ast.expr) -> ast.expr:
    """A comparison as what Python counts with; anything else as it is."""
    match node:
        case ast.Compare(left, [ast.Eq() | ast.NotEq() | ast.Lt() | ast.LtE() | ast.Gt() | ast.GtE() as how], [right]):
            return ast.copy_location(_step("as_number", left, ast.Constant(type(how).__name__), right), node)
    return node


def _is_length(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "len"


def _is_shape(node: ast.expr) -> bool:
    """Whether it reads as the shape of a tensor, or as some sizes of it."""
    match node:
        case ast.Attribute(_, "shape"):
            return True
        case ast.Call(ast.Call(_, [ast.Attribute(_, "size")]), []):  # its callee is a step by now
            return True
        case ast.Subscript(value, ast.Slice()):
            return _is_shape(value)
    return False


def _plain(index: ast.expr) -> ast.expr:
    """What is between the brackets, as an expression of its own."""
    match index:
        case ast.Slice(lower, upper, step):
            return ast.Call(
                ast.Name("slice", ast.Load()), [each or ast.Constant(None) for each in (lower, upper, step)], []
            )
        case ast.Tuple(parts):
            return ast.Tuple([_plain(part) for part in parts], ast.Load())
    return index


def _step(name: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(ast.Attribute(ast.Name(STEPS, ast.Load()), name, ast.Load()), list(arguments), [])


def _arguments() -> ast.arguments:
    return ast.arguments([], [], None, [], [], None, [])
