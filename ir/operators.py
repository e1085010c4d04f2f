"""Operators that users define: what is known of them, and where they are found."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from entrepot.ir.contributed.table import why_not
from entrepot.ir.errors import ExecutionError, InputError
from entrepot.ir.plugins import named
from entrepot.ir.subgraphs import subgraphs
from entrepot.ir.table import OpKey

if TYPE_CHECKING:
    import onnx_ir as ir


@dataclass(frozen=True)
class Shaped:
    """What a shape function is told of an array, and what it returns of a result.

    Attributes:
        shape: Sizes; a framework's own symbols while it is captured, and ``Size`` where a file has a name or nothing.
        dtype: NumPy's element type.
    """

    shape: tuple[Any, ...]
    dtype: np.dtype[Any]

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    def like(self, *, shape: Sequence[Any] | None = None, dtype: Any = None) -> Shaped:
        """The same with another shape or element type."""
        return Shaped(self.shape if shape is None else tuple(shape), self.dtype if dtype is None else np.dtype(dtype))


@dataclass(frozen=True)
class Size:
    """A size that a file names, or does not tell; what is computed from it is not known.

    Attributes:
        name: The symbol; empty where there is none.
    """

    name: str = ""

    def _unknown(self, *_: Any) -> Size:
        return Size()

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __floordiv__ = __rfloordiv__ = __mod__ = _unknown
    __neg__ = __rmod__ = _unknown


@dataclass(frozen=True)
class Definition:
    """One operator.

    Attributes:
        key: Domain, name and version.
        function: Arrays in, an array or a tuple of them out; attributes by keyword.
        outputs: How many results it has.
        shape: Takes the same arguments with ``Shaped`` for arrays, and returns one for each result.
        body: The same as an ONNX function in its textual form; empty if there is none.
        run: What sessions call; the function with its results checked.
    """

    key: OpKey
    function: Callable[..., Any]
    outputs: int = 1
    shape: Callable[..., Any] | None = None
    body: str = ""
    run: Callable[..., Any] = field(default=lambda: None, compare=False)

    def __str__(self) -> str:
        return f"{self.key.domain}::{self.key.op_type}"

    @cached_property
    def inputs(self) -> dict[str, bool]:
        """Names of the inputs, and whether each may be left out."""
        parameters = inspect.signature(self.function).parameters.values()
        return {each.name: each.default is None for each in parameters if each.kind is each.POSITIONAL_OR_KEYWORD}

    @cached_property
    def attributes(self) -> dict[str, Any]:
        """Names of the attributes with their defaults; where there is none, with a value of the kind that it has."""
        return {each.name: _example(each) for each in self._keywords}

    @cached_property
    def required(self) -> frozenset[str]:
        """Attributes without a default."""
        return frozenset(each.name for each in self._keywords if each.default is each.empty)

    @property
    def _keywords(self) -> list[inspect.Parameter]:
        parameters = inspect.signature(self.function, eval_str=True).parameters.values()
        return [each for each in parameters if each.kind is each.KEYWORD_ONLY]

    def shapes(self, given: Sequence[Shaped | None], attributes: dict[str, Any]) -> tuple[Shaped, ...]:
        """What the results are like; without a shape function each is like the first input.

        Raises:
            InputError: The shape function does not return what it should.
        """
        if self.shape is None:
            first = next(each for each in given if each is not None)
            return (first,) * self.outputs
        found = self.shape(*given, **attributes)
        shapes = found if isinstance(found, tuple) else (found,)
        if len(shapes) != self.outputs or not all(isinstance(each, Shaped) for each in shapes):
            raise InputError(
                f"the shape function of {self} returned {found!r}, not {self.outputs} of what it is given",
                hint="return x.like(shape=..., dtype=...), and a tuple of them for several outputs",
            )
        return shapes

    def checked(self, results: Any, given: Sequence[Any], attributes: dict[str, Any]) -> tuple[Any, ...]:
        """The results as arrays that are what was said of them.

        Raises:
            ExecutionError: They are not.
        """
        arrays = tuple(map(np.asarray, results if isinstance(results, tuple) else (results,)))
        shaped = [None if each is None else Shaped(np.shape(each), np.asarray(each).dtype) for each in given]
        said = self.shapes(shaped, attributes)
        found = tuple(Shaped(array.shape, array.dtype) for array in arrays)
        if found != tuple(replace(each, shape=tuple(map(int, each.shape))) for each in said):
            what = "its shape function says" if self.shape is not None else "results are like the first input, so"
            raise ExecutionError(
                f"{self} returned {_listed(found)}, but {what} {_listed(said)}",
                hint='say what it returns: @ep.op(..., shape=lambda x: x.like(shape=..., dtype="float32"))',
            )
        return arrays


def _example(parameter: inspect.Parameter) -> Any:
    if parameter.default is not parameter.empty:
        return parameter.default
    several = getattr(parameter.annotation, "__args__", ())
    kind = several[0] if several else parameter.annotation
    value = kind() if kind in (int, float, str, bool) else None
    return [value] if several else value


def _listed(shapes: Sequence[Shaped]) -> str:
    return " and ".join(f"{each.dtype}{each.shape}" for each in shapes) or "nothing"


_DEFINED: dict[OpKey, Definition] = {}
_ASKED: set[str] = set()
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def define(definition: Definition) -> None:
    """Register an operator; one of the same name and version takes the place of the one before.

    Raises:
        InputError: It cannot be an operator.
    """
    from entrepot.ir.operator_schema import register

    domain, op_type, since = definition.key
    if domain in ("", "ai.onnx") or domain.startswith("ai.onnx"):
        raise InputError(f"'{domain}' belongs to the standard", hint='take a domain of your own: "my.domain"')
    if not all(map(_NAME.fullmatch, (op_type, *domain.split(".")))):
        raise InputError(f"'{domain}::{op_type}' is no name of an operator", hint='like @ep.op("my.domain", "Foo")')
    if since < 1:
        raise InputError(f"since is {since}, and versions begin with 1")
    register(definition)
    _DEFINED[definition.key] = definition


def forget(definition: Definition) -> None:
    """Undo a registration, if it is still in force."""
    from entrepot.ir.operator_schema import deregister

    if _DEFINED.get(definition.key) is definition:
        del _DEFINED[definition.key]
        deregister(definition)


def defined(key: OpKey) -> Definition | None:
    """The operator of exactly this version, if somebody has registered it."""
    return _DEFINED.get(key)


def in_force(domain: str, op_type: str, version: int) -> Definition | None:
    """The newest operator that a model with this version of a domain may mean; asks the distributions that bring it."""
    ask(domain)
    keys = [key for key in _DEFINED if key[:2] == (domain, op_type) and key.since <= version]
    return _DEFINED[max(keys)] if keys else None


def ask(domain: str) -> None:
    """Import what a distribution registers for a domain among ``entrepot.operators``, once."""
    if domain and domain not in _ASKED:
        _ASKED.add(domain)
        plugin = named("operators", domain)
        if plugin is not None:
            plugin.load()


def is_defined(node: ir.Node, model: ir.Model) -> bool:
    """Whether a node is a user's operator, or one is in a graph that it holds or in a function that it calls."""
    function = model.functions.get(node.op_identifier())
    if function is not None:
        return any(is_defined(inner, model) for inner in function if inner.op_identifier() != node.op_identifier())
    if node.domain and in_force(node.domain, node.op_type, model.graph.opset_imports.get(node.domain) or 1) is not None:
        return True
    return any(is_defined(inner, model) for graph in subgraphs(node) for inner in graph)


def uses_defined(model: ir.Model) -> bool:
    """Whether a model needs Python to run."""
    return any(is_defined(node, model) for node in model.graph)


def missing(node: ir.Node) -> str:
    """Why nobody runs a node that the standard does not define, and what would help."""
    name = f"{node.domain}::{node.op_type}"
    versions = sorted(key.since for key in _DEFINED if key[:2] == (node.domain, node.op_type))
    if not node.domain or node.domain.startswith("ai.onnx"):
        return "ONNX defines no such operator"
    if reason := why_not(node.domain):
        return f"{name} cannot be run here, as {reason}"
    if versions:
        return f"{name} is registered since version {versions[0]}, and the model means an older one"
    return (
        f"ONNX defines no such operator, and nobody has registered {name}: "
        f'import what defines it, or write @ep.op("{node.domain}", "{node.op_type}")'
    )
