from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from entrepot.parity.sensitivity import nudge, sensitivity

X = np.linspace(1, 2, 1000, dtype=np.float32)


def ask(function, **feeds):
    def run(fed):
        return {"y": function(**fed)}

    return sensitivity(run, feeds, run(feeds))


def test_a_well_conditioned_source_moves_by_about_one_rounding():
    assert 1e-7 < ask(lambda x: x, x=X)["y"] < 3e-7


def test_an_ill_conditioned_source_moves_by_more():
    assert ask(lambda x: np.exp(20 * (x - 1)), x=X)["y"] > 1e-3


def test_a_few_elements_that_flip_do_not_count():
    def with_flips(x):
        return np.where((x.view(np.int32) % 50 == 0), np.float32(100), np.round(x))

    assert ask(with_flips, x=X)["y"] == 0.0


def test_zeros_that_stay_zero_do_not_hide_the_others():
    assert ask(lambda x: np.where(np.arange(1000) < 900, np.float32(0), x), x=X)["y"] > 1e-8


def test_integers_and_exact_results_have_none():
    assert ask(lambda n: n.astype(np.float32), n=np.arange(5)) == {}
    assert ask(lambda x: x > 1.5, x=X) == {"y": 0.0}


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, ml_dtypes.bfloat16])
def test_a_nudge_moves_every_float_by_one_or_two_steps(dtype):
    array = np.array([1.0, -3.0, 100.0]).astype(dtype)
    moved = nudge(array, np.random.default_rng(0))
    assert moved.dtype == array.dtype
    relative = np.abs(moved.astype(np.float64) / array.astype(np.float64) - 1)
    assert (relative > 0).all()
    assert (relative <= 2 * float(ml_dtypes.finfo(dtype).eps)).all()


def test_a_nudge_leaves_what_is_no_float():
    rng = np.random.default_rng(0)
    np.testing.assert_array_equal(nudge(np.arange(3), rng), np.arange(3))
    assert nudge([np.array(True)], rng)[0].item() is True
    assert nudge(np.zeros(0, np.float32), rng).shape == (0,)
