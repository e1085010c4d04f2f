"""A model as a page of text that is the same on every machine."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from entrepot.ir.errors import EntrepotError
from entrepot.ir.model import Model
from entrepot.ir.printable import printable
from entrepot.parity.feeds import Feeds, generate
from entrepot.runtime.arrays import array_of_tensor
from entrepot.runtime.session import Session

_SHOWN = 8
"""Elements up to which an array is written out, and no figures about it."""

_TOLERANCE = 1e-3

_NUMBER = re.compile(r"(?<= )-?\d+\.?\d*(?:e[+-]?\d+)?(?= |$)")


def portrait(model: Model, feeds: Feeds | None = None) -> str:
    """Inputs, outputs, weights, nodes, and what comes out for certain inputs."""
    opsets = [f"{domain or 'ai.onnx'} {number}" for domain, number in sorted(model.opsets.items())]
    lines = [f"opset {', '.join(opsets)}"]
    lines += [f"in   {spec}" for spec in model.inputs] + [f"out  {spec}" for spec in model.outputs]
    lines += ["", "weights", *_weights(model), "", "nodes", *_nodes(model.ir.graph, "  ")]
    lines += ["", "results", *_results(model, feeds)]
    return "\n".join(printable(line).rstrip() for line in lines) + "\n"


def difference(before: str, now: str) -> str:
    """A unified diff; empty if the texts differ in nothing but the last digits of figures."""
    old = before.splitlines()
    known = {line.partition(" = ")[0]: line for line in old if " = " in line}
    new = []
    for line in now.splitlines():
        same = known.get(line.partition(" = ")[0], "")
        new.append(same if _are_close(same, line) else line)
    return "\n".join(difflib.unified_diff(old, new, "golden", "now", lineterm=""))


def _are_close(one: str, other: str) -> bool:
    """Whether the figures of two lines agree within a thousandth of the largest of them, and all else is the same."""
    if _NUMBER.sub("", one) != _NUMBER.sub("", other):
        return False
    expected, found = (np.array([float(number) for number in _NUMBER.findall(line)]) for line in (one, other))
    largest = np.max(np.abs(expected), initial=0)
    return bool(np.all(np.abs(expected - found) <= _TOLERANCE * largest))


def _weights(model: Model) -> Iterator[str]:
    for name, value in model.ir.graph.initializers.items():
        if value.const_value is not None:
            yield f"  {name} {_figures(array_of_tensor(value.const_value))}"


def _nodes(graph: ir.Graph, indent: str) -> Iterator[str]:
    for node in graph:
        inputs = ", ".join("" if value is None else value.name or "" for value in node.inputs)
        given = [f"{name}={_attribute(attribute)}" for name, attribute in node.attributes.items()]
        outputs = ", ".join(value.name or "_" for value in node.outputs)
        op_type = f"{node.domain}::{node.op_type}" if node.domain else node.op_type
        yield f"{indent}{outputs} <- {op_type}({inputs}){' ' * bool(given)}{' '.join(given)}"
        for name, attribute in node.attributes.items():
            if attribute.type == ir.AttributeType.GRAPH:
                body = attribute.as_graph()
                yield f"{indent}  {name}({', '.join(value.name or '' for value in body.inputs)})"
                yield from _nodes(body, f"{indent}    ")
                yield f"{indent}    returns {', '.join(value.name or '' for value in body.outputs)}"


def _attribute(attribute: ir.Attr) -> str:
    if attribute.type == ir.AttributeType.GRAPH:
        return "..."
    if attribute.type == ir.AttributeType.TENSOR:
        return _figures(array_of_tensor(attribute.as_tensor())).replace(" = ", ":")
    value: Any = attribute.value
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return f"[{', '.join(map(_plain, value))}]"
    return _plain(value)


def _plain(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _results(model: Model, feeds: Feeds | None) -> Iterator[str]:
    try:
        given = {name: _wave(array) for name, array in generate(model).items()} if feeds is None else feeds
        results = Session(model).run(given)
    except EntrepotError as error:
        yield f"  none: {type(error).__name__}"
        return
    for name, result in results.items():
        yield f"  {name} {_figures(result) if isinstance(result, np.ndarray) else type(result).__name__}"


def _wave(array: Any) -> Any:
    """Values that are the same on every machine, of the same shape and type."""
    if isinstance(array, list):
        return [_wave(each) for each in array]
    if array is None or array.dtype.kind == "O":
        return array
    if array.dtype.kind in "iub":
        return (np.arange(array.size) % 2).reshape(array.shape).astype(array.dtype)
    return np.cos(1.0 + np.arange(array.size)).reshape(array.shape).astype(array.dtype)


def _figures(array: np.ndarray) -> str:
    """Type and shape of an array; its elements if they are few, else its mean, root mean square and first three."""
    kind = f"{'string' if array.dtype.kind == 'O' else array.dtype.name}{list(array.shape)}"
    if array.dtype.kind == "O" or array.size == 0:
        return kind
    flat = array.reshape(-1)
    numbers = flat.astype(np.complex128 if flat.dtype.kind == "c" else np.float64)
    if numbers.size <= _SHOWN:
        return f"{kind} = {' '.join(map(_number, numbers))}"
    rms = np.sqrt(np.mean(np.abs(numbers) ** 2))
    return f"{kind} = mean {_number(numbers.mean())} rms {_number(rms)} first {' '.join(map(_number, numbers[:3]))}"


def _number(value: Any) -> str:
    return f"{value:.5g}"
