"""TopK where ``K`` was an attribute and only floats were ordered."""

from __future__ import annotations

import numpy as np
import pytest

from entrepot.ir.errors import ConversionError
from entrepot.ir.opset.convert import convert_opset
from tests.ir.opset.evaluate import assert_same, parse

X = np.random.default_rng(0).permutation(20).reshape(4, 5)


@pytest.mark.parametrize("k", [1, 3, 5])
def test_a_computed_k_cuts_off_a_whole_order(k: int) -> None:
    model = parse("y, i = TopK(x, k)", 11, "float[4,5] x, int64[1] k) => (float[4,K] y, int64[4,K] i")
    assert_same(model, 9, X.astype(np.float32), np.array([k]))


def test_a_computed_k_along_an_open_axis_is_refused() -> None:
    model = parse("y, i = TopK(x, k)", 11, "float[4,N] x, int64[1] k) => (float[4,K] y, int64[4,K] i")
    with pytest.raises(ConversionError, match="computed at run time"):
        convert_opset(model, 9)


def test_the_smallest_integers_are_found_exactly() -> None:
    model = parse(
        "y, i = TopK<largest = 0>(x, k)",
        11,
        "int32[4,5] x) => (int32[4,2] y, int64[4,2] i",
        stored="int64[1] k = {2}",
    )
    assert_same(model, 9, (X * 100_000_007 - 2**31).astype(np.int32))
