"""Parts of a module that are ScriptModules, as modules that Python runs, so that torch.export can follow them.

torch.export (2.13) calls the Python function that such a part was made from, with the part in front of the arguments
twice. Where the class that was scripted is known, a module of that class with the values of the part stands in for it;
a part that was traced, or read from a file, is run node by node.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import textwrap
import types
from collections.abc import Iterator

import torch

from entrepot.exporters.torch.capture.upstream import scripted_class, scripted_values
from entrepot.exporters.torch.running.swapping import put_back
from entrepot.exporters.torch.scripts.reader import Reader


@contextlib.contextmanager
def scripts_opened(root: torch.nn.Module) -> Iterator[None]:
    """Inside, no part of a module is a ScriptModule."""
    scripts = (torch.jit.ScriptModule, torch.jit.ScriptFunction)
    plain = [part for part in root.modules() if not isinstance(part, scripts)]
    holders = [part for part in plain if any(isinstance(each, torch.jit.ScriptModule) for each in part.children())]
    with put_back(holders):
        for part in holders:
            for name, child in part.named_children():
                if isinstance(child, torch.jit.ScriptModule):
                    part._modules[name] = opened(child)  # noqa: SLF001 - setattr would ask the class of the part
        yield


def opened(script: torch.jit.ScriptModule) -> torch.nn.Module:
    """A module of Python that computes what a ScriptModule does, with its parameters and buffers."""
    return _in_python(script) or Reader(script)


def _in_python(script: torch.jit.ScriptModule) -> torch.nn.Module | None:
    """A module of the class that was scripted; ``None`` if that is not known, or reads what the script has not kept."""
    kind = scripted_class(script)
    if kind is None or not isinstance(getattr(kind, "forward", None), types.FunctionType):
        return None
    module: torch.nn.Module = object.__new__(kind)
    torch.nn.Module.__init__(module)
    weights, buffers = (dict(each(recurse=False)) for each in (script.named_parameters, script.named_buffers))
    for name, value in scripted_values(script):
        if name not in weights and name not in buffers:
            object.__setattr__(module, name, value)
    for name, weight in weights.items():
        module.register_parameter(name, weight)  # type: ignore[arg-type]
    for name, buffer in buffers.items():
        module.register_buffer(name, buffer)
    for name, child in script.named_children():
        module.add_module(name, opened(child) if isinstance(child, torch.jit.ScriptModule) else child)
    if not all(hasattr(module, name) for name in _read(kind)):
        return None
    return module.train(script.training)


def _read(kind: type) -> Iterator[str]:
    """Names that the methods of a user's class read of ``self``: a script keeps no functions, and no parts unused."""
    for part in kind.__mro__:
        if part.__module__.startswith("torch.") or part is object:
            continue
        for function in vars(part).values():
            if isinstance(function, types.FunctionType) and function.__name__ != "__init__":
                yield from _read_of_self(function)


def _read_of_self(function: types.FunctionType) -> Iterator[str]:
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, SyntaxError):
        return
    own = next(iter(inspect.signature(function).parameters), "")
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == own:
            yield node.attr
