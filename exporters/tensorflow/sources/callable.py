"""Anything of TensorFlow that can be called, with its sample."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir
import tensorflow as tf

from entrepot.exporters.arrays import Array
from entrepot.exporters.axes.fewer import widest
from entrepot.exporters.axes.groups import Group
from entrepot.exporters.axes.probe import Prober
from entrepot.exporters.calls import call, user_line
from entrepot.exporters.exporter import Captured, Refusal, Source
from entrepot.exporters.options import Options
from entrepot.exporters.paths.several import Taken, put_together
from entrepot.exporters.sample import Sample
from entrepot.exporters.structure import Flat, flatten, flatten_call, same_structure, unflatten
from entrepot.exporters.tensorflow.arrays import TENSORFLOW, TRACED, NotingArrays, joined, shared, tensor_of
from entrepot.exporters.tensorflow.sources.samples import hold_to, made_sample
from entrepot.exporters.tensorflow.sources.tracing import FAILURES, Tracing
from entrepot.exporters.tensorflow.unchecked import has_unchecked, refuse_unchecked
from entrepot.exporters.tensorflow.upstream import counting_calls
from entrepot.ir.errors import ConversionError, EntrepotError, InputError


@dataclass(frozen=True)
class Opened:
    """Something that can be exported.

    Attributes:
        function: It, called as its user would.
        name: What it is called.
        origin: Where it is from.
        noun: What such a thing is called.
        traceable: What is traced instead, where that differs.
        names: What its variables are called, by ``id`` of their handles, where not as TensorFlow names them.
        has_python: Whether it is written in Python, instead of read from a file.
        takes: Its arguments, as ``tf.TensorSpec``s, where it knows them.
        keeps: What has to live as long as it does: functions do not hold their variables.
        variables: Those that it may change, which are given back their values.
        unsteadiness: How far its results may move where it rounds to steps, if it does.
    """

    function: Callable[..., Any]
    name: str
    origin: str
    noun: str = "function"
    traceable: Callable[..., Any] | None = None
    names: Mapping[int, str] | None = None
    has_python: bool = True
    takes: tuple[Any, Any] | None = None
    keeps: Any = None
    unsteadiness: Callable[[Sequence[Any]], Sequence[float]] | None = None
    variables: Callable[[], Sequence[Any]] = tuple


_TIMES = 100
_MANY = 5_000
"""How many more operators than for the sample may be run before a loop is held to be endless."""


_HALF = {tf.float16.as_datatype_enum, tf.bfloat16.as_datatype_enum}


class CallableSource(Source):
    """See ``Source``."""

    framework = f"tensorflow {tf.__version__}"
    arrays = TENSORFLOW

    def __init__(self, opened: Opened, sample: Any) -> None:
        self.opened = opened
        self.name, self.origin, self.noun = opened.name, opened.origin, opened.noun
        if sample is None and opened.takes is not None:
            sample = made_sample(opened.takes, opened.function, FAILURES)
        if sample is None:
            raise InputError(f"a {opened.noun} needs a sample to be exported", hint="ep.export(f, x): as it is called")
        noting = NotingArrays()
        self.call = flatten_call(Sample.of(sample, opened.function), opened.function, noting)
        self._are_complex = noting.are_complex
        self._usual: int | None = None
        self._in_python = opened.has_python
        self._unchecked = False
        self._traced: Any = None

    def __call__(self, arrays: Sequence[Array], /) -> Flat:
        """Call it as its user does: eagerly, unless it does not take the sample so, as what has to be traced."""
        first = self._in_python and self._usual is None
        try:
            return self._called(arrays)
        except Refusal:
            if not first:
                raise
            self._in_python = False
            with contextlib.suppress(Refusal):
                return self._called(arrays)
            self._in_python = True
            raise

    def _called(self, arrays: Sequence[Array]) -> Flat:
        try:
            if self._unchecked:
                refuse_unchecked(self._flat, arrays, FAILURES)
            args, kwargs = self._arguments([tensor_of(array) for array in arrays])
            if self._in_python and self.opened.takes is not None:
                hold_to(self.opened.takes[0], self.opened.function, args, kwargs)
            with self._eagerly():
                result = call(self.opened.function, args, kwargs, FAILURES)
        except FAILURES as error:
            raise Refusal(error, user_line(error)) from error
        try:
            return flatten(result, numbers=self.numbers, arrays=self.arrays)
        except tf.errors.OpError as error:  # of more axes than arrays of NumPy have, for example
            raise Refusal(error) from error

    def _flat(self, *tensors: Any) -> Any:
        args, kwargs = self._arguments(tensors)
        return call(self.opened.function, args, kwargs, FAILURES)

    def _arguments(self, tensors: Sequence[Any]) -> Any:
        """Flat tensors as the function takes them."""
        given = [joined(each) if pairs else each for each, pairs in zip(tensors, self._are_complex, strict=True)]
        return unflatten(self.call.tree, given)

    @contextlib.contextmanager
    def guard(self) -> Iterator[None]:
        """Inside, it may change its variables; afterwards they are as they were."""
        before = [(variable, variable.read_value()) for variable in self.opened.variables()]
        try:
            yield
        finally:
            for variable, value in before:
                if not np.array_equal(shared(variable.read_value()), shared(value), equal_nan=value.dtype.is_floating):
                    variable.assign(value)

    def unsteadiness(self, arrays: Sequence[Array]) -> Sequence[float]:
        """How far each result may move because a number between two steps is rounded to the other."""
        found = self.opened.unsteadiness
        return [] if found is None else found([tensor_of(array) for array in arrays])

    @contextlib.contextmanager
    def _eagerly(self) -> Iterator[None]:
        """Functions are run as Python inside, which spares a trace for each size, and ends loops that do not."""
        if not self._in_python:
            yield
            return
        before = tf.config.functions_run_eagerly()
        tf.config.run_functions_eagerly(True)
        try:
            with counting_calls(None if self._usual is None else _TIMES * self._usual + _MANY) as count:
                yield
            self._usual = count.total() if self._usual is None else self._usual
            self._unchecked |= has_unchecked(count)
        finally:
            tf.config.run_functions_eagerly(before)

    def behind_text(self, options: Options) -> Source:
        """See ``Source``."""
        from entrepot.exporters.tensorflow.sources.behind_text import behind_text

        return behind_text(self, options)

    def own_weights(self, graph: onnx_ir.Model, *, share: bool) -> None:
        """Nothing has to be done: TensorFlow copies a variable that is read elsewhere before it writes to it."""
        return

    def capture(self, prober: Prober, groups: list[Group], options: Options) -> Captured:
        """Trace it with the axes of groups left open; axes that the trace needs to know keep their sizes."""
        options.tell("tracing, and translating to ONNX")
        return widest(functools.partial(self._captured, prober, options), groups, prober.base)

    def _captured(self, prober: Prober, options: Options, groups: list[Group]) -> Captured:
        found, kept, fixed = Tracing(self, prober.sample, prober.result).widest(groups)
        graph, weights = found.graph, found.weights
        if any(reason.line for reason in fixed.values()):  # Python is to blame, and may do the same at every size
            take = functools.partial(self._at, kept)
            if (whole := put_together(self, prober, groups, kept, take, options)) is not None:
                graph, weights, kept, fixed = whole.graph, whole.weights, groups, {}
        self.parameters = sorted(weights - set(map(_original, graph.graph.outputs)))
        return Captured(graph, kept, fixed, weights=weights)

    def _at(self, kept: Sequence[Group], arrays: Sequence[Any]) -> Taken | None:
        """A trace at the sizes of other arrays than the sample, where only some axes vary."""
        try:
            found, varying, _ = Tracing(self, arrays, self(arrays)).widest(kept)
        except (Refusal, EntrepotError):
            return None
        return Taken(found.graph, found.weights) if varying == list(kept) else None

    def computes_in(self) -> Iterable[np.dtype[Any]]:
        """The types that are mentioned in the trace, and in the functions that it calls."""
        if self._traced is None:
            return ()
        graph = self._traced.graph.as_graph_def()
        nodes = [*graph.node, *(node for function in graph.library.function for node in function.node_def)]
        types = {attribute.type for node in nodes for attribute in node.attr.values() if attribute.type}
        return [np.dtype(tf.as_dtype(each).as_numpy_dtype) for each in types & _HALF]

    def traced(self, specs: Sequence[tf.TensorSpec], result: Flat) -> Any:
        """The concrete function that takes flat tensors and returns flat tensors.

        Args:
            specs: What it takes.
            result: What a call returns, whose structure the trace has to have.

        Raises:
            ConversionError: Its results have another structure.
        """
        traceable = self.opened.traceable or self.opened.function

        def flat(*tensors: Any) -> list[Any]:
            args, kwargs = self._arguments(tensors)
            found = flatten(call(traceable, args, kwargs, FAILURES), arrays=TRACED)
            if not same_structure(found.tree, result.tree):
                raise ConversionError("the results have another structure when it is traced than when it is called")
            return [tf.identity(tensor) for tensor in found.tensors]

        self._traced = tf.function(flat, autograph=False).get_concrete_function(*specs)
        return self._traced


def _original(value: onnx_ir.Value) -> str | None:
    """The name of what a value is a copy of: a variable that is returned may be called as it is."""
    while (node := value.producer()) is not None and node.op_type == "Identity" and node.inputs[0] is not None:
        value = node.inputs[0]
    return value.name
