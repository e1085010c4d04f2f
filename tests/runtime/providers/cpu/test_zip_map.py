"""Files that end in dictionaries, as converters of scikit-learn write them."""

from __future__ import annotations

import numpy as np
import onnx

import entrepot as ep


def test_a_session_returns_a_dictionary_for_each_row() -> None:
    model = onnx.parser.parse_model("""<ir_version: 9, opset_import: ["" : 18, "ai.onnx.ml" : 3]>
        net (float[n, 2] x) => (seq(map(string, float)) y)
        { s = Neg(x) y = ai.onnx.ml.ZipMap<classlabels_strings = ["no", "yes"]>(s) }""")
    outputs = ep.Session(ep.load(model)).run({"x": np.array([[1, 2], [3, 4]], np.float32)})
    assert outputs["y"] == [{"no": -1, "yes": -2}, {"no": -3, "yes": -4}]
