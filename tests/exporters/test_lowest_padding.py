"""Padding by minus infinity before a maximum pooling, which pads so itself."""

from __future__ import annotations

import onnx_ir
import pytest
import torch
from onnx import parser
from torch import nn

import entrepot as ep
from entrepot.exporters.cleanup.lowest_padding import let_pools_pad

TEXT = """<ir_version: 8, opset_import: ["": 18]>
g (float[1, 2, 5, 5] x) => (float[1, 2, N, M] y{more}) <int64[8] pads = {{{pads}}}, float low = {{{low}}}> {{
    padded = Pad{how}(x, pads, low)
    y{second} = MaxPool<kernel_shape=[3, 3]{options}>(padded)
}}"""


def made(pads="0, 0, 1, 0, 0, 0, 2, 1", low="-inf", options=", pads=[1, 0, 0, 0]", **given):
    parts = {"how": "", "more": "", "second": "", **given}
    text = TEXT.format(pads=pads, low="0", options=options, **parts)
    proto = parser.parse_model(text)
    proto.graph.initializer[1].CopyFrom(_number(float(low)))
    model = onnx_ir.serde.deserialize_model(proto)
    let_pools_pad(model, ())
    return model


def _number(value):
    return onnx_ir.serde.serialize_tensor(onnx_ir.tensor(torch.tensor(value).numpy(), name="low"))


def test_the_pooling_pads():
    (pool,) = made().graph
    assert pool.op_type == "MaxPool"
    assert list(pool.attributes.get_ints("pads")) == [2, 0, 2, 1]
    assert pool.inputs[0].name == "x"


APART = {
    "another number": {"low": "-3e38"},
    "another mode": {"how": '<mode="edge">'},
    "as wide as a window": {"pads": "0, 0, 2, 0, 0, 0, 0, 0"},
    "channels": {"pads": "0, 1, 0, 0, 0, 0, 0, 0"},
    "less than nothing": {"pads": "0, 0, 0, 0, 0, 0, -1, 0"},
    "gaps in windows": {"options": ", dilations=[2, 1]"},
    "windows beyond the end": {"options": ", ceil_mode=1, strides=[2, 2]"},
    "an output": {"more": ", float[1, 2, K, L] padded"},
}


@pytest.mark.parametrize("case", APART.values(), ids=APART)
def test_the_padding_stays_where_the_pooling_cannot_do_it(case):
    assert [node.op_type for node in made(**case).graph] == ["Pad", "MaxPool"]


def test_pools_that_reach_beyond_the_end_cost_no_arithmetic():
    network = nn.Sequential(
        *[layer for _ in range(3) for layer in (nn.Conv2d(2, 2, 1), nn.MaxPool2d(3, 2, 1, 1, False, True))]
    )
    model = ep.export(network, torch.rand(1, 2, 21, 22), progress=False)
    assert {node.op_type for node in model.ir.graph} == {"Conv", "MaxPool"}
    assert model.inputs[0].shape == ("batch", 2, "height", "width")
