"""Files that end in dictionaries, as converters of scikit-learn write them."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
import torch

import entrepot as ep

LABELS = ['classlabels_strings = ["no", "yes"]', "classlabels_int64s = [3, 4]"]


def classifier(labels: str) -> ep.Model:
    proto = onnx.parser.parse_model(f"""<ir_version: 9, opset_import: ["": 18, "ai.onnx.ml": 3]>
        net (float[n, 2] x) => (seq(map(string, float)) y) <float[2, 2] w = {{0.1, 0.3, 0.7, 0.9}}> {{
        s = MatMul(x, w) p = Softmax(s) y = ai.onnx.ml.ZipMap<{labels}>(p) }}""")
    if "int64s" in labels:
        proto.graph.output[0].type.sequence_type.elem_type.map_type.key_type = onnx.TensorProto.INT64
    return ep.load(proto)


@pytest.mark.parametrize("labels", LABELS)
def test_dictionaries_are_held_in_single_precision_by_every_proof(labels: str) -> None:
    model = classifier(labels)
    report = ep.optimize(model).report
    assert report is not None
    assert report.ok, report
    assert {run.provider for run in report.runs if run.ok} == {"cpu", "onnxruntime"}
    names = {output.name for run in report.runs if run.comparison for output in run.comparison.outputs}
    assert names >= {f"y[{label!r}]" for label in (("no", "yes") if "strings" in labels else (3, 4))}


@pytest.mark.parametrize("labels", LABELS)
def test_dictionaries_leave_torch_as_they_are(labels: str) -> None:
    model, x = classifier(labels), np.array([[1, 2], [3, 4]], np.float32)
    expected = ep.Session(model).run({"x": x})["y"]
    made = ep.to_torch(model)(torch.from_numpy(x))
    assert [row.keys() for row in made] == [row.keys() for row in expected]
    assert ep.Session(model, providers=["torch", "cpu"]).run({"x": x})["y"] == made


def test_a_session_returns_a_dictionary_for_each_row() -> None:
    model = onnx.parser.parse_model("""<ir_version: 9, opset_import: ["" : 18, "ai.onnx.ml" : 3]>
        net (float[n, 2] x) => (seq(map(string, float)) y)
        { s = Neg(x) y = ai.onnx.ml.ZipMap<classlabels_strings = ["no", "yes"]>(s) }""")
    outputs = ep.Session(ep.load(model)).run({"x": np.array([[1, 2], [3, 4]], np.float32)})
    assert outputs["y"] == [{"no": -1, "yes": -2}, {"no": -3, "yes": -4}]
