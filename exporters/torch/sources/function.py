"""A plain function of tensors as a module, with the modules that it calls as parts."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import torch

from entrepot.exporters.recognition import surroundings


class FunctionModule(torch.nn.Module):
    """A function, a method or a partial one.

    The modules that it finds around it, or is a method of, are its parts: they are put into evaluation mode with it,
    and their weights are those of the model.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self._function = function
        plain = inspect.unwrap(function.func if isinstance(function, functools.partial) else function)
        self.name = getattr(plain, "__name__", type(plain).__name__)
        self.origin = f"{getattr(plain, '__module__', '')}:{getattr(plain, '__qualname__', self.name)}"
        self.training = False  # only its parts have a mode
        self.forward = function if _has_signature(function) else functools.partial(_call, function)
        for name, part in surroundings(plain).items():
            if isinstance(part, torch.nn.Module):
                self.add_module(name, part)


def _has_signature(function: Callable[..., Any]) -> bool:
    try:
        inspect.signature(function)
    except ValueError:  # one written in C, or in TorchScript
        return False
    return True


def _call(function: Callable[..., Any], /, *args: Any, **how: Any) -> Any:
    return function(*args, **how)
