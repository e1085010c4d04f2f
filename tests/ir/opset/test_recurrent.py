"""Recurrences spelled out for older versions."""

from __future__ import annotations

import numpy as np

from entrepot.ir.opset.convert import convert_opset
from tests.ir.opset.down.case import f32
from tests.ir.opset.evaluate import checked, parse, run


def test_batch_first_recurrence_is_transposed() -> None:
    signature = "float[{}] x, float[1,8,4] w, float[1,8,2] r) => (float[{}] y, float[{}] h"
    x, w, r = f32(3, 5, 4), f32(1, 8, 4), f32(1, 8, 2)
    body = "y, h = LSTM<hidden_size = 2{}>(x, w, r)"
    batch_first = parse(body.format(", layout = 1"), 14, signature.format("3,5,4", "3,5,1,2", "3,1,2"))
    time_first = parse(body.format(""), 14, signature.format("5,3,4", "5,1,3,2", "1,3,2"))
    y, h = run(convert_opset(batch_first, 13), x, w, r)
    want_y, want_h = run(time_first, x.swapaxes(0, 1).copy(), w, r)
    np.testing.assert_array_equal(y, want_y.transpose(2, 0, 1, 3))
    np.testing.assert_array_equal(h, want_h.swapaxes(0, 1))


def test_gru_1_has_both_outputs() -> None:
    model = parse(
        "y = GRU<hidden_size = 3>(x, w, r)", 7, "float[5,2,4] x, float[1,9,4] w, float[1,9,3] r) => (float[5,1,2,3] y"
    )
    after = convert_opset(model, 2)
    checked(after)
    (node,) = after.ir.graph
    assert [bool(output.name) for output in node.outputs] == [True, True]
