"""Operators that onnxruntime puts among the standard's before the standard has them."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest

from entrepot.ir.opset.convert import convert_opset
from tests.ir.opset.evaluate import op_types, parse
from tests.judges.oracle import run_onnxruntime

X = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
SCALE = "float[4] s = {1, 2, -1, 0.5}, float[4] b = {0, 1, 2, 3}"


@pytest.mark.parametrize("target", [12, 16, 17, 21])
@pytest.mark.parametrize(
    "body",
    ["y = LayerNormalization<epsilon = 0.01>(x, s, b)", "y = SimplifiedLayerNormalization<axis = -1>(x, s)"],
)
def test_a_normalisation_is_taken_wherever_it_is_stamped(body: str, target: int) -> None:
    model = parse(body, 14, stored=SCALE)
    (expected,) = run_onnxruntime(ir.serde.serialize_model(model.ir), {"x": X})
    converted = convert_opset(model, target)
    (found,) = run_onnxruntime(ir.serde.serialize_model(converted.ir), {"x": X})
    np.testing.assert_allclose(found, expected, rtol=0, atol=64 * np.finfo(np.float32).eps * np.abs(expected).max())
    assert ("LayerNormalization" in op_types(converted)) == (body.startswith("y = Layer") and target >= 17)
