from __future__ import annotations

import pytest

from entrepot.ir.errors import InputError
from entrepot.runtime.kernels.window import transposed_window, window


def test_defaults_are_single_steps_without_padding() -> None:
    win = window((7, 8), (3, 2))
    assert (win.target, win.strides, win.dilations, win.begin, win.end) == ((5, 7), (1, 1), (1, 1), (0, 0), (0, 0))


def test_same_upper_puts_the_odd_point_at_the_end_and_same_lower_at_the_start() -> None:
    upper, lower = (window((6,), (4,), auto_pad=how) for how in ("SAME_UPPER", "SAME_LOWER"))
    assert (upper.begin, upper.end, upper.target) == ((1,), (2,), (6,))
    assert (lower.begin, lower.end, lower.target) == ((2,), (1,), (6,))


def test_same_gives_the_quotient_rounded_up() -> None:
    assert window((7,), (2,), strides=(3,), auto_pad="SAME_UPPER").target == (3,)


def test_valid_ignores_given_pads() -> None:
    assert window((7,), (3,), pads=(1, 1), auto_pad="VALID").target == (5,)


def test_ceil_mode_reaches_beyond_the_end_but_never_starts_there() -> None:
    assert window((6,), (3,), strides=(2,), ceil_mode=1).target == (3,)
    assert window((6,), (3,), strides=(2,), ceil_mode=1).padded == (7,)
    assert window((4,), (1,), strides=(3,), pads=(0, 2), ceil_mode=1).target == (2,)


def test_dilation_widens_the_window() -> None:
    assert window((9,), (3,), dilations=(3,)).target == (3,)


@pytest.mark.parametrize(
    "wrong",
    [
        {"pads": (1,)},
        {"pads": (-1, 0)},
        {"strides": (0,)},
        {"dilations": (1, 1)},
        {"auto_pad": "SAME"},
    ],
    ids=str,
)
def test_attributes_that_do_not_fit_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(InputError):
        window((7,), (3,), **wrong)


def test_a_window_larger_than_the_padded_input_is_refused() -> None:
    with pytest.raises(InputError, match="exceeds"):
        window((2,), (5,), pads=(1, 1))


def test_a_transposed_window_slides_over_the_output_and_ends_at_the_input() -> None:
    win = transposed_window((3, 3), (2, 2), (2, 2))
    assert (win.source, win.target) == ((6, 6), (3, 3))
    assert window(win.source, win.kernel, win.strides).target == win.target


def test_only_same_upper_crops_the_odd_point_of_a_transposed_window_at_the_end() -> None:
    upper, lower = (transposed_window((3,), (4,), (1,), auto_pad=how) for how in ("SAME_UPPER", "SAME_LOWER"))
    assert (upper.begin, upper.end, lower.begin, lower.end) == ((1,), (2,), (2,), (1,))


@pytest.mark.parametrize("wrong", [{"pads": (1,)}, {"strides": (0,)}, {"output_padding": (1, 1)}, {"pads": (4, 4)}])
def test_attributes_that_do_not_fit_a_transposed_window_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(InputError):
        transposed_window((3,), (2,), **wrong)
