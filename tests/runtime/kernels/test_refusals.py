"""What an operator cannot do, it refuses with a reason: never a wrong result."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx.parser
import pytest
from onnx import TensorProto

import entrepot as ep
from entrepot.runtime.kernels.table import shared
from entrepot.runtime.providers.cpu.backend import NUMPY
from entrepot.runtime.providers.cpu.table import native
from tests.op_cases.case import Case, f32, i64, ints, u8
from tests.op_cases.normal import normal

REFUSED = [
    (Case("Reshape", f32(2, 3), ints(4, -1)), "cannot reshape"),
    (Case("Reshape", f32(0, 3), ints(0, 0, 0)), "does not have"),
    (Case("Reshape", f32(2, 3), ints(-2, 3)), "only -1 stands for what is left"),
    (Case("Flatten", f32(2, 3), axis=3), "axis 3 is out of range"),
    (Case("Flatten", f32(2, 3), axis=-3), "axis -3 is out of range"),
    (Case("CenterCropPad", f32(2, 3), ints(2), axes=[5]), "axis 5 is out of range"),
    (Case("GatherElements", f32(3), ints(0), axis=4), "axis 4 is out of range"),
    (Case("ScatterElements", f32(3), ints(0), f32(1), axis=4), "axis 4 is out of range"),
    (Case("Hardmax", f32(2, 3), axis=2), "axis 2 is out of range"),
    (Case("LayerNormalization", f32(2, 3), f32(3), axis=2), "axis 2 is out of range"),
    (Case("RMSNormalization", f32(2, 3), f32(3), axis=-3), "axis -3 is out of range"),
    (Case("OneHot", ints(0, 1), ints(3), f32(2), axis=3), "axis 3 is out of range"),
    (Case("CumSum", f32(2, 3), np.array(2)), "axis 2 is out of range"),
    (Case("QuantizeLinear", f32(2, 3), f32(3), axis=2), "axis 2 is out of range"),
    (Case("DequantizeLinear", u8(2, 3), f32(3), axis=-3), "axis -3 is out of range"),
    (Case("QuantizeLinear", f32(2, 1), f32(3)), r"\(3,\) does not fit axis 1"),
    (Case("DequantizeLinear", u8(2, 3), f32(2)), r"\(2,\) does not fit axis 1"),
    (Case("ReverseSequence", f32(4, 2), ints(5, 1)), r"lengths \[5, 1\] do not fit data of 4 steps"),
    (Case("ReverseSequence", f32(4, 2), ints(-1, 1)), "do not fit data of 4 steps"),
    (Case("ReverseSequence", f32(4, 2), ints(1)), "do not fit a batch of 2"),
    *[
        (Case(name, f32(2, 3, 1), f32(1, gates, 1), f32(1, gates, 1), None, lengths, hidden_size=1), words)
        for name, gates in (("RNN", 1), ("GRU", 3), ("LSTM", 4))
        for lengths, words in (
            (ints(3, 1, 1, dtype=np.int32), "do not fit data of 2 steps"),
            (ints(1, -1, 1, dtype=np.int32), "do not fit data of 2 steps"),
            (ints(1, dtype=np.int32), "do not fit a batch of 3"),
        )
    ],
    (Case("Split", f32(5), ints(2, 2)), "do not make up the 5 entries"),
    (Case("Split", f32(5), ints(-1, 6)), "do not make up the 5 entries"),
    (Case("Slice", f32(5), ints(0), ints(3), ints(0), ints(0)), "a step of 0"),
    (Case("Slice", f32(5, 2), ints(0, 1), ints(3, 2), ints(0, -2)), "name one of them twice"),
    (Case("Slice", f32(5, 2), ints(0), ints(3), ints(2)), "axis 2 is out of range"),
    (Case("Resize", f32(2, 3), None, None, ints(2, -1)), "a size is below 0"),
    (Case("Pad", f32(2, 3), ints(1, 1)), "2 widths for 2 axes, not 4"),
    (Case("Pad", f32(2), ints(1, 1), mode="mirror"), "not 'mirror'"),
    (Case("TopK", f32(2, 3), ints(4)), "K is 4"),
    (Case("TopK", f32(2, 3), ints(-1)), "K is -1"),
    (Case("Range", np.array(0), np.array(5), np.array(0)), "delta is 0"),
    (Case("Range", np.array(0.0), np.array(5.0), np.array(0.0)), "delta is 0"),
    (Case("BitShift", u8(2), u8(2), direction="UP"), "not 'UP'"),
    (Case("BitCast", f32(2), to=TensorProto.INT64), "32 bits"),
    (Case("Gelu", f32(2), approximate="sigmoid"), "not 'sigmoid'"),
    (Case("Gelu", f32(), approximate="sigmoid"), "not 'sigmoid'"),
    (Case("GatherND", f32(2), ints(0, 0, 0).reshape(1, 3)), "do not fit shape"),
    (Case("ScatterND", f32(2), ints(0).reshape(1, 1), f32(1), reduction="mean"), "not 'mean'"),
    (Case("ScatterElements", f32(2), ints(0), f32(1), reduction="mean"), "not 'mean'"),
    (Case("GatherElements", f32(3, 2), ints(0, 0, 0).reshape(1, 3)), "reach beyond"),
    (Case("ScatterElements", f32(3, 2), ints(0, 0, 0).reshape(1, 3), f32(1, 3)), "reach beyond"),
    (Case("ScatterElements", f32(3), ints(0, 1), f32(1)), r"shape \(1,\) where the indices ask for \(2,\)"),
    (
        Case("ScatterND", f32(3, 2), ints(0, 1).reshape(2, 1), f32(2)),
        r"shape \(2,\) where the indices ask for \(2, 2\)",
    ),
    (Case("TensorScatter", f32(1, 2, 2), f32(1, 1, 2), mode="wrap"), "not 'wrap'"),
    (Case("DepthToSpace", f32(1, 4, 1, 1), blocksize=2, mode="RDC"), "not 'RDC'"),
    (Case("ReduceSum", f32(2, 3), ints(2)), "out of range"),
    (Case("Cast", f32(2), to=TensorProto.FLOAT8E8M0, round_mode="even"), "not 'even'"),
    (Case("QuantizeLinear", f32(4), f32(1), u8(1), output_dtype=TensorProto.INT8), "the zero point is uint8"),
    (Case("QuantizeLinear", f32(2, 4), f32(2, 2)), "does not fit"),
]
SHAPES = [
    (Case("AffineGrid", f32(2, 2, 3), ints(3, 1, 4, 5)), "does not map to"),
    (Case("Tile", f32(2, 3), ints(2)), "repeats of shape"),
    (Case("Tile", f32(3), ints(2, 2)), "repeats of shape"),
    (Case("Slice", f32(5), ints(0, 1), ints(3, 4), ints(0, 0)), "name one of them twice"),
    (Case("Pad", f32(2, 3), ints(0, -2, 0, -2)), "cut off more"),
    (Case("CenterCropPad", f32(4, 6), ints(2)), "sizes .* for 2 axes"),
    (Case("ConvTranspose", f32(1, 1, 3, 3), f32(1, 1, 2, 2), output_shape=[4, 4, 4]), "does not fit 2"),
    (Case("Conv", f32(1, 2, 4, 4), f32(3, 2, 1, 1), f32(1)), "a bias of shape"),
    (Case("ConvTranspose", f32(1, 2, 4, 4), f32(2, 3, 1, 1), f32(1)), "a bias of shape"),
    (Case("LayerNormalization", f32(2, 3), f32(1, 2, 3)), "broadcast"),
    (Case("RMSNormalization", f32(2, 3), f32(1, 2, 3)), "broadcast"),
    (Case("GridSample", f32(1, 2, 4, 5), f32(1, 2, 3, 3, 3)), "does not fit X"),
    (Case("GridSample", f32(2, 2, 4, 5), f32(1, 3, 3, 2)), "does not fit X"),
    (Case("MaxUnpool", f32(1, 1, 2, 2), i64(1, 2, 2), kernel_shape=[2, 2], strides=[2, 2]), "indices of shape"),
    (Case("SplitToSequence", f32(5), ints(2, 2)), "do not make up 5"),
    (Case("SplitToSequence", f32(5), ints(6, -1)), "do not make up 5"),
    (Case("TensorScatter", f32(2, 3, 2), f32(1, 1, 2), ints(0, 0)), "an update of shape"),
    (Case("TensorScatter", f32(2, 3, 2), f32(2, 1, 2), ints(0)), "an update of shape"),
    (Case("NegativeLogLikelihoodLoss", f32(3, 5, 2), i64(1, 2)), "targets of shape"),
    (Case("SoftmaxCrossEntropyLoss", f32(3, 5), i64(1)), "targets of shape"),
    (Case("NonMaxSuppression", f32(1, 5, 3), f32(1, 1, 5), np.array([3])), "boxes of shape"),
    (Case("NonMaxSuppression", f32(1, 5, 4), f32(1, 1, 4), np.array([3])), "boxes of shape"),
    (Case("STFT", f32(1, 16, 1), np.array(0), None, np.array(8)), "frame_step is 0"),
    (Case("RotaryEmbedding", f32(1, 2, 3, 8), f32(5, 4), f32(5, 1), ints(0, 1, 2).reshape(1, 3)), "do not turn 8"),
    (Case("GatherND", f32(2, 2), np.zeros((2, 0), np.int64)), "do not fit shape"),
    (Case("BatchNormalization", f32(2, 3, 4), f32(1), f32(3), f32(3), f32(3)), "for each channel"),
    (Case("BatchNormalization", f32(2, 3, 4), f32(3), f32(3), f32(1), f32(1)), "for each channel"),
    (Case("InstanceNormalization", f32(2, 3, 4), f32(1), f32(3)), "for each channel"),
    (Case("BatchNormalization", f32(2, 3, 4), f32(1, 3), f32(3), f32(3), f32(3)), "for each channel"),
    (Case("InstanceNormalization", f32(2, 3, 4), f32(3), f32(3, 1)), "for each channel"),
    (Case("GroupNormalization", f32(2, 4, 3), f32(4), f32(1), num_groups=2), "for each channel"),
    (Case("GroupNormalization", f32(2, 4, 3), f32(4), f32(2, 2), num_groups=2), "for each channel"),
    (Case("DeformConv", f32(1, 2, 3, 3), f32(4, 2, 2, 2), f32(1, 8, 2, 2), f32(2, 2)), "a bias of shape"),
    *[
        (Case(name, f32(1, 2, 3, 1), f32(1, gates, 1), f32(1, gates, 1), hidden_size=1), "is not a sequence of batches")
        for name, gates in (("RNN", 1), ("LSTM", 4))
    ],
    (Case("QuantizeLinear", f32(3, 4), f32(3, 3), block_size=2), "does not fit"),
    (Case("DequantizeLinear", u8(4, 4), f32(1, 2), block_size=2), "does not fit"),
    *[
        (Case(name, f32(2, 3, 1), *weights, **more), words)
        for name, gates in (("RNN", 1), ("GRU", 3), ("LSTM", 4))
        for weights, more, words in (
            ((f32(1, gates, 1), f32(1, gates, 1), f32(2, 2 * gates)), {}, "B of shape"),
            ((f32(1, gates + 1, 1), f32(1, gates, 1)), {}, "W of shape"),
            ((f32(1, gates, 1), f32(1, gates, 1)), {"hidden_size": 2}, "hidden_size=2 disagrees"),
            ((f32(1, gates, 1), f32(1, gates, 1), None, None, f32(1, 1, 1)), {}, "an initial state of shape"),
        )
    ],
]
"""Sizes that broadcasting would let through, or slicing."""
OUT_OF_RANGE = [
    Case("Gather", f32(3), ints(3)),
    Case("Gather", f32(3), ints(-4)),
    Case("GatherElements", f32(3), ints(3)),
    Case("GatherElements", f32(3), ints(-4)),
    Case("GatherND", f32(3), ints(3).reshape(1, 1)),
    Case("ScatterND", f32(3), ints(3).reshape(1, 1), f32(1)),
    Case("ScatterElements", f32(3), ints(-4), f32(1)),
    Case("TensorScatter", f32(1, 3, 2), f32(1, 2, 2), i64(1, low=2, high=2)),
    Case("TensorScatter", f32(1, 3, 2), f32(1, 2, 2), ints(-1)),
]


def _runs(case: Case) -> list[Any]:
    tables = [(table, [NUMPY] if table is shared else []) for table in (shared, native)]
    found = [(table.find(case.domain, case.op_type, case.since), first) for table, first in tables]
    return [lambda e=e, first=first: e.function(*first, *case.inputs, **case.attributes) for e, first in found if e]


@pytest.mark.parametrize(("case", "reason"), REFUSED + SHAPES, ids=[str(case) for case, _ in REFUSED + SHAPES])
def test_an_impossible_request_is_refused_with_its_reason(case: Case, reason: str) -> None:
    for run in _runs(case):
        with pytest.raises(ValueError, match=reason):
            run()


@pytest.mark.parametrize("provider", ["cpu", "torch"])
@pytest.mark.parametrize("case", [case for case, _ in SHAPES], ids=str)
def test_sizes_that_do_not_fit_are_refused_by_every_provider(case: Case, provider: str) -> None:
    with pytest.raises(ep.EntrepotError):
        ep.Session(case.model(), providers=[provider]).run(case.feeds())


@pytest.mark.parametrize("provider", ["cpu", "reference", "torch"])
@pytest.mark.parametrize("size", [1, 7])
@pytest.mark.parametrize("then", ["y = Relu(z)", "y = BatchNormalization(z, s, b, s, s)"])
def test_constants_of_the_wrong_size_are_refused_when_they_are_packed_or_absorbed(
    then: str, size: int, provider: str
) -> None:
    text = f"g (float[1, 2, 4, 4] x) => (y) {{ z = Conv(x, w, {'b' if 'Relu' in then else 's'}) {then} }}"
    model = onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["": 20]> {text}')
    weights = {"w": normal(3, 2, 1, 1), "b": normal(size), "s": np.ones(3, np.float32)}
    model.graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in weights.items())
    with pytest.raises(ep.EntrepotError):
        ep.Session(model, providers=[provider]).run({"x": normal(1, 2, 4, 4)})


@pytest.mark.parametrize("case", OUT_OF_RANGE, ids=str)
def test_an_index_out_of_range_never_reads_or_writes_elsewhere(case: Case) -> None:
    for run in _runs(case):
        with pytest.raises(IndexError):
            run()
