"""Normalisation spelled out."""

from __future__ import annotations

import numpy as np
import pytest

from entrepot.ir.opset.convert import convert_opset
from tests.ir.opset.down.case import X, image
from tests.ir.opset.evaluate import assert_same, op_types, parse, run


def test_statistics_of_doubles_are_not_narrowed_to_the_stash_type() -> None:
    model = parse("y = LayerNormalization(x, s)", 17, "double[2,4] x, double[4] s) => (double[2,4] y")
    x, s = np.random.default_rng(0).standard_normal((2, 4)), np.ones(4)
    centred = x - x.mean(1, keepdims=True)
    truth = centred / np.sqrt((centred**2).mean(1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(run(convert_opset(model, 16), x, s)[0], truth, rtol=1e-12)


@pytest.mark.parametrize("target", [16, 9])
def test_saved_statistics_of_doubles_have_the_stash_type(target: int) -> None:
    model = parse("y, m = LayerNormalization(x, s)", 17, "double[2,4] x, double[4] s) => (double[2,4] y, float[2,1] m")
    x = np.random.default_rng(0).standard_normal((2, 4))
    _, mean = run(convert_opset(model, target), x, np.ones(4))
    assert mean.dtype == np.float32
    np.testing.assert_allclose(mean, x.mean(1, keepdims=True), rtol=1e-6)


def test_the_deprecated_first_form_of_group_norm_is_never_written() -> None:
    model = parse(
        "y = GroupNormalization<num_groups = 3>(x, s, s)", 21, image(2, 3, 6, 6), stored="float[3] s = {1, 2, 3}"
    )
    assert "GroupNormalization" not in op_types(convert_opset(model, 20))


def test_batch_norm_of_mixed_types_is_computed_in_float() -> None:
    signature = "float16[2,3,6,6] x) => (float16[2,3,6,6] y"
    stored = "float16[3] s = {1, 2, 3}, float[3] m = {0, 1, 2}"
    model = parse("y = BatchNormalization(x, s, s, m, m)", 15, signature, stored=stored)
    for target in (14, 13, 7):
        assert_same(model, target, X.astype(np.float16), atol=2e-2)


def test_floats_are_not_narrowed_to_a_stash_type_of_half_precision() -> None:
    model = parse("y = LayerNormalization<stash_type = 16>(x, s)", 17, stored="float[4] s = {1, 1, 1, 1}")
    after = convert_opset(model, 16)
    x = np.random.default_rng(0).standard_normal((2, 4)).astype(np.float32)
    centred = x - x.mean(1, keepdims=True)
    truth = centred / np.sqrt((centred**2).mean(1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(run(after, x)[0], truth, rtol=1e-4)


def test_groups_are_normalised_in_the_stash_type_as_the_body_does() -> None:
    model = parse("y = GroupNormalization<num_groups = 2, stash_type = 10>(x, s, s)", 21, image(2, 4, 6, 6),
                  stored="float[4] s = {1, 2, 3, 4}")  # fmt: skip
    assert op_types(convert_opset(model, 20)).count("Cast") == 2
