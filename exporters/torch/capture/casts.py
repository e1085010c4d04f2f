"""``int``, ``float`` and ``len`` in captured code: of sizes that vary they are sizes that vary, instead of numbers.

So they are of what is asked of sizes, which is 0 or 1 where Python counts it, and so are ``int(tensor)`` and
``float(tensor)``, as ``tensor.item()`` is to torch.export.

Python asks a size for its number there, which fixes it, and lets nothing stand in: what ``int`` returns is a whole
number to Python, whatever the argument defines. So the names are others in the modules whose functions are captured.
"""

from __future__ import annotations

import ast
import builtins
import collections
import contextlib
import functools
import inspect
import textwrap
from collections.abc import Callable, Iterator, Sequence
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import torch

_SIZES = (torch.SymInt, torch.SymFloat)
_CLASSES = ("int", "float")
_NAMES = (*_CLASSES, "len")
_ASKING = frozenset(("isinstance", "issubclass", "map"))


class Met:
    """Whether a size was followed through one of these names: what needs a number of Python fails with it."""

    def __init__(self) -> None:
        self.sizes = False


@contextlib.contextmanager
def casts_followed(module: torch.nn.Module) -> Iterator[Met]:
    """Inside, these names take sizes in the modules of what a module calls."""
    met = Met()
    with contextlib.ExitStack() as stack:
        _FOLLOWING.append(met)
        stack.callback(_FOLLOWING.pop)
        for names, found in _spaces(module):
            names.update({name: _OURS[name] for name in found})
            stack.callback(_take_back, names, found)
        yield met


_FOLLOWING: list[Met] = []


def _take_back(names: dict[str, Any], found: frozenset[str]) -> None:
    for name in found:
        del names[name]


class _Cast(type):
    """A class that is what another is, but that sizes stay sizes when it is called with one."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        value = _number(args[0]) if len(args) == 1 and not kwargs else None
        if isinstance(value, (*_SIZES, torch.SymBool)):
            _met()
            return _of_sizes[cls.__name__](as_number(value))
        return cls.__mro__[1](*args, **kwargs)

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, (cls.__mro__[1], _symbolic[cls.__name__]))

    def __subclasscheck__(cls, other: type) -> bool:
        return issubclass(other, cls.__mro__[1])


def as_number(value: Any) -> Any:
    """A truth about sizes as Python counts it: 1, or 0 where it does not hold; anything else as it is."""
    return torch.sym_ite(value, 1, 0) if isinstance(value, torch.SymBool) else value


_of_sizes: dict[str, Callable[[Any], Any]] = {"int": torch.sym_int, "float": torch.sym_float}


_symbolic = dict(zip(_CLASSES, _SIZES, strict=True))


def _number(value: Any) -> Any:
    """What a tensor of one number holds, which is a size where it is not known before the graph runs."""
    if not isinstance(value, torch.Tensor) or value.dtype is torch.bool or value.is_complex() or value.dim():
        return value
    return value.item()


def _length(value: Any) -> Any:
    """The length of anything, as a size if it is that of a tensor."""
    if not (isinstance(value, torch.Tensor) and value.dim()):
        return len(value)
    if isinstance(value.shape[0], torch.SymInt):
        _met()
    return value.shape[0]


def _met() -> None:
    for each in _FOLLOWING:
        each.sizes = True


_OURS: dict[str, Any] = {name: _Cast(name, (vars(builtins)[name],), {}) for name in _CLASSES} | {"len": _length}


def as_builtin(function: Any) -> Any:
    """What stands for Python's own is that, for whoever follows a call of it in another way."""
    return next((vars(builtins)[name] for name, ours in _OURS.items() if function is ours), function)


def _spaces(module: torch.nn.Module) -> Sequence[tuple[dict[str, Any], frozenset[str]]]:
    """The names of the modules whose functions are called, each with those that are to be others there.

    Names that a module gives a meaning of its own are left alone, and so are classes that are more than called.
    """
    spaces: dict[int, tuple[dict[str, Any], set[str], set[str]]] = {}
    parts = list(module.modules())
    held = frozenset(value for part in parts for value in vars(part).values() if isinstance(value, FunctionType))
    for function, used, kept in _users(frozenset(map(type, parts)), held):
        space = spaces.setdefault(id(function.__globals__), (function.__globals__, set(), set()))
        space[1].update(used)
        space[2].update(kept)
    found = ((names, frozenset(used - kept - names.keys())) for names, used, kept in spaces.values())
    return [(names, others) for names, others in found if others]


@functools.lru_cache(maxsize=32)
def _users(kinds: frozenset[type], held: frozenset[FunctionType]) -> Sequence[tuple[FunctionType, set[str], set[str]]]:
    """The functions that use one of these names: which, and which classes they do more with than to call them."""
    found = []
    for function in _called(kinds, held):
        names = _named(function.__code__)
        if used := names.intersection(_NAMES):
            kept = {name for name in names.intersection(_CLASSES) if _is_more_than_called(function, name)}
            found.append((function, used, kept))
    return found


def _called(kinds: frozenset[type], held: frozenset[FunctionType]) -> Iterator[FunctionType]:
    """The functions that the forwards of some classes may call, by their names; ``held`` are kept as attributes."""
    methods = collections.defaultdict[str, list[Any]](list)
    for kind in {base for each in kinds for base in each.__mro__ if not _is_of_others(base)}:
        for name, value in vars(kind).items():
            methods[name].append(value)
    seen: set[FunctionType] = set()  # what a decorator makes has one code
    left = [*methods["forward"], *methods["__call__"], *held]
    while left:
        function = left.pop()
        if isinstance(function, MethodType | staticmethod | classmethod):
            function = function.__func__
        if not isinstance(function, FunctionType) or function in seen or _is_of_others(function):
            continue
        seen.add(function)
        yield function
        names = _named(function.__code__)
        found = [function.__globals__[name] for name in names if name in function.__globals__]
        found += [cell.cell_contents for cell in function.__closure__ or () if _is_filled(cell)]
        left += [*found, *_within(found, names)]
        left += [value for name in names if name in methods for value in methods[name]]
        left.append(getattr(function, "__wrapped__", None))


def _within(found: Sequence[Any], names: set[str]) -> Iterator[Any]:
    """What modules have under some names: ``library.part.function`` is called by its path."""
    left = [each for each in found if isinstance(each, ModuleType)]
    seen = set[str]()
    while left:
        module = left.pop()
        if module.__name__ in seen or _is_foreign(module.__name__):
            continue
        seen.add(module.__name__)
        parts = [vars(module)[name] for name in names if name in vars(module)]
        left += [part for part in parts if isinstance(part, ModuleType)]
        yield from parts


def _is_filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False


def _is_of_others(function: FunctionType | type) -> bool:
    return _is_foreign(function.__module__ or "")


def _is_foreign(module: str) -> bool:
    return module.partition(".")[0] in ("torch", "numpy", "entrepot", "builtins")


def _named(code: CodeType) -> set[str]:
    """The names that code uses, functions in it included."""
    inner = (each for each in code.co_consts if isinstance(each, CodeType))
    return {*code.co_names}.union(*map(_named, inner))


def _is_more_than_called(function: FunctionType, name: str) -> bool:
    """Whether code compares a class, or gives it to something else than questions about instances: as ``dtype=int``."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):
        return True
    fine: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            fine.add(node.func)
            if node.func.id in _ASKING:
                classes = (each for each in node.args if isinstance(each, ast.Name | ast.Tuple | ast.BinOp))
                fine.update(part for each in classes for part in ast.walk(each))
        for note in (getattr(node, "annotation", None), getattr(node, "returns", None)):
            fine.update(ast.walk(note) if isinstance(note, ast.AST) else ())
    return any(isinstance(node, ast.Name) and node.id == name and node not in fine for node in ast.walk(tree))
