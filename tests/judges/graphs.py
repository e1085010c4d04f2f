"""What a graph of float32 computes, by onnx.reference in float64, and how far float32 may be from that at each value.

The rounding of each node is that of ``bounds``; what its inputs are off by goes on through it (``SPREAD``). Our result
and that of onnxruntime, which judges the judge, are both within that distance, however nodes are fused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import onnx

from tests.judges.agreement import assert_close
from tests.judges.bounds import slacks
from tests.judges.oracle import by_reference, run_onnxruntime
from tests.op_cases.case import Case

Array = np.ndarray[Any, Any]
LARGEST = float(np.finfo(np.float32).max)
HALF = 2.0**-24
"""Of a unit in the last place: what rounding one result costs."""
EXACT = ("Abs", "Clip", "Flatten", "Identity", "Neg", "Relu", "Reshape", "Transpose")


class Ball(NamedTuple):
    """Where a value is: at most ``radius`` from ``value``, element by element."""

    value: Array
    radius: Array


def assert_computes(
    model: onnx.ModelProto, feeds: Mapping[str, Array], results: Mapping[str, Array], *, times: float = 1.0
) -> None:
    """The results are the model's outputs, as exactly as float32 can give them, and so are those of onnxruntime.

    ``times`` is how much more a fast algorithm rounds than the sums of the operator's definition.
    """
    names = [value.name for value in model.graph.output]
    assert list(results) == names
    known = balls(model, feeds)
    for who, found in (("onnxruntime", run_onnxruntime(model, dict(feeds))), ("the session", results.values())):
        for name, got in zip(names, found, strict=True):
            ball = known[name]
            assert got.shape == ball.value.shape, f"{who}, {name}"
            assert_close(got, ball.value, times * _unless_overflowing(ball), f"{who}, {name}")


def balls(model: onnx.ModelProto, feeds: Mapping[str, Array]) -> dict[str, Ball]:
    """Every value of the main graph."""
    known = {name: _exactly(value) for name, value in feeds.items()}
    with np.errstate(all="ignore"):
        return _walk(model.graph, known)


def _walk(graph: onnx.GraphProto, known: dict[str, Ball]) -> dict[str, Ball]:
    known = known | {item.name: _exactly(onnx.numpy_helper.to_array(item)) for item in graph.initializer}
    for node in graph.node:
        attributes = {item.name: onnx.helper.get_attribute_value(item) for item in node.attribute}
        if node.op_type == "If":
            branch = attributes["then_branch" if known[node.input[0]].value else "else_branch"]
            inner = _walk(branch, known)
            made = [inner[value.name] for value in branch.output]
        elif node.op_type == "Constant":
            made = [_exactly(np.asarray(value)) for value in attributes.values()]
        else:
            made = _through(node, attributes, [known[name] if name else None for name in node.input])
        known |= dict(zip(node.output, made, strict=True))
    return known


def _through(node: onnx.NodeProto, attributes: dict[str, Any], inputs: list[Ball | None]) -> list[Ball]:
    given = {name: value.decode() if isinstance(value, bytes) else value for name, value in attributes.items()}
    case = Case(node.op_type, *(x if x is None else x.value for x in inputs), **given).outputs(len(node.output))
    values = _values(case)
    half = 0.0 if node.op_type in EXACT else HALF
    rounded = [lost + half * np.abs(value) for lost, value in zip(_lost(case, values), values, strict=True)]
    if any(x is not None and x.radius.any() for x in inputs):
        assert len(values) == 1, f"{node.op_type} has more than one output"
        rounded = [rounded[0] + SPREAD[node.op_type](case, inputs, values[0])]
    return [Ball(value, np.broadcast_to(slack, value.shape)) for value, slack in zip(values, rounded, strict=True)]


def _values(case: Case) -> list[Any]:
    """By onnx.reference, which knows transposed convolutions of one group only."""
    groups = case.attributes.get("group", 1)
    if case.op_type == "ConvTranspose" and groups > 1:
        x, w, *bias = (np.split(value, groups, axis) for value, axis in zip(case.inputs, (1, 0, 0), strict=False))
        parts = [case.having("group", 1).feeding(dict(enumerate(part))) for part in zip(x, w, *bias, strict=True)]
        return [np.concatenate([_values(part)[0] for part in parts], 1)]
    found = by_reference(case)
    assert found is not None, f"onnx.reference cannot run {case}"
    return found


def _lost(case: Case, values: list[Any]) -> list[Any]:
    return slacks(case, [value.astype(np.float32) if value.dtype == np.float64 else value for value in values])


def _exactly(value: Array) -> Ball:
    wide = value.astype(np.float64) if value.dtype == np.float32 else value
    return Ball(wide, np.zeros(np.shape(value)))


def _unless_overflowing(ball: Ball) -> Array:
    """Nothing is required of elements that float32 may be unable to represent, or that depend on such."""
    safe = np.isfinite(ball.radius) & (np.abs(ball.value) + ball.radius < LARGEST)
    return np.where(safe, ball.radius, np.inf)


def _largest(case: Case, inputs: Any, y: Array) -> Any:
    """No more than the sum of the inputs' errors: slopes are at most one."""
    return sum(x.radius for x in inputs if x is not None)


def _product(case: Case, inputs: Any, y: Array) -> Any:
    a, b = inputs
    return np.abs(a.value) * b.radius + np.abs(b.value) * a.radius + a.radius * b.radius


def _moved(case: Case, inputs: Any, y: Array) -> Any:
    return _values(case.feeding({0: inputs[0].radius}))[0]


def _linear(case: Case, inputs: Any, y: Array) -> Any:
    """How much larger the sum of the sizes can be."""
    assert not any(x.radius.any() for x in inputs[2:]), "a bias is computed, not given"
    sizes = case.feeding({n: np.abs(x.value) for n, x in enumerate(inputs[:2])} | {2: None})
    larger = case.feeding({n: np.abs(x.value) + x.radius for n, x in enumerate(inputs[:2])} | {2: None})
    return _values(larger)[0] - _values(sizes)[0]


def _normalized(case: Case, inputs: Any, y: Array) -> Any:
    x, scale, _, _, variance = inputs
    factor = np.abs(scale.value) / np.sqrt(variance.value + case.attributes.get("epsilon", 1e-5))
    return x.radius * factor.reshape(-1, *(1,) * (x.value.ndim - 2))


SPREAD: dict[str, Callable[[Case, Any, Array], Any]] = {
    **dict.fromkeys(("Abs", "Add", "Clip", "Identity", "Neg", "Relu", "Sub", "Sum", "Tanh"), _largest),
    **dict.fromkeys(("Conv", "ConvTranspose", "Gemm", "MatMul"), _linear),
    **dict.fromkeys(("Flatten", "Reshape", "Transpose"), _moved),
    "BatchNormalization": _normalized,
    "Div": lambda case, inputs, y: inputs[0].radius / np.abs(inputs[1].value),
    "Erf": lambda case, inputs, y: 1.13 * inputs[0].radius,
    "Exp": lambda case, inputs, y: y * np.expm1(inputs[0].radius),
    "Less": lambda case, inputs, y: np.abs(inputs[0].value - inputs[1].value) <= _largest(case, inputs, y),
    "Mul": _product,
    "Sigmoid": lambda case, inputs, y: inputs[0].radius / 4,
    "Softmax": lambda case, inputs, y: y * np.expm1(2 * inputs[0].radius.max(-1, keepdims=True)),
    "Sqrt": lambda case, inputs, y: inputs[0].radius / y,
}
"""The error of a result that stems from its inputs."""
