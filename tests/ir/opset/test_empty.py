"""Tensors without elements, down where older operators have no form for them."""

from __future__ import annotations

import numpy as np
import pytest

from entrepot.ir.errors import ConversionError
from entrepot.ir.io.read import load
from entrepot.ir.opset.convert import convert_opset
from tests.ir.opset.evaluate import op_types, parse
from tests.judges.verdict import judge, opinion, with_constants
from tests.op_cases.case import Case, f32, i16, i64, ints

CASES = [
    (Case("Max", f32(0, 3), f32(3), f32(0, 1)), 7),
    (Case("Max", i16(2, 0), i16(0), i16(2, 1)), 6),
    (Case("Mean", f32(0, 3), f32(3), f32(0, 1)), 1),
    (Case("Pow", f32(0, 3), f32(0, 1)), 1),
    (Case("Sub", f32(2, 0, 3), f32(1, 0, 1)), 6),
    (Case("ReverseSequence", f32(4, 0), ints()), 9),
    (Case("ReverseSequence", f32(4, 0, 3), ints()), 7),
    (Case("ReverseSequence", f32(0, 4), i64(0), time_axis=1, batch_axis=0), 7),
    (Case("STFT", f32(0, 20, 1), np.array(3), f32(8), np.array(8)), 16),
    (Case("RotaryEmbedding", f32(0, 3, 32), f32(0, 3, 4), f32(0, 3, 4), num_heads=4), 22),
    (Case("MaxUnpool", f32(0, 0, 2, 2), i64(0, 0, 2, 2), kernel_shape=[2, 2], strides=[2, 2]).giving(
        np.zeros((0, 0, 4, 4), np.float32)), 8),
]  # fmt: skip


@pytest.mark.parametrize(("case", "opset"), CASES, ids=str)
def test_nothing_stays_nothing(case: Case, opset: int) -> None:
    sample = opinion(case)
    assert sample is not None
    twin = with_constants(sample)
    assert twin is not None
    assert judge(twin, load(twin.model), opset) == ("right", "")
    assert judge(sample, load(sample.model), opset)[0] in ("right", "refused")


@pytest.mark.parametrize("shape", [(4, 0), (0, 5), (1, 1), (4, 3)])
def test_what_is_added_on_one_side_may_go_on_the_other(shape: tuple[int, int]) -> None:
    case = Case("Pad", f32(*shape), ints(-1, 2, 1, -2), np.array(9, np.float32))
    sample = opinion(case)
    assert sample is not None
    twin = with_constants(sample)
    assert twin is not None
    assert judge(twin, load(twin.model), 1) == ("right", "")


def test_squeezing_no_axes_of_none_of_size_1_changes_nothing() -> None:
    model = parse("y = Squeeze(x, axes)", 13, "float[2,3] x) => (float[2,3] y", stored="int64[0] axes = {}")
    assert op_types(convert_opset(model, 9)) == ["Identity"]


def test_an_axis_without_elements_is_not_resized_smoothly() -> None:
    body = 'y = Resize<axes = [3, 2], mode = "linear", antialias = 1>(x, , twice)'
    model = parse(body, 18, "float[1,2,5,0] x) => (float[1,2,10,0] y", stored="float[2] twice = {2, 2}")
    with pytest.raises(ConversionError, match="an axis of size 0"):
        convert_opset(model, 17)
