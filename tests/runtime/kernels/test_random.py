from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from entrepot.runtime.providers.cpu.table import native

LIKE = np.zeros((200, 300), np.float32)
DRAWS = {
    "RandomNormal": lambda **more: _kernel("RandomNormal")(shape=[200, 300], **more),
    "RandomUniform": lambda **more: _kernel("RandomUniform")(shape=[200, 300], **more),
    "RandomNormalLike": lambda **more: _kernel("RandomNormalLike")(LIKE, **more),
    "RandomUniformLike": lambda **more: _kernel("RandomUniformLike")(LIKE, **more),
    "Bernoulli": lambda **more: _kernel("Bernoulli")(LIKE + np.float32(0.3), **more),
    "Multinomial": lambda **more: _kernel("Multinomial")(np.zeros((200, 4), np.float32), sample_size=300, **more),
}
EXPECTED = {  # mean and standard deviation
    "RandomNormal": (0.0, 1.0),
    "RandomUniform": (0.5, np.sqrt(1 / 12)),
    "RandomNormalLike": (0.0, 1.0),
    "RandomUniformLike": (0.5, np.sqrt(1 / 12)),
    "Bernoulli": (0.3, np.sqrt(0.21)),
    "Multinomial": (1.5, np.sqrt(1.25)),
}


def _kernel(op_type: str) -> Any:
    return native.get("", op_type, 22).function


@pytest.mark.parametrize("op_type", DRAWS)
def test_draws_have_the_shape_the_type_and_the_distribution_asked_for(op_type: str) -> None:
    drawn = DRAWS[op_type](seed=7.0)
    mean, deviation = EXPECTED[op_type]
    assert drawn.shape == (200, 300)
    assert drawn.dtype == (np.int32 if op_type == "Multinomial" else np.float32)
    assert abs(drawn.mean(dtype=np.float64) - mean) < 5 * deviation / np.sqrt(drawn.size)
    assert abs(drawn.std(dtype=np.float64) - deviation) < 0.02 * deviation


@pytest.mark.parametrize("op_type", DRAWS)
def test_a_seed_gives_the_same_draw_again_and_another_seed_another(op_type: str) -> None:
    np.testing.assert_array_equal(DRAWS[op_type](seed=1.25), DRAWS[op_type](seed=1.25))
    assert not np.array_equal(DRAWS[op_type](seed=1.25), DRAWS[op_type](seed=1.5))


@pytest.mark.parametrize("op_type", DRAWS)
def test_without_a_seed_every_draw_differs_and_numpys_own_state_stays(op_type: str) -> None:
    before = np.random.get_state()[1].copy()  # noqa: NPY002  the state that must not change
    assert not np.array_equal(DRAWS[op_type](), DRAWS[op_type]())
    np.testing.assert_array_equal(before, np.random.get_state()[1])  # noqa: NPY002
