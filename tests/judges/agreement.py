"""Whether a result is as expected: kind, type, shape, and values within the slack; a failure says where."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.judges.bounds import Expected, close


def assert_as_expected(got: Any, expected: Expected, where: str) -> None:
    """Compare one output, a tensor, a sequence or nothing; an expected ``None`` leaves the values free."""
    value, slack = expected.value, expected.slack
    if isinstance(value, list):
        assert isinstance(got, list), where
        assert len(got) == len(value), where
        for g, w, s in zip(got, value, slack if isinstance(slack, list) else [slack] * len(value), strict=True):
            assert_as_expected(g, Expected(w, s), where)
    elif value is None:
        assert got is None or isinstance(got, np.ndarray | np.generic), where
    else:
        _assert_array(np.asarray(got), np.asarray(value), expected, where)


def _assert_array(got: Any, wanted: Any, expected: Expected, where: str) -> None:
    assert got.shape == wanted.shape, f"{where}: shape {got.shape}, not {wanted.shape}"
    kinds = {got.dtype.kind, wanted.dtype.kind}
    assert got.dtype == wanted.dtype or kinds == {"O", "U"}, f"{where}: dtype {got.dtype}, not {wanted.dtype}"
    if wanted.dtype.kind in "fcV":
        assert_close(got, wanted, expected.slack, where, finite_only=expected.finite_only)
    else:
        np.testing.assert_array_equal(got, wanted, err_msg=where)


def assert_close(got: Any, wanted: Any, slack: Any, where: str = "", *, finite_only: bool = False) -> None:
    """The same NaN and infinities, and every finite value within the slack."""
    agrees = close(got, wanted, slack)
    if finite_only:
        agrees |= ~np.isfinite(wanted.astype(np.float64))
    if not agrees.all():
        allowed = np.broadcast_to(slack, agrees.shape)[~agrees]
        raise AssertionError(
            f"{where}: {(~agrees).sum()} of {agrees.size} differ: {got[~agrees][:5]}, not {wanted[~agrees][:5]}, "
            f"where {allowed[:5]} is allowed"
        )
