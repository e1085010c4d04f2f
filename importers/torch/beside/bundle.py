"""Kernels written out: a function's own text, and that of whatever it calls, as Python that needs no more.

What the package defines is copied, under names that do not clash; what comes from elsewhere is imported. Of the
backend only the methods that are called are kept.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import sys
from collections.abc import Callable, Iterator
from functools import cache
from types import ModuleType
from typing import Any

from entrepot.runtime.emitting.names import Names

_OURS = "entrepot"
_TABLES = frozenset({"native", "shared", "prepared"})
_STUBS = {
    "entrepot.ir.errors": 'class {name}(ValueError):\n    """What cannot be computed."""\n\n'
    "    def __init__(self, message, **told):\n        super().__init__(message)",
    "entrepot.runtime.room.claim": 'def {name}(*sizes):\n    """Sessions look for room here."""',
}
"""What is stood in for, by module or name: errors without hints, and limits that only sessions have."""

_BACKENDS = {
    "TorchBackend": "entrepot.runtime.providers.torch.backend",
    "NumpyBackend": "entrepot.runtime.providers.cpu.backend",
}
"""Classes of which only the methods that are called are kept, and their modules."""


class Bundle:
    """Definitions, collected as they are needed.

    Args:
        names: Names that are taken in the file.
    """

    def __init__(self, names: Names) -> None:
        self._names = names
        self._known: dict[tuple[str, str], str] = {}
        self._texts: dict[str, str] = {}
        self._needs: dict[str, dict[str, None]] = {}
        self._home: dict[str, str] = {}
        self.imports: dict[str, None] = {}
        self._methods: set[str] = set()
        self._backends: dict[str, str] = {}

    def add(self, function: Callable[..., Any]) -> str | None:
        """The name of a function in the file; ``None`` for one that has no text of its own."""
        function = inspect.unwrap(function)
        module = sys.modules.get(getattr(function, "__module__", None) or "")
        name = getattr(function, "__name__", "")
        if (
            module is None
            or getattr(module, name, None) is None
            or inspect.unwrap(getattr(module, name)) is not function
        ):
            return None
        if not module.__name__.startswith(_OURS):
            return f"torch.{name}" if module.__name__.split(".")[0] == "torch" else None
        return self._name(module, name)

    def backend(self, name: str = "TorchBackend") -> str:
        """The name of a backend's class."""
        return self._name(importlib.import_module(_BACKENDS[name]), name)

    def texts(self) -> list[str]:
        """All definitions, each after those that it needs."""
        self._finish()
        done: dict[str, None] = {}
        for name in list(self._texts):
            self._visit(name, done, set())
        return [self._texts[name] for name in done]

    def _visit(self, name: str, done: dict[str, None], around: set[str]) -> None:
        if name in done or name in around:
            return
        for needed in self._needs[name]:
            self._visit(self._home[needed], done, {*around, name})
        done[name] = None

    def _finish(self) -> None:
        """The backends' classes, with the methods that anything calls."""
        done: set[tuple[str, str]] = set()
        texts: dict[tuple[str, str], str] = {}
        while left := {(kind, name) for kind in list(self._backends) for name in self._methods} - done:
            done |= left
            for kind, name in sorted(left):
                for node in _kept(kind, {name}):
                    texts[kind, name] = self._edited(_home_of(kind), node, self._backends[kind])
        for kind, made in self._backends.items():
            body = [texts[kind, _targets(node)[0]] for node in _kept(kind, self._methods)]
            inside = "\n\n".join(f"    {text}" for text in body)
            self._texts[made] = f'class {made}:\n    """Array functions by NumPy\'s names."""\n\n{inside}'

    def _name(self, module: ModuleType, name: str) -> str:
        key = (module.__name__, name)
        if key in self._known:
            return self._known[key]
        node = _definitions(module).get(name)
        if node is None:
            raise LookupError(f"{module.__name__}.{name}")
        if isinstance(node, ast.Import | ast.ImportFrom):
            return self._imported(module, node, name)
        return self._defined(module, node, name)

    def _imported(self, module: ModuleType, node: ast.Import | ast.ImportFrom, name: str) -> str:
        alias = next(each for each in node.names if (each.asname or each.name) == name)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(_OURS):
            return self._name(importlib.import_module(node.module or ""), alias.name)
        written = f"{alias.name} as {alias.asname}" if alias.asname else alias.name
        start = f"from {node.module} " if isinstance(node, ast.ImportFrom) else ""
        self.imports[f"{start}import {written}"] = None
        self._names.claim(name)
        self._known[module.__name__, name] = name
        return name

    def _defined(self, module: ModuleType, node: ast.stmt, name: str) -> str:
        for target in _targets(node):
            self._known[module.__name__, target] = self._free(target)
        made = self._known[module.__name__, name]
        self._needs[made] = {}
        self._home.update({self._known[module.__name__, target]: made for target in _targets(node)})
        self._texts[made] = ""
        stub = _STUBS.get(module.__name__) or _STUBS.get(f"{module.__name__}.{name}")
        if stub is not None:
            self._texts[made] = stub.format(name=made)
        elif name in _BACKENDS:
            self._backends[name] = made
            self._methods.add("__init__")
        else:
            self._texts[made] = _FIXED * _is_about_types(node) + self._edited(module, node, made)
        return made

    def _needed(self, owner: str, module: ModuleType, name: str) -> str:
        made = self._name(module, name)
        if made in self._home:
            self._needs[owner][made] = None
        return made

    def _free(self, wanted: str) -> str:
        """A name for a function, which no variable of a forward has: these begin with letters."""
        name, number = wanted if wanted[0] in "_ABCDEFGHIJKLMNOPQRSTUVWXYZ" else f"_{wanted}", 1
        wanted = name
        while not self._names.claim(name):
            number += 1
            name = f"{wanted}_{number}"
        return name

    def _edited(self, module: ModuleType, node: ast.stmt, owner: str) -> str:
        """The text of a definition, with the names that it has here."""
        edits: list[tuple[ast.expr, str]] = []
        local = _bound(node) if isinstance(node, ast.FunctionDef) else frozenset()
        for used, text in _names(node, local):
            if isinstance(used, ast.Attribute):
                if isinstance(used.value, ast.Name) and used.value.id in ("xp", "self", "TORCH", "NUMPY"):
                    self._methods.add(used.attr)
                inner = _submodule(module, used)
                if inner is not None:
                    edits.append((used, self._needed(owner, inner, used.attr)))
            elif text in _definitions(module) and _submodule_of(module, text) is None:
                edits.append((used, self._needed(owner, module, text)))
        for target in _targets(node):
            made = self._known.get((module.__name__, target))
            if made is not None and made != target and not isinstance(node, ast.FunctionDef | ast.ClassDef):
                edits += [(each, made) for each in ast.walk(node) if isinstance(each, ast.Name) and each.id == target
                          and isinstance(each.ctx, ast.Store)]  # fmt: skip
        text = _replaced(module, node, edits)
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and (module.__name__, node.name) in self._known:
            head = "class" if isinstance(node, ast.ClassDef) else "def"
            text = text.replace(f"{head} {node.name}", f"{head} {self._known[module.__name__, node.name]}", 1)
        return text


def _home_of(backend: str) -> ModuleType:
    return importlib.import_module(_BACKENDS[backend])


def _kept(backend: str, wanted: set[str]) -> list[ast.stmt]:
    """The statements of a backend's class that define some of its methods."""
    body = _definitions(_home_of(backend))[backend].body  # type: ignore[attr-defined]
    return [node for node in body if wanted & set(_targets(node))]


@cache
def _source(module: ModuleType) -> str:
    return inspect.getsource(module)


@cache
def _definitions(module: ModuleType) -> dict[str, ast.stmt]:
    """The statement behind each name of a module."""
    return {name: node for node in ast.parse(_source(module)).body for name in _targets(node)}


def _targets(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    if isinstance(node, ast.Import | ast.ImportFrom):
        return [alias.asname or alias.name for alias in node.names]
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return [node.target.id]
    if isinstance(node, ast.Assign):
        return [each.id for target in node.targets for each in ast.walk(target) if isinstance(each, ast.Name)]
    return []


def _submodule_of(module: ModuleType, name: str) -> ModuleType | None:
    node = _definitions(module).get(name)
    found = getattr(module, name, None)
    ours = isinstance(node, ast.ImportFrom) and (node.module or "").startswith(_OURS)
    return found if ours and isinstance(found, ModuleType) else None


def _submodule(module: ModuleType, used: ast.Attribute) -> ModuleType | None:
    return _submodule_of(module, used.value.id) if isinstance(used.value, ast.Name) else None


def _bound(node: ast.FunctionDef) -> frozenset[str]:
    """Names that a function assigns itself."""
    stored = {each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}
    arguments = {each.arg for each in ast.walk(node) if isinstance(each, ast.arg)}
    inner = {each.name for each in ast.walk(node) if isinstance(each, ast.FunctionDef) and each is not node}
    return frozenset(stored | arguments | inner)


def _names(node: ast.AST, local: frozenset[str]) -> Iterator[tuple[ast.Name | ast.Attribute, str]]:
    """Names and dotted names that are read, outside of annotations and of decorators that fill tables."""
    if isinstance(node, ast.Attribute):
        yield node, node.attr
    if isinstance(node, ast.Name):
        if isinstance(node.ctx, ast.Load) and node.id not in local:
            yield node, node.id
        return
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns"):
            continue
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, ast.AST) and not (field == "decorator_list" and _fills_table(each)):
                yield from _names(each, local)


_FIXED = "@torch.compiler.assume_constant_result\n"
"""Dynamo (torch 2.13) cannot look NumPy's types up, and need not."""


def _is_about_types(node: ast.stmt) -> bool:
    """Whether a function takes nothing but element types, which are known where a graph is captured."""
    if not isinstance(node, ast.FunctionDef) or node.args.vararg is not None or node.args.kwonlyargs:
        return False
    kinds = [None if each.annotation is None else ast.unparse(each.annotation) for each in node.args.args]
    return "np.dtype[Any]" in kinds and {*kinds} <= {"np.dtype[Any]", "int"}


def _fills_table(decorator: ast.AST) -> bool:
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    return isinstance(called, ast.Name) and called.id in _TABLES


def _replaced(module: ModuleType, node: ast.stmt, edits: list[tuple[Any, str]]) -> str:
    lines = _source(module).split("\n")
    kept = [each for each in getattr(node, "decorator_list", []) if not _fills_table(each)]
    first = min([node.lineno, *(each.lineno for each in kept)]) if kept else node.lineno
    for used, text in sorted(edits, key=lambda edit: (edit[0].lineno, edit[0].col_offset), reverse=True):
        line = lines[used.lineno - 1].encode()
        new = line[: used.col_offset] + text.encode() + line[used.end_col_offset :]
        lines[used.lineno - 1] = new.decode()
    text = "\n".join(lines[first - 1 : node.end_lineno])
    return text.lstrip()
