"""Small functions of torch at edge values: the largest error by operator, beside that of torch.onnx's own export.

    python -m benchmarks.translation_accuracy [--match log] [--no-peer] [--all]

Each function is exported from values drawn from N(0, 1) and then run at zeros of both signs, tiny and huge numbers,
NaN and the infinities, for two operands at every pair of them. The functions are those of torch's own test table of
unary and binary functions and of ``tests.op_cases.torch_functions``. Errors are in units in the last place (ULP) of
what torch computes in float64; a point counts if torch in float32 gives the same kind of number. ``judge`` in
``tests.judges.precision`` says what is right. Where our file is right on our runtime and wrong on onnxruntime, the
last column names the kernels of onnxruntime that differ on their own, given the right operands.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import logging
import sys
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir
import torch

import entrepot as ep
from tests.judges.precision import Precision, judge
from tests.op_cases.torch_functions import Function, Module, answers, edges, functions

# nothing to compare: complex numbers, CUDA only, copies of others, casts that are undefined at the edges
_LEFT_OUT = ("jiterator", "complex", "polar", "cfloat", "cdouble", "chalf", "bfloat16", "frexp", "fill")
_UNDEFINED = ("byte", "char", "short", "int", "long", "rrelu")


_KNOWN = {
    "gelu, tanh": "torch rounds to zero what is left of a cancellation",
}
"""Functions about which our runtime and torch differ, and why that stays."""


@dataclass
class Row:
    """The outcome for one function, by who ran which file."""

    name: str
    cells: dict[str, Precision | str]
    note: str = ""


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; the exit code is 1 when our runtime is wrong on our own file for a reason that is not known."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--match", default="", help="only functions whose name contains this")
    parser.add_argument("--no-peer", action="store_true", help="without torch.onnx")
    parser.add_argument("--all", action="store_true", help="also show rows in which everything is right")
    options = parser.parse_args(arguments)
    logging.disable(logging.CRITICAL)
    columns = ["cpu", "onnxruntime"] + ([] if options.no_peer else ["torch.onnx"])
    print(f"{'function':34}" + "".join(f"{column:>14}" for column in columns) + "  first point that is wrong, kernels")
    rows = []
    for function in (*_table(), *functions()):
        if options.match in function.name:
            rows.append(_row(function, columns))
            if options.all or not all(_right(cell) for cell in rows[-1].cells.values()):
                print(_line(rows[-1], columns), flush=True)
    return _summary(rows, columns)


def _table() -> Iterator[Function]:
    """Torch's unary and binary functions of floats, with the arguments that its own tests give them first."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch.testing._internal.common_methods_invocations import op_db
        from torch.testing._internal.opinfo.core import BinaryUfuncInfo, UnaryUfuncInfo
    for info in op_db:
        name = f"{info.name}.{info.variant_test_name}".removesuffix(".")
        plain = torch.float32 in info.dtypes and not name.startswith((*_LEFT_OUT, "_")) and name not in _UNDEFINED
        if plain and isinstance(info, UnaryUfuncInfo) and "rrelu" not in name:
            how = info.sample_kwargs("cpu", torch.float32, torch.ones(3))[0]
            if "polygamma" not in name and not any(isinstance(value, torch.Tensor) for value in how.values()):
                yield Function(name, _bound(info.op, how), edges(1))
        elif plain and isinstance(info, BinaryUfuncInfo) and "polynomial" not in name:
            mode = info.variant_test_name.removesuffix("_rounding")
            yield Function(
                name, _bound(info.op, {"rounding_mode": mode} if mode in ("trunc", "floor") else {}), edges(2)
            )


def _bound(operator: Any, how: dict[str, Any]) -> Any:
    return lambda *args: operator(*args, **how)


def _row(function: Function, columns: Sequence[str]) -> Row:
    try:
        single, double = answers(function)
    except (RuntimeError, ValueError) as error:
        return Row(function.name, {}, f"torch itself refuses: {_first(error)}")
    row = Row(function.name, {})
    sample = tuple(torch.randn(array.shape, generator=torch.Generator().manual_seed(0)) for array in function.inputs)
    results = _ours(function, sample) | (_peer(function, sample) if "torch.onnx" in columns else {})
    for column in columns:
        result = results[column]
        row.cells[column] = result if isinstance(result, str) else judge(single, double, np.asarray(result))
    bad = next((cell for cell in row.cells.values() if isinstance(cell, Precision) and not cell.ok), None)
    if bad is not None:
        at = bad.at * function.inputs[0].shape[0] // max(single.size, 1)
        row.note = ", ".join(str(array[at].tolist()) for array in function.inputs) + f" -> {single.reshape(-1)[bad.at]}"
    if _right(row.cells["cpu"]) and not _right(row.cells["onnxruntime"]) and isinstance(results.get("model"), ep.Model):
        row.note += f"; {', '.join(_kernels(results['model'], function)) or 'no single kernel'}"
    return row


def _ours(function: Function, sample: tuple[torch.Tensor, ...]) -> dict[str, Any]:
    try:
        model = ep.export(Module(function.call), sample, verify=False, dynamic=False, progress=False)
    except ep.EntrepotError as error:
        return {"cpu": _first(error), "onnxruntime": _first(error)}
    feeds = dict(zip((spec.name for spec in model.inputs), function.inputs, strict=True))
    return {"model": model} | {name: _run(model, feeds, name) for name in ("cpu", "onnxruntime")}


def _run(model: ep.Model, feeds: dict[str, Any], provider: str) -> Any:
    try:
        return next(iter(ep.Session(model, providers=[provider]).run(feeds).values()))
    except ep.EntrepotError as error:
        return _first(error)


def _peer(function: Function, sample: tuple[torch.Tensor, ...]) -> dict[str, Any]:
    quiet = io.StringIO()
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(quiet), contextlib.redirect_stderr(quiet):
            warnings.simplefilter("ignore")
            program = torch.onnx.export(Module(function.call), sample, dynamo=True, verbose=False)
        model = ep.load(program.model_proto, trust="trusted")
        feeds = dict(zip((spec.name for spec in model.inputs), function.inputs, strict=True))
        return {"torch.onnx": _run(model, feeds, "onnxruntime")}
    except (torch.onnx.errors.OnnxExporterError, ep.EntrepotError) as error:
        return {"torch.onnx": _first(error)}


def _kernels(model: ep.Model, function: Function) -> list[str]:
    """Kernels of onnxruntime that differ from ours when both are given what ours computed up to there."""
    seen: dict[str, Any] = {}
    feeds = dict(zip((spec.name for spec in model.inputs), function.inputs, strict=True))
    ep.Session(model, providers=["reference"]).run(feeds, observe=seen.__setitem__)
    graph = model.at_hub().ir.graph
    constants = [
        *graph.initializers.values(),
        *(v for node in graph if node.op_type == "Constant" for v in node.outputs),
    ]
    tensors = {v.name: ir.convenience.get_const_tensor(v) for v in constants}
    known = seen | feeds | {name: tensor.numpy() for name, tensor in tensors.items() if tensor is not None}
    found = []
    for node in graph:
        if node.op_type != "Constant" and all(v is None or v.name in known for v in (*node.inputs, *node.outputs)):
            ours = known[node.outputs[0].name]
            theirs = _run(
                _alone(node, known, model.at_hub()), {v.name: known[v.name] for v in node.inputs if v}, "onnxruntime"
            )
            if isinstance(theirs, str) or not judge(ours, ours, np.asarray(theirs)).ok:
                found.append(node.op_type)
    return list(dict.fromkeys(found))


def _alone(node: ir.Node, known: dict[str, Any], model: ep.Model) -> ep.Model:
    """One node as a model, at an opset that onnxruntime loads."""

    def value(old: ir.Value | None) -> ir.Value | None:
        if old is None:
            return None
        array = known[old.name]
        return ir.Value(
            name=old.name, shape=ir.Shape(array.shape), type=ir.TensorType(ir.DataType.from_numpy(array.dtype))
        )

    inputs, outputs = [value(v) for v in node.inputs], [value(v) for v in node.outputs]
    copy = ir.Node(node.domain, node.op_type, inputs, node.attributes.values(), outputs=outputs)
    given = list({v.name: v for v in inputs if v is not None}.values())
    by_name = {v.name: v for v in given}
    for index, old in enumerate(node.inputs):
        copy.replace_input_with(index, by_name[old.name] if old is not None else None)
    graph = ir.Graph(given, outputs, nodes=[copy], opset_imports=dict(model.ir.graph.opset_imports), name="alone")
    return ep.convert_opset(ep.load(ir.Model(graph, ir_version=10)), 20, verify=False)


def _right(cell: Precision | str) -> bool:
    return isinstance(cell, Precision) and cell.ok


def _first(error: BaseException) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)


def _line(row: Row, columns: Sequence[str]) -> str:
    cells = [row.cells.get(column, "-") for column in columns]
    texts = ["refused" if isinstance(cell, str) else f"{cell.worst:.3g}{'' if cell.ok else ' !'}" for cell in cells]
    reason = next((cell for cell in cells if isinstance(cell, str) and cell != "-"), "")
    note = "; ".join(filter(None, (row.note or reason[:90], _KNOWN.get(row.name, ""))))
    return f"{row.name:34}" + "".join(f"{text:>14}" for text in texts) + f"  {note}"


def _summary(rows: Sequence[Row], columns: Sequence[str]) -> int:
    counted = [row for row in rows if row.cells]
    for column in columns:
        kinds = Counter(
            "refused" if isinstance(row.cells[column], str) else _right(row.cells[column]) for row in counted
        )
        print(f"{column:12} {kinds[True]} of {len(counted)} right, {kinds[False]} wrong, {kinds['refused']} refused")
    wrong = {row.name for row in counted if isinstance(row.cells["cpu"], Precision) and not row.cells["cpu"].ok}
    stale = {row.name for row in counted} & _KNOWN.keys() - wrong
    for name in stale:
        print(f"{name} is right now: drop it from the known differences")
    return int(bool(stale or wrong - _KNOWN.keys()))


if __name__ == "__main__":
    sys.exit(main())
