"""Operators of ``tf.raw_ops`` translated, and judged against TensorFlow through onnxruntime and our cpu runtime.

A case has *passed* when both compute what TensorFlow computes, from a graph in which no size is known. It is *static*
when only a graph of its own sizes can be written.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import tensorflow as tf

import entrepot as ep
from entrepot.exporters.tensorflow.graphs.body import SAME
from entrepot.exporters.tensorflow.table import pair_rules, rules
from entrepot.exporters.tensorflow.translation import translated
from entrepot.parity.untouched import Untouched
from tests.export_cases.raw_ops.case import RawCase
from tests.sweeps.outcome import Outcome

_TOLERANCES = {"float16": 2e-3, "bfloat16": 1.6e-2, "float32": 5e-6, "float64": 1e-11}
_NO_NUMBERS = (tf.string, tf.resource, tf.variant)


def judge(case: RawCase) -> Outcome:
    """Run, trace, translate and compare."""
    try:
        expected = _flat(case, _call(case, [tf.constant(array) for array in _given(case)]))
    except (tf.errors.OpError, ValueError, TypeError) as error:
        return _outcome(case, "invalid", error)
    verdict, why = "", ""
    started = time.process_time()
    for dynamic in (True, False):
        try:
            function = _traced(case, dynamic)
        except ValueError as error:  # TensorFlow does not take a graph without sizes
            verdict, why = "invalid", _line(error)
            continue
        try:
            model = ep.Model(_translated(function))
        except ep.EntrepotError as error:
            verdict, why = "refused", _line(error)
            continue
        except Exception as error:  # noqa: BLE001 - this is what the sweep is looking for
            return _outcome(case, "crashed", error)
        problem = _problem(case, model, expected)
        if problem:
            return _outcome(case, "wrong", problem)
        seconds = time.process_time() - started
        return Outcome(case.name, case.corpus, "passed" if dynamic else "static", why, seconds=seconds)
    return Outcome(case.name, case.corpus, verdict, why)


def coverage() -> tuple[list[str], list[str]]:
    """Numeric operators without state that have a kernel on CPU: those with a translation, and those without."""
    from tensorflow.python.framework import kernels, op_def_registry

    registered = {kernel.op for kernel in kernels.get_all_registered_kernels().kernel if kernel.device_type == "CPU"}
    known = {*SAME, *rules(), *pair_rules()}
    found: tuple[list[str], list[str]] = ([], [])
    for name in sorted(registered & set(dir(tf.raw_ops))):
        definition = op_def_registry.get(name)
        if definition is None or definition.is_stateful or name in _NOT_COUNTED:
            continue
        arguments = [*definition.input_arg, *definition.output_arg]
        if any(argument.is_ref or tf.as_dtype(argument.type or 1) in _NO_NUMBERS for argument in arguments):
            continue
        found[name not in known].append(name)
    return found


_NOT_COUNTED = {
    "Abort", "Batch", "BatchFunction", "Const", "DebugIdentity", "DebugNanCount", "DebugNumericSummary",
    "DebugNumericSummaryV2", "Enter", "Exit", "FakeParam", "For", "ImmutableConst", "LoopCond", "MapDefun", "Merge",
    "PartitionedCall", "Placeholder", "PlaceholderV2", "PlaceholderWithDefault", "PyFuncStateless", "SdcaOptimizer",
    "SdcaOptimizerV2", "Switch", "SymbolicGradient", "Unbatch", "UnbatchGrad", "CheckPinned", "NextIteration",
}  # fmt: skip
"""No functions of numbers: the graph's own parts, training, and debugging."""


def _outcome(case: RawCase, verdict: str, why: Any) -> Outcome:
    return Outcome(case.name, case.corpus, verdict, why if isinstance(why, str) else _line(why))


def _line(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return text if isinstance(error, ep.EntrepotError) else f"{type(error).__name__}: {text}"


def _named(case: RawCase) -> Iterator[tuple[str, list[Any]]]:
    for name, value in case.inputs.items():
        if name not in case.known:
            yield name, value if isinstance(value, list) else [value]


def _given(case: RawCase) -> Iterator[np.ndarray]:
    for _, values in _named(case):
        yield from map(np.asarray, values)


def _call(case: RawCase, arguments: Sequence[Any]) -> Any:
    waiting, inputs = list(arguments), {}
    for name, value in case.inputs.items():
        if name in case.known:
            inputs[name] = value
        elif isinstance(value, list):
            inputs[name], waiting = waiting[: len(value)], waiting[len(value) :]
        else:
            inputs[name], *waiting = waiting
        if name in case.steps:
            inputs[name] = tf.bitcast(inputs[name], tf.as_dtype(case.steps[name]))
    found = tf.nest.flatten(getattr(tf.raw_ops, case.op)(**inputs, **case.attributes))
    return found[: case.results]


def _flat(case: RawCase, results: Sequence[Any]) -> list[np.ndarray]:
    return [_text(np.asarray(_real(result))) for result in results]


def _real(value: Any) -> Any:
    """What a file can return: complex numbers as pairs, bfloat16, which NumPy lacks, as float32, plain integers."""
    if value.dtype.is_complex:
        return tf.stack([tf.math.real(value), tf.math.imag(value)], -1)
    if value.dtype.is_quantized:
        return tf.bitcast(value, tf.as_dtype(value.dtype.name.removeprefix("q")))
    return tf.cast(value, tf.float32) if value.dtype == tf.bfloat16 else tf.identity(value)


def _traced(case: RawCase, dynamic: bool) -> Any:
    arrays, specs = list(_given(case)), []
    closed = [name in case.closed for name, array in _named(case) for _ in range(len(array))]
    for array, sized in zip(arrays, closed, strict=True):
        shape = [None] * array.ndim if dynamic and not sized else list(array.shape)
        kind = tf.as_dtype(array.dtype)
        if kind.is_complex:
            shape, kind = [*shape, 2], kind.real_dtype
        specs.append(tf.TensorSpec(shape, kind))

    def function(*values: Any) -> list[Any]:
        given = [
            tf.complex(value[..., 0], value[..., 1]) if array.dtype.kind == "c" else value
            for value, array in zip(values, arrays, strict=True)
        ]
        return [_real(result) for result in _call(case, given)]

    return tf.function(function, autograph=False).get_concrete_function(*specs)


def _translated(function: Any) -> Any:
    names = [f"x{at}" for at in range(len(function.inputs))]
    dims = [
        [f"{name}_{at}" if size is None else size for at, size in enumerate(tensor.shape.as_list())]
        for name, tensor in zip(names, function.inputs, strict=True)
    ]
    return translated(function, names, dims, "main", {})[0]


def _problem(case: RawCase, model: ep.Model, expected: Sequence[np.ndarray]) -> str:
    """What is wrong with a file in one of the runtimes; empty if nothing is."""
    feeds = {spec.name: _fed(array) for spec, array in zip(model.inputs, _given(case), strict=True)}
    bfloat = any(np.asarray(array).dtype == ml_dtypes.bfloat16 for array in feeds.values())
    runtimes = {"cpu": lambda: ep.Session(model, providers=["cpu"])}
    if not bfloat:  # which onnxruntime's Python interface does not take
        runtimes["onnxruntime"] = lambda: Untouched(model)
    for name, opened in runtimes.items():
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = list(opened().run(feeds).values())
        except ep.EntrepotError as error:
            return f"in {name}: {_line(error)}"
        for at, (wanted, result) in enumerate(zip(expected, found, strict=True)):
            problem = _difference(case, wanted, np.asarray(result))
            if problem:
                return f"in {name}, result {at}: {problem}"
    return ""


def _fed(array: np.ndarray) -> np.ndarray:
    return np.stack([array.real, array.imag], -1) if array.dtype.kind == "c" else _text(array)


def _text(array: np.ndarray) -> np.ndarray:
    """Text as ``str``, which TensorFlow has as bytes."""
    if array.dtype.kind != "O":
        return array
    plain = [each.decode() if isinstance(each, bytes) else each for each in array.ravel()]
    return np.array([*plain, None], object)[:-1].reshape(array.shape)


def _difference(case: RawCase, wanted: np.ndarray, found: np.ndarray) -> str:
    if wanted.dtype != found.dtype or wanted.shape != found.shape:
        return f"{found.dtype}{found.shape} instead of {wanted.dtype}{wanted.shape}"
    if wanted.dtype.kind != "f":
        same = wanted == found
    else:
        half = next((name for name in ("float16", "bfloat16") if _of_kind(case, name)), wanted.dtype.name)
        rtol = max(_TOLERANCES[half], _TOLERANCES[wanted.dtype.name], case.tolerance or 0.0)
        same = np.isclose(wanted.astype(np.float64), found.astype(np.float64), rtol=rtol, atol=rtol / 5, equal_nan=True)
    if same.all():
        return ""
    first = tuple(np.argwhere(~same)[0])
    return f"{(~same).sum()} of {same.size} differ, at {first} {found[first]} instead of {wanted[first]}"


def _of_kind(case: RawCase, name: str) -> bool:
    return any(array.dtype.name == name for array in _given(case)) or case.attributes.get("DstT") == name
