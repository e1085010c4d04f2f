"""A Python function written anew: the same function, whose branches, loops and calls are steps."""

from __future__ import annotations

import ast
import inspect
import textwrap
import types
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.utils.checkpoint

from entrepot.exporters.torch.rewriting import in_python
from entrepot.exporters.torch.rewriting.generators import collected
from entrepot.exporters.torch.rewriting.jumps import TooIntricateError, straighten
from entrepot.exporters.torch.rewriting.lambdas import source_of_lambda
from entrepot.exporters.torch.rewriting.matching import Matching
from entrepot.exporters.torch.rewriting.scopes import STEPS, Names
from entrepot.exporters.torch.rewriting.statements import Statements, undefined
from entrepot.exporters.torch.rewriting.substitution import Substitution

_ROOTS = frozenset({"torch", "numpy", "entrepot", "onnxscript", "onnx", "functorch", "sympy", "einops"})
_WRITTEN: dict[types.CodeType, types.CodeType | None] = {}


def rewritten(function: types.FunctionType) -> types.FunctionType | None:
    """The function with steps; ``None`` where its source is not known, or does something that is left alone."""
    code = function.__code__
    if code not in _WRITTEN:
        _WRITTEN[code] = _written(function) if _is_theirs(function) else None
    new = _WRITTEN[code]
    return None if new is None else _bound(new, function)


def _is_theirs(function: types.FunctionType) -> bool:
    import sys

    root = (function.__module__ or "").partition(".")[0]
    special = inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
    return (
        (root not in _ROOTS or function.__module__ == in_python.__name__)
        and root not in sys.stdlib_module_names | {""} - {"__main__"}
        and not function.__code__.co_flags & special
    )


def _written(function: types.FunctionType) -> types.CodeType | None:
    code = function.__code__
    tree = _source(function)
    if tree is None or (code.co_flags & inspect.CO_GENERATOR and not collected(tree)):
        return None
    free = [name for name in code.co_freevars if name != STEPS]
    _Unannotated().visit(tree)
    _OneByOne().visit(tree)
    Matching().visit(tree)
    Substitution().visit(tree)
    try:
        straighten(tree)
    except TooIntricateError:
        return None
    names = Names.of(tree, [name for name in free if name != "__class__"])  # which ``super`` asks for
    first = names.parameters[0] if names.parameters else "self"
    tree.body = [*_undefined(names), *Statements(names, first, tree).body(tree.body)]
    tree.decorator_list = []
    tree.returns = None
    arguments = tree.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
    for each in every:
        if each is not None:
            each.annotation = None
    arguments.defaults = [ast.Constant(None) for _ in arguments.defaults]
    arguments.kw_defaults = [None if each is None else ast.Constant(None) for each in arguments.kw_defaults]
    _Mangled.in_class(tree, function)
    tree.name = "_ep_function"  # by its own name, a function that calls itself would be looked for in the factory
    factory = ast.FunctionDef(
        "_ep_factory",
        ast.arguments([], [ast.arg(name) for name in (*free, STEPS)], None, [], [], None, []),
        [tree],
        [],
    )
    module = ast.fix_missing_locations(ast.Module([factory], []))
    future = code.co_flags & annotations.compiler_flag  # names in annotations may exist for type checkers only
    outer = compile(module, code.co_filename, "exec", flags=future, dont_inherit=True)
    made = next(each for each in outer.co_consts if isinstance(each, types.CodeType))
    new = next(each for each in made.co_consts if isinstance(each, types.CodeType) and each.co_name == tree.name)
    return new.replace(co_name=code.co_name)


def _bound(code: types.CodeType, function: types.FunctionType) -> types.FunctionType:
    from entrepot.exporters.torch.rewriting import steps

    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    cells[STEPS] = types.CellType(steps)
    closure = tuple(cells[name] for name in code.co_freevars)
    new = types.FunctionType(code, function.__globals__, function.__name__, function.__defaults__, closure)
    new.__kwdefaults__ = function.__kwdefaults__
    new.__qualname__, new.__module__, new.__dict__ = function.__qualname__, function.__module__, dict(function.__dict__)
    new.__annotations__ = dict(function.__annotations__)
    return new


def _source(function: types.FunctionType) -> ast.FunctionDef | None:
    code = function.__code__
    if code.co_name == "<lambda>":
        return source_of_lambda(code)
    try:
        lines, start = inspect.getsourcelines(code)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, TypeError, SyntaxError):
        return None
    ast.increment_lineno(tree, max(start, 1) - 1)
    (definition,) = tree.body[:1] or (None,)
    if not isinstance(definition, ast.FunctionDef) or definition.name != code.co_name:
        return None
    return definition


def _undefined(names: Names) -> list[ast.stmt]:
    return [ast.Assign([ast.Name(name, ast.Store())], undefined()) for name in names.assigned]


class _OneByOne(ast.NodeTransformer):
    """``x[i], x[j] = a, b`` by way of variables: items that vary are stored one by one."""

    def __init__(self) -> None:
        self._count = 0

    def visit_Assign(self, node: ast.Assign) -> ast.AST | list[ast.stmt]:
        match node.targets:
            case [ast.Tuple(items) | ast.List(items)] if any(isinstance(item, ast.Subscript) for item in items):
                if not any(isinstance(item, ast.Starred) for item in items):
                    return [ast.copy_location(each, node) for each in self._stored(items, node.value)]
        return node

    def _stored(self, items: list[ast.expr], value: ast.expr) -> Iterator[ast.stmt]:
        names = [f"_ep_given_{self._count + at}" for at, _ in enumerate(items)]
        self._count += len(items)
        yield ast.Assign([ast.Tuple([ast.Name(name, ast.Store()) for name in names], ast.Store())], value)
        for item, name in zip(items, names, strict=True):
            yield ast.Assign([item], ast.Name(name, ast.Load()))


class _Unannotated(ast.NodeTransformer):
    """Variables without their annotations: a branch becomes a function, which may not annotate what it shares."""

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        self.generic_visit(node)
        return ast.copy_location(ast.Pass() if node.value is None else ast.Assign([node.target], node.value), node)


class _Mangled(ast.NodeTransformer):
    """``self.__x`` as a class body would compile it."""

    def __init__(self, kind: str) -> None:
        self._kind = kind.lstrip("_")

    @classmethod
    def in_class(cls, tree: ast.FunctionDef, function: types.FunctionType) -> None:
        parts = function.__qualname__.split(".")
        if len(parts) > 1 and parts[-2] != "<locals>":
            cls(parts[-2]).visit(tree)

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        self.generic_visit(node)
        if node.attr.startswith("__") and not node.attr.endswith("__"):
            node.attr = f"_{self._kind}{node.attr}"
        return node


def as_rewritten(callee: Callable[..., Any]) -> Callable[..., Any]:
    """A function, a method or an object of the user's that is called, with steps; anything else as it is."""
    if isinstance(callee, types.MethodType) and isinstance(callee.__func__, types.FunctionType):
        found = rewritten(callee.__func__)
        return callee if found is None else types.MethodType(found, callee.__self__)
    if isinstance(callee, types.FunctionType):
        return rewritten(callee) or callee
    call = inspect.getattr_static(type(callee), "__call__", None)
    if isinstance(call, types.FunctionType) and call is not torch.nn.Module.__call__:
        found = rewritten(call)
        return callee if found is None else types.MethodType(found, callee)
    return callee


_CALLING_BACK = (filter, torch.utils.checkpoint.checkpoint)


def calls_back(callee: Any) -> bool:
    """Whether it calls functions that it is given as the user would have called them."""
    return any(callee is each for each in _CALLING_BACK)
