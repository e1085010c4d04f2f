"""Whether a result is the convolution of its inputs, including what is done to it afterwards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.judges.agreement import assert_close
from tests.judges.bounds import expectations, unit
from tests.op_cases.case import Case

Array = np.ndarray[Any, Any]

WINOGRAD = 64 / 9
"""What F(2x2, 3x3) adds up, (1 + 3/2 + 3/2)² in its weights times 4 in its input, where the direct sum adds up nine."""


def assert_convolves(
    got: Array,
    x: Array,
    W: Array,
    B: Array | None = None,
    *,
    after: Callable[[Array], Array] = lambda y: y,
    times: float = 1.0,
    **attributes: Any,
) -> None:
    """As every oracle says; ``after`` is nowhere steeper than one, and ``times`` as much is rounded as in a sum."""
    case = Case("Conv", x, W, *(() if B is None else (B,)), **attributes)
    trusted = expectations(case)
    assert trusted, f"no oracle runs {case}"
    for oracle, (expected,) in trusted.items():
        with np.errstate(invalid="ignore"):
            wanted = after(expected.value.astype(np.float64))
        assert got.shape == wanted.shape
        rounding = unit(got.dtype) * np.nan_to_num(np.abs(wanted), posinf=0.0)
        assert_close(got, wanted, times * expected.slack + rounding, oracle)
