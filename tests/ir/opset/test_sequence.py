"""Sequences below the opsets that have them."""

from __future__ import annotations

import numpy as np

from entrepot.ir.opset.convert import convert_opset
from tests.ir.opset.evaluate import parse, run


def test_a_map_over_a_sequence_needs_no_written_types() -> None:
    model = parse(
        "s = SequenceConstruct(x, x) m = SequenceMap(s) <body = b (t) => (u) { u = Neg(t) }>"
        " one = Constant<value_int = 1>() y = SequenceAt(m, one)",
        17,
        "float[2,3] x) => (float[2,3] y",
    )
    x = np.ones((2, 3), np.float32)
    np.testing.assert_array_equal(run(convert_opset(model, 13), x)[0], -x)
