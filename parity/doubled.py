"""A model in double precision: where single precision decides by its last digit, this shows what is computed.

Of several hundred boxes the best are kept, in the order of scores that differ in the seventh digit. Two correct
implementations keep them in another order, unless both compute the scores more exactly.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir

from entrepot.ir.errors import EntrepotError
from entrepot.ir.inference import scope_types
from entrepot.ir.model import Model
from entrepot.ir.opset.scopes import Scope, scopes
from entrepot.ir.subgraphs import with_subgraphs
from entrepot.ir.traits import traits_of
from entrepot.ir.typing.query import Types
from entrepot.parity.compare import Comparison, OutputComparison
from entrepot.parity.scale import typical_magnitude
from entrepot.runtime.session import Session

_SINGLE, _DOUBLE = ir.DataType.FLOAT, ir.DataType.DOUBLE
_SAYS_TYPE = frozenset({"to", "dtype", "output_dtype", "output_datatype"})
"""Attributes that hold the number of an element type."""
_MOST_COPIED = 1 << 29
"""Bytes of weights in double precision."""
_LIKE = 4.0
"""By how many times a model may be further off than the source itself is in single precision."""


class Doubled:
    """A model that is run in double precision by our own runtime.

    Args:
        model: The model; it is left as it is.

    Raises:
        EntrepotError: It is too large, or has operators of which nothing is known.
    """

    def __init__(self, model: Model) -> None:
        doubled = in_double(model)
        self._session = Session(doubled, providers=["cpu"])
        self._outputs = [spec.name for spec in model.outputs]
        self._choices = [str(node.outputs[1].name) for node in doubled.ir.graph if node.op_type == "TopK"]
        self._last: tuple[Mapping[str, Any], dict[str, Any] | None] | None = None

    def run(self, feeds: Mapping[str, Any]) -> dict[str, Any] | None:
        """Outputs by name, those of single precision in double; ``None`` where it cannot be run."""
        found = self._computed(feeds)
        return None if found is None else {name: found[name] for name in self._outputs}

    def choices(self, feeds: Mapping[str, Any]) -> list[np.ndarray]:
        """The places that it chooses, in the order in which it does so; none where it cannot be run."""
        found = self._computed(feeds) if self._choices else None
        return [] if found is None else [found[name] for name in self._choices]

    def _computed(self, feeds: Mapping[str, Any]) -> dict[str, Any] | None:
        """Outputs and choices, which are asked for one after the other."""
        if self._last is None or self._last[0] is not feeds:
            names = [*dict.fromkeys([*self._outputs, *self._choices])]
            try:
                found = self._session.run({name: widened(value) for name, value in feeds.items()}, names)
            except EntrepotError:
                found = None
            self._last = feeds, found
        return self._last[1]


def in_double(model: Model) -> Model:
    """A copy of a model, at the hub's opset, that computes in double precision what the model does in single.

    Raises:
        EntrepotError: It is too large, or has operators of which nothing is known.
    """
    copy = model.at_hub().ir.clone()
    _check(copy)
    types = scope_types(copy)
    for scope in scopes(copy):
        graphs = [*with_subgraphs(scope.graph if isinstance(scope, ir.Function) else scope)]
        fixed = [(graph, node, _single_only(node, scope, types[scope])) for graph in graphs for node in graph]
        kinds = [(value, types[scope].type(value)) for graph in graphs for value in _values(graph)]
        for value, kind in kinds:
            value.type = _doubled(kind)
        for graph in graphs:
            _widen(graph)
        for graph, node, (inputs, outputs) in fixed:
            _narrow_around(graph, node, inputs, outputs)
    return Model(copy)


def most_moved(
    single: Mapping[str, Any], double: Mapping[str, Any], actual: Mapping[str, Any], output: OutputComparison
) -> float:
    """By how much an element of a source's output is off in single precision; 0 if that does not explain a model's.

    Args:
        single: What the source computes in single precision.
        double: And in double precision.
        actual: What the model computes.
        output: How the model's output differs from the first.
    """
    values: list[Any] = [each.get(output.name) for each in (single, double, actual)]
    one, exact, other = values
    if not all(isinstance(each, np.ndarray) for each in values) or one.shape != exact.shape:
        return 0.0
    measured = output.metrics is not None and np.isfinite(output.metrics.max_abs)
    if not measured or one.dtype.kind not in "fiu" or not one.size:
        return 0.0
    with np.errstate(invalid="ignore"):
        apart, further = (np.abs(each.astype(np.float64) - exact.astype(np.float64)) for each in (one, other))
    known = np.isfinite(apart)
    own, most = float(apart[known].max(initial=0.0)), float(further[known].max(initial=0.0))
    return own if most <= _LIKE * own else 0.0


def typed_alike(values: Mapping[str, Any], others: Mapping[str, Any]) -> dict[str, Any]:
    """Outputs, arrays of them in the element types of others: a source may insist on single precision somewhere."""
    return {name: _typed_like(value, others.get(name)) for name, value in values.items()}


def _typed_like(value: Any, other: Any) -> Any:
    if isinstance(value, list) and isinstance(other, list):
        return [_typed_like(*pair) for pair in itertools.zip_longest(value, other[: len(value)])]
    both = isinstance(value, np.ndarray) and isinstance(other, np.ndarray)
    return value.astype(other.dtype) if both else value


def allows_anything(found: Comparison, expected: Mapping[str, Any]) -> bool:
    """Whether an output may be off by as much as it is large, as the source itself is: that proves nothing either."""
    judged = ((output.tolerance, expected.get(output.name)) for output in found.outputs if output.noise)
    floats = [(rule, value) for rule, value in judged if isinstance(value, np.ndarray) and value.dtype.kind == "f"]
    return any(rule is not None and 2 * rule.atol > typical_magnitude(value) for rule, value in floats)


def mostly_excused(actual: Mapping[str, Any], settled: Mapping[str, Any]) -> bool:
    """Whether more than half of an output was taken from the source, which proves nothing about the model.

    Args:
        actual: What a model computes.
        settled: The same with what a source is unsure of taken from there.
    """
    pairs = [(value, settled.get(name)) for name, value in actual.items()]
    arrays = [(one, other) for one, other in pairs if isinstance(one, np.ndarray) and isinstance(other, np.ndarray)]
    return any(one.shape != other.shape or 2 * _differing(one, other) > one.size for one, other in arrays)


def _differing(one: np.ndarray, other: np.ndarray) -> int:
    """How many elements differ; NaN is NaN."""
    return int(((one != other) & ~((one != one) & (other != other))).sum())  # noqa: PLR0124


def _check(model: ir.Model) -> None:
    weights = [value.const_value for graph in with_subgraphs(model.graph) for value in graph.initializers.values()]
    if 2 * sum(each.nbytes for each in weights if each is not None) > _MOST_COPIED:
        raise EntrepotError("it is too large to be copied in double precision")
    for scope in scopes(model):
        for node in scope.all_nodes():
            called = node.op_identifier() in model.functions
            if not called and (node.domain or traits_of(node).random):
                raise EntrepotError(f"{node.op_type} cannot be computed in double precision")


def _values(graph: ir.Graph) -> Iterator[ir.Value]:
    yield from graph.inputs
    yield from graph.initializers.values()
    yield from (made for node in graph for made in node.outputs)


def _widen(graph: ir.Graph) -> None:
    for value in graph.initializers.values():
        if value.const_value is not None and value.const_value.dtype is _SINGLE:
            value.const_value = ir.tensor(value.const_value.numpy().astype(np.float64), name=value.name)
    for node in graph:
        for name, attribute in list(node.attributes.items()):
            if (changed := _widened_attribute(name, attribute)) is not None:
                node.attributes[changed.name] = changed
                if changed.name != name:
                    del node.attributes[name]


def _doubled(kind: ir.TypeProtocol | None) -> Any:
    match kind:
        case ir.TensorType(dtype=dtype) if dtype is _SINGLE:
            return ir.TensorType(_DOUBLE)
        case ir.SequenceType() | ir.OptionalType():
            return type(kind)(_doubled(kind.elem_type))
    return kind


def _widened_attribute(name: str, attribute: ir.Attr) -> ir.Attr | None:
    """An attribute in double precision; None if it stays as it is."""
    if attribute.is_ref():
        return None
    if attribute.type == ir.AttributeType.TENSOR and attribute.as_tensor().dtype is _SINGLE:
        return ir.AttrTensor(name, ir.tensor(attribute.as_tensor().numpy().astype(np.float64)))
    if name in _SAYS_TYPE and attribute.type == ir.AttributeType.INT and attribute.as_int() == int(_SINGLE):
        return ir.AttrInt64(name, int(_DOUBLE))
    if name in ("value_float", "value_floats"):
        return ir.AttrTensor("value", ir.tensor(np.array(attribute.value, np.float64)))
    return None


def _single_only(node: ir.Node, scope: Scope, types: Types) -> tuple[list[int], list[int]]:
    """The places of a node's operands and results in single precision that have no other type in ONNX."""
    if node.domain:
        return [], []
    schema = onnx.defs.get_schema(node.op_type, scope.opset_imports.get("", 0), "")
    allowed = {each.type_param_str: set(each.allowed_type_strs) for each in schema.type_constraints}

    def places(values: Sequence[ir.Value | None], formals: Sequence[Any]) -> list[int]:
        found = []
        for at, value in enumerate(values):
            kinds = allowed.get(
                formals[min(at, len(formals) - 1)].type_str, {formals[min(at, len(formals) - 1)].type_str}
            )
            if value is not None and types.dtype(value) is _SINGLE and not _takes_double(kinds):
                found.append(at)
        return found

    return places(node.inputs, schema.inputs), places(node.outputs, schema.outputs)


def _takes_double(kinds: set[str]) -> bool:
    return any("(double)" in kind for kind in kinds)


def _narrow_around(graph: ir.Graph, node: ir.Node, inputs: Sequence[int], outputs: Sequence[int]) -> None:
    """Let a node go on in single precision."""
    for at in inputs:
        cast = ir.node("Cast", [node.inputs[at]], {"to": int(_SINGLE)})
        cast.outputs[0].type = ir.TensorType(_SINGLE)
        graph.insert_before(node, cast)
        node.replace_input_with(at, cast.outputs[0])
    for at in outputs:
        made = node.outputs[at]
        cast = ir.node("Cast", [made], {"to": int(_DOUBLE)})
        made.replace_all_uses_with(cast.outputs[0], replace_graph_outputs=True)
        cast.replace_input_with(0, made)
        cast.outputs[0].name, made.name = made.name, made.name and f"{made.name}.single"
        cast.outputs[0].type, made.type = ir.TensorType(_DOUBLE), ir.TensorType(_SINGLE)
        graph.insert_after(node, cast)


def widened(value: Any) -> Any:
    """Arrays of single precision in double."""
    if isinstance(value, list):
        return [widened(each) for each in value]
    return value.astype(np.float64) if isinstance(value, np.ndarray) and value.dtype == np.float32 else value
