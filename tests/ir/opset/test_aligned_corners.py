"""Resize with aligned corners and a scale that gives no whole size: what each judge says, and whom we follow where.

The corners are those of the result. By the text of every version its length is a whole number, and onnxruntime
computes so; onnx's own tests and its reference divide by the product of length and scale before it is rounded.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx.reference import ReferenceEvaluator

import entrepot as ep
from tests.ir.opset.evaluate import checked, parse

X = np.array([[[[1, 2, 3, 4], [5, 6, 7, 8]]]], np.float32)
HALVED = [[[[1.0, 22 / 7]]]]
"""Of ``test_resize_downsample_scales_linear_align_corners`` in onnx's backend tests: the corners of 2.4 elements."""
WHOLE = [[[[1.0, 4.0]]]]
"""The corners of 2 elements."""


def resized(version: int, mode: str = "linear") -> Any:
    given = "(x, r, s)" if version < 13 else "(x, , s)"
    stored = "float[4] s = {1, 1, 0.6, 0.6}" + (", float[0] r = {}" if version < 13 else "")
    how = f'mode = "{mode}", coordinate_transformation_mode = "align_corners"'
    body = f"y = Resize<{how}>{given}"
    return checked(parse(body, version, "float[1,1,2,4] x) => (float[1,1,P,Q] y", stored=stored))


def by_onnxruntime(proto: Any) -> Any:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(proto.SerializeToString(), options).run(None, {"x": X})[0]


@pytest.mark.parametrize("version", [11, 13, 18, 19])
def test_the_judges_differ_at_every_version_and_the_runtime_follows_the_tests_of_onnx(version: int) -> None:
    proto = resized(version)
    np.testing.assert_allclose(ReferenceEvaluator(proto).run(None, {"x": X})[0], HALVED, rtol=1e-6)
    np.testing.assert_allclose(by_onnxruntime(proto), WHOLE, rtol=1e-6)
    for provider in ("cpu", "reference"):
        np.testing.assert_allclose(ep.Session(proto, providers=provider)(X), HALVED, rtol=1e-6)


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("version", [9, 10])
def test_below_11_a_model_computes_what_onnxruntime_computed_before(mode: str, version: int) -> None:
    proto = resized(13, mode)
    converted = ep.convert_opset(proto, version, verify=True)
    assert converted.report is not None
    assert converted.report.ok
    np.testing.assert_allclose(by_onnxruntime(converted.to_proto()), by_onnxruntime(proto), rtol=1e-5)
    np.testing.assert_allclose(by_onnxruntime(proto), WHOLE, rtol=1e-5)
