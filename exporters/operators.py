"""``ep.op``: an operator of one's own, written once as a Python function."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import Any

from entrepot.ir.errors import InputError
from entrepot.ir.operators import Definition, define, forget
from entrepot.ir.table import OpKey


class Operator:
    """An operator: called with arrays it computes; called with tensors in ``forward`` it also becomes a node.

    Attributes:
        definition: What is known of it.
    """

    def __init__(self, definition: Definition) -> None:
        self.definition = definition
        self.__name__ = definition.function.__name__
        self.__qualname__ = definition.function.__qualname__
        self.__module__ = definition.function.__module__
        self.__doc__ = definition.function.__doc__
        self.__signature__ = inspect.signature(definition.function)

    def __call__(self, *args: Any, **attributes: Any) -> Any:
        """The result, or a tuple of all where there are several.

        Raises:
            ExecutionError: The function returns something else than was said of it.
        """
        torch = sys.modules.get("torch")
        if torch is not None and any(isinstance(each, torch.Tensor) for each in args):
            from entrepot.exporters.torch.lowering.operators import call

            return call(self.definition, args, attributes)
        results = self.definition.function(*args, **attributes)
        arrays = self.definition.checked(results, args, attributes)
        return arrays[0] if self.definition.outputs == 1 else arrays

    def remove(self) -> None:
        """Undo the registration; nobody knows the operator then."""
        forget(self.definition)

    def __repr__(self) -> str:
        return f"entrepot.Operator {self.definition} since {self.definition.key.since}"


def op(
    domain: str,
    name: str,
    *,
    since: int = 1,
    outputs: int = 1,
    shape: Callable[..., Any] | None = None,
    body: str = "",
) -> Callable[[Callable[..., Any]], Operator]:
    """Decorator that makes an ONNX operator of a function on NumPy arrays: for exports, sessions, and the command line.

    Args:
        domain: Whose operator it is: ``"my.domain"``.
        name: What it is called in files.
        since: The version of the domain that it came with.
        outputs: How many results it has.
        shape: Called like the function, with something that has ``shape`` and ``dtype`` for each array; returns such a
            thing for each result: ``lambda x: x.like(shape=x.shape[:1])``. Without it, each is like the first input.
        body: The same as a function in ONNX's textual form, written into files so that any runtime can run them.

    Returns:
        The decorator. What it returns is called like the function, with arrays, or with tensors in ``forward``. Inputs
        are the positional parameters (``None`` by default where optional), attributes the keyword-only ones.

    Raises:
        InputError: The name, the domain or a parameter cannot be one of an operator.
    """

    def register(function: Callable[..., Any]) -> Operator:
        if not callable(function):
            raise InputError(f"expected a function, got {type(function).__name__}")
        _check_parameters(function)
        definition = Definition(OpKey(domain, name, since), function, outputs, shape, _checked_body(body, domain, name))
        operator = Operator(definition)
        object.__setattr__(definition, "run", operator)
        define(definition)
        return operator

    return register


def _check_parameters(function: Callable[..., Any]) -> None:
    for each in inspect.signature(function).parameters.values():
        if each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD):
            raise InputError(f"*{each.name} stands for any number of inputs", hint="name each input and attribute")
        if each.kind is each.POSITIONAL_OR_KEYWORD and each.default not in (each.empty, None):
            raise InputError(
                f"the input '{each.name}' has the default {each.default!r}",
                hint=f"an optional input is None by default; an attribute comes after *: f(x, *, {each.name}=...)",
            )


def _checked_body(body: str, domain: str, name: str) -> str:
    if not body:
        return ""
    import onnx

    try:
        parsed = onnx.parser.parse_function(body)
    except onnx.parser.ParseError as error:
        raise InputError(
            f"the body of {domain}::{name} is no ONNX function: {error}", hint="see onnx.parser"
        ) from error
    if (parsed.domain, parsed.name) != (domain, name):
        raise InputError(f"the body is that of {parsed.domain}::{parsed.name}, not of {domain}::{name}")
    return body
