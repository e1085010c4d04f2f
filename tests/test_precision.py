import numpy as np
import pytest

from tests.judges.precision import judge


def verdict(source, actual, exact=None):
    source, actual = np.float32([source]), np.float32([actual])
    return judge(source, source.astype(np.float64) if exact is None else np.float64([exact]), actual)


@pytest.mark.parametrize(
    ("source", "actual"),
    [
        (np.nan, 0),
        (0, np.nan),
        (np.nan, np.inf),
        (np.inf, np.nan),
        (np.inf, -np.inf),
        (np.inf, 1),
        (1, np.inf),
        (1, 1.001),
        (1e-30, 0),
    ],
)
def test_what_differs_is_wrong(source, actual):
    assert not verdict(source, actual).ok


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 0, 1e-30, 3e38])
def test_what_is_equal_is_right(value):
    assert verdict(value, value).ok
    assert verdict(value, value).worst == 0


def test_the_error_of_the_source_is_allowed_and_no_more():
    assert verdict(1.001, 0.999, exact=1.0).ok
    assert not verdict(1.001, 0.9, exact=1.0).ok


def test_a_point_at_which_the_source_is_no_number_in_one_precision_only_does_not_count():
    assert verdict(np.nan, 7, exact=1.0).ok
    assert verdict(np.inf, 7, exact=1e30).ok
