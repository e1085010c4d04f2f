"""Calls of layers and operations on symbolic tensors, written node by node."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import keras
import onnx_ir as ir
from keras import tree

from entrepot.exporters.building import Builder, typed
from entrepot.exporters.calls import MODEL_ERRORS, call, user_line
from entrepot.exporters.cutting import CUT, REFUSALS
from entrepot.exporters.keras import upstream
from entrepot.exporters.keras.dtypes import element_of, is_float, keras_dtype
from entrepot.exporters.keras.reading.masks import Masks
from entrepot.exporters.keras.reading.order import order
from entrepot.exporters.keras.reading.step import Step, shape_of
from entrepot.exporters.keras.reading.table import layer_rule, operation_rule
from entrepot.exporters.keras.reading.weights import Weights
from entrepot.ir.errors import ConversionError, EntrepotError

FAULTS = MODEL_ERRORS
"""What a call on symbolic tensors raises if it is not made for them."""


class Reader:
    """Writes what a model computes, in the graph of ``build``.

    Args:
        build: Where nodes go.

    Attributes:
        build: See above; a body's while one is written.
        weights: The variables so far.
        masks: The masks that values bear.
    """

    def __init__(self, build: Builder) -> None:
        self.build = build
        self.weights = Weights(build)
        self.masks = Masks()
        self._types: list[ir.DataType | None] = [None]  # what variables are cast to, outermost first

    # graphs ----------------------------------------------------------------------------------------------------------

    def run(self, nodes: Sequence[Any], known: dict[int, Any], results: Any) -> Any:
        """Write calls in their order.

        Args:
            nodes: The calls.
            known: Values of symbolic tensors, by their identity; more are added.
            results: A structure of symbolic tensors.

        Returns:
            The same structure of values.
        """
        for node in nodes:
            self.apply(node, known)
        return self._filled(results, known)

    def apply(self, node: Any, known: dict[int, Any]) -> None:
        """Write one call, whose results are added to the values of symbolic tensors that are known."""
        specs = upstream.outputs_of(node)
        args, kwargs = (self._filled(part, known) for part in upstream.arguments_of(node))
        try:
            made = self._applied(node.operation, args, kwargs, specs)
        except REFUSALS as error:
            if any(spec.dtype == "string" for spec in (*specs, *upstream.parents_of(node))):
                error.hint = CUT
            raise
        known.update(zip(map(id, specs), made, strict=True))

    def _filled(self, structure: Any, known: Mapping[int, Any]) -> Any:
        return tree.map_structure(lambda item: self._operand(item, known), structure)

    def _operand(self, item: Any, known: Mapping[int, Any]) -> Any:
        if isinstance(item, keras.KerasTensor):
            return known[id(item)]
        if isinstance(item, keras.Variable):
            return self.variable(item)
        return item

    def variable(self, variable: Any) -> ir.Value:
        """The value of a variable, in the type in which its layer computes."""
        value, kind = self.weights.value(variable), self._types[-1]
        casts = kind is not None and upstream.is_cast(variable) and is_float(value.dtype)
        return self.build.cast(value, kind) if casts else value

    def _applied(self, operation: Any, args: Any, kwargs: Any, specs: Sequence[Any]) -> list[ir.Value]:
        if isinstance(operation, keras.Layer):
            flat = [part for part in tree.flatten(self.call(operation, args, kwargs, specs)) if part is not None]
            return [self._shaped(value, spec) for value, spec in zip(flat, specs, strict=True)]
        rule = operation_rule(type(operation))
        if rule is not None:
            return self._settled(rule(Step(self, operation, specs), *args, **kwargs), specs)
        try:
            return self._settled(self.follow(operation.call, args, kwargs), specs)
        except FAULTS as error:
            raise ConversionError(f"{type(operation).__name__} of keras.ops has no rule") from error

    def _settled(self, results: Any, specs: Sequence[Any]) -> list[ir.Value]:
        """Results as a flat list, with the types and shapes that Keras states."""
        flat = [part for part in tree.flatten(results) if part is not None]
        return [self._stated(value, spec) for value, spec in zip(flat, specs, strict=True)]

    def _stated(self, value: ir.Value, spec: Any) -> ir.Value:
        value = self._shaped(value, spec)
        result = self.build.cast(value, element_of(spec.dtype))
        if result is not value:
            self.masks.set(result, self.masks.of(value))
        return result

    def _shaped(self, value: ir.Value, spec: Any) -> ir.Value:
        """A value with the shape that Keras states; what it states of types is not always so."""
        if value.dtype is None:
            value.type = ir.TensorType(element_of(spec.dtype))
        known = [None] * len(spec.shape) if value.shape is None else shape_of(value)
        if len(known) == len(spec.shape) and not value.is_initializer() and value.producer() is not None:
            typed(value, value.dtype, [a if b is None else b for a, b in zip(known, spec.shape, strict=True)])
        return value

    # layers ----------------------------------------------------------------------------------------------------------

    def call(self, layer: Any, args: Sequence[Any], kwargs: Mapping[str, Any], specs: Sequence[Any] = ()) -> Any:
        """Write the call of a layer, masks included.

        Raises:
            ConversionError: It is none that is known, and cannot be followed.
        """
        args, kwargs = self._converted(layer, args, kwargs)
        bound = upstream.signature_of(layer).bind_partial(*args, **kwargs)
        given = {name: item for name, item in bound.arguments.items() if _has_values(item)}
        filled, previous = self.masks.added(layer, bound.arguments, given, dict(kwargs))
        with self.build.module(layer.name), self._variables_of(layer):
            results = self._called(layer, args, filled, specs)
            if layer.supports_masking and given:
                self.masks.follow(layer, next(iter(given.values())), results, previous, self.follow)
        return results

    def _called(self, layer: Any, args: Sequence[Any], kwargs: Mapping[str, Any], specs: Sequence[Any]) -> Any:
        rule, graph = layer_rule(type(layer)), upstream.graph_of(layer)
        if rule is not None:
            return rule(Step(self, layer, specs), *args, **{k: v for k, v in kwargs.items() if k != "training"})
        if graph is not None:
            return self.graph(graph, tree.flatten(args[0] if args else kwargs["inputs"]))
        accepts = "training" in upstream.signature_of(layer).parameters
        try:
            return self.follow_layer(_call, layer, args, {**kwargs, "training": False} if accepts else kwargs)
        except EntrepotError:
            raise
        except FAULTS as error:
            line = user_line(error)
            reason = f"{upstream.reason_of(error)}{line and f', at {line}'}"
            raise ConversionError(f"'{layer.name}', a {type(layer).__name__}, cannot be followed: {reason}") from error

    def graph(self, model: Any, values: Sequence[Any]) -> Any:
        """Write a functional model, called on flat values."""
        known = {id(spec): value for spec, value in zip(model.inputs, values, strict=True)}
        nodes = upstream.ordered_nodes(model)
        return self.run(nodes, known, upstream.output_structure(model))

    def _converted(self, layer: Any, args: Any, kwargs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        if not upstream.converts_inputs(layer):
            return tuple(args), dict(kwargs)
        kind = element_of(layer.input_dtype)

        def convert(item: Any) -> Any:
            if not isinstance(item, ir.Value) or not is_float(item.dtype):
                return item
            result = self.build.cast(item, kind)
            if result is not item:
                self.masks.set(result, self.masks.of(item))
            return result

        return tuple(tree.map_structure(convert, tuple(args))), dict(tree.map_structure(convert, dict(kwargs)))

    @contextlib.contextmanager
    def _variables_of(self, layer: Any) -> Iterator[None]:
        kind = self._types[-1]
        policy = element_of(layer.compute_dtype) if layer.compute_dtype else None
        if not layer.autocast or not is_float(policy):
            kind = None
        elif kind is not None or layer.compute_dtype != layer.variable_dtype:
            kind = policy
        self._types.append(kind)
        try:
            yield
        finally:
            self._types.pop()

    # what has no rule ------------------------------------------------------------------------------------------------

    def follow_layer(self, function: Any, layer: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """The same for a function of a layer, which comes as one whose variables are symbolic."""
        known: dict[int, Any] = {}
        kept: list[Any] = []

        def symbol(variable: Any) -> Any:
            value = self.variable(variable)
            tensor = keras.KerasTensor(tuple(variable.shape), keras_dtype(value.dtype))
            known[id(tensor)] = value
            kept.append(tensor)
            return tensor

        other = upstream.stand_in(layer, symbol)
        return self.follow(functools.partial(function, other), args, kwargs, known)

    def follow(
        self, function: Any, args: Sequence[Any], kwargs: Mapping[str, Any], known: dict[int, Any] | None = None
    ) -> Any:
        """Call a function on symbolic tensors in place of values, and write the calls that it makes.

        Args:
            function: What is called.
            args: Its arguments.
            kwargs: Those by name.
            known: Values of symbolic tensors that it has already.

        Returns:
            What it returns, with values in place of symbolic tensors.
        """
        function = upstream.renamed(function)
        known = {} if known is None else known
        kept: list[Any] = []

        def symbolic(item: Any) -> Any:
            if not isinstance(item, ir.Value):
                return item
            tensor = keras.KerasTensor(shape_of(item), keras_dtype(item.dtype))
            known[id(tensor)] = item
            kept.append(tensor)
            mask = self.masks.of(item)
            if mask is not None:
                upstream.set_keras_mask(tensor, symbolic(mask))
            return tensor

        given = tree.map_structure(symbolic, tuple(args)), tree.map_structure(symbolic, dict(kwargs))
        results = call(function, *given)
        specs = [item for item in tree.flatten(results) if isinstance(item, keras.KerasTensor)]
        borne = [mask for spec in specs if (mask := upstream.get_keras_mask(spec)) is not None]
        made, masks = self.run(order([*specs, *borne], known), known, (results, borne))
        by_id = dict(zip(map(id, borne), masks, strict=True))
        for spec in specs:
            mask = upstream.get_keras_mask(spec)
            if mask is not None and self.masks.of(known[id(spec)]) is None:
                self.masks.set(known[id(spec)], by_id[id(mask)])
        return made

    @contextlib.contextmanager
    def inside(self, body: Builder) -> Iterator[Builder]:
        """Nodes that are written inside go into a body."""
        outer, self.build = self.build, body
        try:
            yield body
        finally:
            self.build = outer


def _call(layer: Any, *args: Any, **kwargs: Any) -> Any:
    return layer.call(*args, **kwargs)


def _has_values(item: Any) -> bool:
    flat = tree.flatten(item)
    return bool(flat) and all(isinstance(part, ir.Value) for part in flat)
