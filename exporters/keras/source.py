"""A Keras model with a sample."""

from __future__ import annotations

import contextlib
import functools
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import keras
import numpy as np
import onnx_ir as ir
from keras import tree

from entrepot.exporters.axes.fewer import widest
from entrepot.exporters.axes.groups import Axis, Group
from entrepot.exporters.axes.probe import Prober
from entrepot.exporters.building import Builder
from entrepot.exporters.calls import call, user_line
from entrepot.exporters.exporter import Captured, Refusal, Source
from entrepot.exporters.keras import upstream
from entrepot.exporters.keras.arrays import KERAS, KerasArrays, numpy_of
from entrepot.exporters.keras.axes import is_batch_alone, is_deterministic, is_plain, stated_groups
from entrepot.exporters.keras.backends import capture_traced, traced_behind_text
from entrepot.exporters.keras.dtypes import element_of
from entrepot.exporters.keras.reading.reader import FAULTS, Reader
from entrepot.exporters.keras.running import Call, careful, compiled
from entrepot.exporters.keras.sample import given_arrays, made_arrays
from entrepot.exporters.notes import Fixed
from entrepot.exporters.options import Options
from entrepot.exporters.sample import Sample
from entrepot.exporters.structure import Flat, flatten, flatten_call, flatten_named, unflatten
from entrepot.ir.errors import ConversionError, EntrepotError, InputError
from entrepot.ir.passes.sink_transposes import SinkTransposes

_READ = "from its layers"
_TRACED = "as its backend traces it"


class KerasSource(Source):
    """A model or a layer, called for inference.

    Args:
        model: What is called.
        sample: What with; a model that knows its inputs needs none.
    """

    framework = f"keras {keras.__version__}"
    noun = "model"
    arrays = KERAS
    ways = (_READ, _TRACED)

    def __init__(self, model: Any, sample: Any) -> None:
        kind = type(model)
        self.model = model
        self.name, self.origin = str(model.name), f"{kind.__module__}:{kind.__qualname__}"
        self.graph = upstream.graph_of(model)
        self.call = self._flat(sample)
        for name, array in zip(self.call.names, self.call.tensors, strict=True):
            _check_real(name, array.dtype, "the model is called with", _TAKEN_APART)
        self.parameters = {str(variable.path) for variable in model.variables}
        self._settled: Flat | None = None
        self._plain: Call = careful(self._called, _faults())
        self._run = self._plain

    def _flat(self, sample: Any) -> Flat:
        if self.graph is not None:
            arrays = made_arrays(self.graph) if sample is None else given_arrays(self.graph, sample)
            named = zip(upstream.input_names(self.graph), self.graph.inputs, arrays, strict=True)
            return flatten_named([(name, _as_array(item, spec)) for name, spec, item in named], {}, KERAS)
        if sample is None:
            raise InputError(
                f"'{self.name}' does not say what it is called with", hint="ep.export(model, x): as it is called"
            )
        return flatten_call(Sample.of(sample, self.model.call), self.model.call, KERAS)

    def check(self, result: Flat) -> None:
        """Refuse results for which ONNX has no type."""
        super().check(result)
        for name, array in zip(result.names, result.tensors, strict=True):
            _check_real(name, array.dtype, "the model returns", _RETURNED_APART)

    def __call__(self, arrays: Sequence[Any], /) -> Flat:
        """Call the model for inference; what it returns for the sample is known once it has settled."""
        if self._settled is not None and all(map(np.array_equal, arrays, self.call.tensors)):
            return self._settled
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what Keras thinks of masks and structures
            try:
                result = flatten(self._run(arrays), arrays=KERAS)
            except _faults() as error:
                raise Refusal(error, user_line(error), upstream.reason_of(error)) from error
        if all(each.size for each in arrays) and not all(each.size for each in result.tensors):
            raise Refusal(ValueError("of what is too small for it, it returns nothing"))
        return result

    def _called(self, arrays: Sequence[Any]) -> Any:
        args, kwargs = self._arguments(arrays)
        accepts = "training" in upstream.signature_of(self.model).parameters
        return call(self.model, args, {**kwargs, "training": False} if accepts else kwargs, _faults())

    def _arguments(self, items: Sequence[Any]) -> tuple[Sequence[Any], dict[str, Any]]:
        """Flat items as the model takes them."""
        if self.graph is not None:
            return [tree.pack_sequence_as(upstream.input_structure(self.graph), list(items))], {}
        args, kwargs = unflatten(self.call.tree, items)
        return args, kwargs

    def settled(self) -> Flat:
        """See ``Source``; networks are large, so that this result is kept, and Keras' own layers are called once."""
        known = self.graph is not None and is_deterministic(self.graph)
        if known:
            self._run = compiled(self.graph, self._plain, self.call.tensors)
            with contextlib.suppress(Refusal):  # a call of the model itself says better why
                self._settled = self(self.call.tensors)
                return self._settled
            self._run = self._plain
        try:
            self._settled = self(self.call.tensors) if known else super().settled()
        except Refusal as refusal:
            at = f", at {refusal.source}" if refusal.source else ""
            raise InputError(f"the {self.noun} does not take the sample: {refusal}{at}") from refusal
        return self._settled

    def computes_in(self) -> Iterable[np.dtype[Any]]:
        """See ``Source``; under a policy of mixed precision, the last layer returns single precision as a rule."""
        stated = {each.compute_dtype for each in upstream.nested_layers(self.model)}
        return [element_of(dtype).numpy() for dtype in stated if dtype]

    def limits(self, prober: Prober, groups: Sequence[Group]) -> list[str]:
        """See ``Source``; a batch alone may be as small as any."""
        if self.graph is not None and is_batch_alone(self.graph) and is_plain(self.graph):
            return []
        return super().limits(prober, groups)

    def groups(self, prober: Prober, options: Options) -> tuple[list[Group], Collection[Axis], Mapping[Axis, Fixed]]:
        """What a functional model states is open needs hardly be tried."""
        if self.graph is None or options.dynamic not in ("auto", "all") or options.dynamic_shapes is not None:
            return super().groups(prober, options)
        return stated_groups(self.graph, self, prober, options)

    def behind_text(self, options: Options) -> Source:
        """Behind layers, or, of a model that is none of layers, behind operations of TensorFlow."""
        if self.graph is None:
            return traced_behind_text(self, self._called, options)
        from entrepot.exporters.keras.behind_text import behind_text

        return behind_text(self)

    def capture(self, prober: Prober, groups: list[Group], options: Options) -> Captured:
        """Read the model layer by layer, or let its backend trace it."""
        if self.way == _TRACED:
            return capture_traced(self, self._called, prober, groups, options)
        options.tell("reading the layers")
        return widest(functools.partial(self._layer_by_layer, prober), groups, prober.base)

    def _layer_by_layer(self, prober: Prober, groups: list[Group]) -> Captured:
        build = Builder(self.name)
        symbols = {axis: group.symbol for group in groups for axis in group.axes}
        inputs = [
            build.input(name, array.dtype, [symbols.get((at, axis), size) for axis, size in enumerate(array.shape)])
            for at, (name, array) in enumerate(zip(self.call.names, prober.sample, strict=True))
        ]
        with upstream.unrecorded(self.model), _refusals(self.name):
            outputs = self._as_returned(build, self._read(Reader(build), inputs))
        graph = build.model(outputs)
        SinkTransposes()(graph)
        return Captured(graph, groups, weights=self.parameters)

    def _read(self, reader: Reader, inputs: list[ir.Value]) -> list[ir.Value]:
        if self.graph is not None:
            specs = self.graph.inputs
            values = [reader.build.cast(v, element_of(s.dtype)) for v, s in zip(inputs, specs, strict=True)]
            result = reader.graph(self.graph, values)
        else:
            args, kwargs = self._arguments(inputs)
            result = reader.call(self.model, args, kwargs)
        flat = flatten(result, arrays=_VALUES).tensors
        return [reader.build.op("Identity", each) if each in inputs else each for each in flat]

    def _as_returned(self, build: Builder, outputs: list[ir.Value]) -> list[ir.Value]:
        """Outputs of the types that the backend returns, which for JAX are not those of 64 bits that Keras states."""
        known = [] if self._settled is None else self._settled.tensors
        if len(known) != len(outputs):
            return outputs
        pairs = zip(outputs, known, strict=True)
        return [value if array.dtype == object else build.cast(value, array.dtype) for value, array in pairs]

    def own_weights(self, graph: ir.Model, *, share: bool) -> None:
        """Nothing to do: they are copies."""
        return

    @contextlib.contextmanager
    def guard(self) -> Iterator[None]:
        """Afterwards the state of the model is what it was before."""
        before = [(variable, numpy_of(variable)) for variable in self._state()]
        try:
            yield
        finally:
            for variable, array in before:
                variable.assign(array)

    def _state(self) -> list[Any]:
        return [each for each in self.model.non_trainable_variables if "seed" in each.path or "state" in each.path]


class _Values(KerasArrays):
    """Values of a graph as the leaves of a result."""

    def leaf(self, value: Any, name: str) -> Any:
        return value if isinstance(value, ir.Value) else super().leaf(value, name)


_VALUES = _Values()


def _as_array(item: Any, spec: Any) -> Any:
    """A list of numbers as an array of the type of an input.

    Raises:
        InputError: The input takes numbers, and these are texts, or it is one text and no array.
    """
    if isinstance(item, str | bytes):
        raise InputError(f"the sample has a {type(item).__name__} where an array belongs", value=spec.name, hint=_ARRAY)
    if type(item).__module__.partition(".")[0] == "pandas" and hasattr(item, "to_numpy"):
        item = item.to_numpy()
    kind = getattr(getattr(item, "dtype", None), "kind", "")
    if kind in "SUO" and kind and keras.backend.standardize_dtype(spec.dtype) != "string":
        raise InputError(f"the sample is of {item.dtype}, and the model takes {spec.dtype}", value=spec.name)
    if not isinstance(item, list | tuple | int | float):
        return item
    try:
        return np.asarray(item, element_of(spec.dtype).numpy())
    except ValueError as error:
        raise InputError(f"the sample is a list that is no array: {error}", value=spec.name, hint=_PADDED) from error


def _check_real(name: str, dtype: Any, what: str, hint: str) -> None:
    """Refuse complex numbers; a layer that computes in real ones would drop what is imaginary."""
    if np.dtype(dtype).kind == "c":
        raise InputError(
            f"{what} {dtype}, which ONNX graphs can neither take nor return", value=name or None, hint=hint
        )


_TAKEN_APART = "take the real and the imaginary part as two inputs, and make the complex number inside"
_RETURNED_APART = "return its real and its imaginary part: keras.ops.real(y), keras.ops.imag(y)"
_ARRAY = "give the arrays that the model is called with: ep.export(model, x)"
_PADDED = "its rows have to be of one length: pad them"


def _faults() -> tuple[type[Exception], ...]:
    """What a model raises where it does not take its inputs; a backend has errors of its own."""
    if keras.backend.backend() != "tensorflow":
        return FAULTS
    import tensorflow as tf

    known: type[Exception] = tf.errors.OpError
    return (*FAULTS, known)


@contextlib.contextmanager
def _refusals(name: str) -> Iterator[None]:
    try:
        yield
    except EntrepotError:
        raise
    except FAULTS as error:
        raise ConversionError(f"'{name}' cannot be read layer by layer: {upstream.reason_of(error)}") from error
