"""Convolutions of single points as products of matrices, against direct sums."""

from __future__ import annotations

import onnx
import pytest

import entrepot as ep
from tests.judges.convolution import assert_convolves
from tests.op_cases.normal import normal as image

W, B = image(40, 24, 1, 1), image(40)


@pytest.mark.parametrize("bias", ["", ", b"], ids=["no bias", "bias"])
@pytest.mark.parametrize("strides", [[1, 1], [2, 3]], ids=str)
def test_any_number_of_points(strides: list[int], bias: str) -> None:
    proto = onnx.parser.parse_model(
        f"""<ir_version: 10, opset_import: ["": 22]>
        g (float[N, 24, H, I] x) => (float[N, 40, J, K] y) {{ y = Conv<strides = {strides}>(x, w{bias}) }}"""
    )
    proto.graph.initializer.extend(onnx.numpy_helper.from_array(v, k) for k, v in {"w": W, "b": B}.items())
    session = ep.Session(ep.load(proto), providers=["torch"])
    for shape in [(2, 24, 5, 7), (1, 24, 1, 1), (2, 24, 5, 7), (3, 24, 9, 8), (1, 24, 30, 30)]:
        x = image(*shape)
        assert_convolves(session.run({"x": x})["y"], x, W, B if bias else None, strides=strides)
