"""An ONNX model as the source: read, checked, brought to another opset, verified against itself."""

from __future__ import annotations

from typing import Any

from entrepot.exporters.options import Judging, Options
from entrepot.exporters.proof.conversion import prove_result, report_on
from entrepot.exporters.sample import Sample
from entrepot.ir.errors import InputError
from entrepot.ir.io.read import load
from entrepot.ir.model import Model
from entrepot.ir.opset.convert import convert_opset
from entrepot.parity.report.report import Report
from entrepot.runtime.feeds import feeds_of


def export(source: Any, sample: Any, options: Options) -> Model:
    """Read ``source``, and convert it if another opset is asked for."""
    if options.dynamic not in ("auto", False) or options.input_names or options.output_names:
        raise InputError("an ONNX model comes with its axes and names", hint="leave dynamic and names out")
    if options.share or options.checks or options.dynamic_shapes is not None:
        raise InputError(
            "share, checks and dynamic_shapes are for models of a framework", hint="leave them out for an ONNX model"
        )
    model = load(source)
    if options.opset is None or options.opset == model.opset:
        return model
    converted = convert_opset(model, options.opset)
    if options.verify:
        feeds = None if sample is None else _feeds(model, Sample.of(sample))
        prove_result(model, converted, feeds, options.judging, made="converted")
    return converted


def verify(source: Any, model: Model, sample: Any, judging: Judging) -> Report:
    """Run both models on the sample (a dict of arrays, or arrays in input order; random if there is none)."""
    original = load(source)
    feeds = None if sample is None else _feeds(original, Sample.of(sample))
    return report_on(original, model, feeds, judging)


def _feeds(model: Model, sample: Sample) -> dict[str, Any]:
    names = [spec.name for spec in model.inputs]
    feeds = dict(zip(names, sample.args, strict=False)) | dict(sample.kwargs)
    if set(feeds) != set(names) or len(sample.args) > len(names):
        raise InputError(f"the sample gives {sorted(feeds)}, the model takes {names}")
    return feeds_of(model, feeds)
