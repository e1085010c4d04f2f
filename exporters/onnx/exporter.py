"""An ONNX model as the source: read, checked, brought to another opset, proved."""

from __future__ import annotations

from typing import Any

from entrepot.exporters.exporter import Exporter, Source, refuse_modes
from entrepot.exporters.options import Judging, Options
from entrepot.exporters.proof.conversion import prove_result, report_on
from entrepot.exporters.recognition import Found, is_onnx
from entrepot.exporters.sample import Sample
from entrepot.ir.errors import InputError
from entrepot.ir.io.read import load
from entrepot.ir.model import Model
from entrepot.ir.opset.convert import convert_opset
from entrepot.parity.report.report import Report
from entrepot.runtime.feeds import feeds_of


class OnnxExporter(Exporter):
    """Models that are ONNX already: there is nothing to capture."""

    name = "onnx"

    def recognises(self, found: Found) -> bool:
        """Whatever ``load`` reads."""
        return is_onnx(found)

    def open(self, obj: Any, sample: Any) -> Source:
        """Not needed: both verbs are its own."""
        raise NotImplementedError

    def export(self, obj: Any, sample: Any, options: Options) -> Model:
        """Read ``obj``, and convert it if another opset is asked for."""
        _check(options)
        model = load(obj)
        if options.opset is None or options.opset == model.opset:
            return model
        converted = convert_opset(model, options.opset)
        if options.verify:
            prove_result(model, converted, _feeds(model, sample), options.judging, made="converted")
        return converted

    def verify(self, obj: Any, model: Model, sample: Any, judging: Judging) -> Report:
        """Run both models on the sample (a dict of arrays, or arrays in input order; random if there is none)."""
        original = load(obj)
        return report_on(original, model, _feeds(original, sample), judging)


EXPORTER = OnnxExporter()


def _check(options: Options) -> None:
    if options.dynamic not in ("auto", "all", False) or options.input_names or options.output_names:
        raise InputError("an ONNX model comes with its axes and names", hint="leave dynamic and names out")
    if options.share or options.checks or options.dynamic_shapes is not None or options.strings != "refuse":
        raise InputError(
            "share, checks, strings and dynamic_shapes are for models of a framework",
            hint="leave them out for an ONNX model",
        )
    refuse_modes(options)


def _feeds(model: Model, given: Any) -> dict[str, Any] | None:
    if given is None:
        return None
    sample = Sample.of(given)
    names = [spec.name for spec in model.inputs]
    feeds = dict(zip(names, sample.args, strict=False)) | dict(sample.kwargs)
    if set(feeds) != set(names) or len(sample.args) > len(names):
        raise InputError(f"the sample gives {sorted(feeds)}, the model takes {names}")
    return feeds_of(model, feeds)
