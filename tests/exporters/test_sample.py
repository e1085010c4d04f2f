from collections import namedtuple

import pytest

from entrepot.exporters.sample import Sample

Point = namedtuple("Point", "x y")  # noqa: PYI024 - its kind is what is tested


@pytest.mark.parametrize(
    ("given", "args", "kwargs"),
    [
        ((1, 2), (1, 2), {}),
        ({"x": 1}, (), {"x": 1}),
        (3.0, (3.0,), {}),
        ([1, 2], ([1, 2],), {}),
        (Point(1, 2), (Point(1, 2),), {}),
        ({1: "a"}, ({1: "a"},), {}),
        (Sample((1,), {"x": 2}), (1,), {"x": 2}),
    ],
)
def test_a_tuple_is_positional_a_dict_keyword_and_the_rest_one_argument(given, args, kwargs):
    sample = Sample.of(given)
    assert sample.args == args
    assert dict(sample.kwargs) == kwargs
