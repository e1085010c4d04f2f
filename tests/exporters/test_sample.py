from collections import OrderedDict, UserDict, namedtuple

import numpy as np
import pytest

from entrepot.exporters.sample import Sample
from entrepot.ir.errors import InputError

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


def _by_name(ids, mask=None):
    """Takes what a tokenizer returns."""


def _one(batch):
    """Takes a batch as a whole."""


def _any_names(*args, **kwargs):
    """Says nothing of what it takes."""


@pytest.mark.parametrize("kind", [UserDict, OrderedDict])
@pytest.mark.parametrize(("function", "by_name"), [(_by_name, True), (_one, False), (_any_names, False), (None, False)])
def test_another_mapping_is_keyword_arguments_where_the_function_takes_them_by_name(kind, function, by_name):
    given = kind(ids=1, mask=2)
    sample = Sample.of(given, function)
    assert sample.args == (() if by_name else (given,))
    assert dict(sample.kwargs) == ({"ids": 1, "mask": 2} if by_name else {})


@pytest.mark.parametrize(
    "bad", [{"args": 3}, {"args": "x"}, {"args": None}, {"kwargs": 3}, {"kwargs": {1: 2}}, {"kwargs": [("x", 1)]}]
)
def test_what_is_no_list_of_arguments_is_refused(bad):
    with pytest.raises(InputError, match=r"args is .*, expected a"):
        Sample(**bad)


def test_a_sample_prints_shapes_and_not_values():
    sample = Sample([np.zeros((2, 3), np.float32), 1], {"mask": [np.ones(4, bool)], "text": "x" * 100})
    assert repr(sample) == "Sample(float32[2, 3], 1, mask=[bool[4]], text=str)"
