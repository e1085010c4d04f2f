"""ReverseSequence and Slice where older opsets have no form for them."""

from __future__ import annotations

import numpy as np
import pytest

from entrepot.ir.errors import ConversionError
from entrepot.ir.opset.convert import convert_opset
from tests.ir.opset.evaluate import assert_same, op_types, parse

SIGNATURE = "float[4,3] x, int64[3] n) => (float[4,3] y"


def test_only_the_first_two_axes_hold_sequences() -> None:
    model = parse("y = ReverseSequence<time_axis = -2>(x, n)", 10, SIGNATURE)
    with pytest.raises(ConversionError, match="time_axis=-2 and batch_axis=1 have to be 0 and 1"):
        convert_opset(model, 9)


@pytest.mark.parametrize("axes", [(0, 1), (1, 0)])
def test_sequences_along_either_axis_are_reversed_below_opset_10(axes: tuple[int, int]) -> None:
    body = f"y = ReverseSequence<time_axis = {axes[0]}, batch_axis = {axes[1]}>(x, n)"
    signature = SIGNATURE if axes[1] else SIGNATURE.replace("int64[3]", "int64[4]")
    lengths = np.array([2, 4, 3] if axes[1] else [2, 3, 1, 2])
    assert_same(parse(body, 10, signature), 9, np.arange(12, dtype=np.float32).reshape(4, 3), lengths)


def test_a_slice_along_no_axis_is_the_input_below_opset_10() -> None:
    model = parse("y = Slice(x, none, none)", 10, "float[N,4] x) => (float[N,4] y", stored="int64[0] none = {}")
    after = assert_same(model, 9, np.ones((2, 4), np.float32))
    assert op_types(after) == ["Identity"]
