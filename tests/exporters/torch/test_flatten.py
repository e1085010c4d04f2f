import dataclasses
import functools
import json
from collections import OrderedDict, namedtuple

import numpy as np
import pytest
import torch

from entrepot.exporters import structure
from entrepot.exporters.sample import Sample
from entrepot.exporters.structure import leaves, same_structure, structure_json, unflatten
from entrepot.exporters.torch.arrays import TORCH
from entrepot.ir.errors import InputError

flatten = functools.partial(structure.flatten, arrays=TORCH)
flatten_call = functools.partial(structure.flatten_call, arrays=TORCH)
Pair = namedtuple("Pair", "first second")  # noqa: PYI024 - its kind is what is tested
ONE, TWO, THREE = (torch.tensor(float(number)) for number in range(1, 4))


@dataclasses.dataclass(frozen=True)
class Result:
    logits: torch.Tensor
    hidden: list | None = None
    scale: float = 1.0
    made: int = dataclasses.field(init=False, default=7)


@pytest.mark.parametrize(
    ("value", "names"),
    [
        (ONE, [""]),
        ((ONE, [TWO, None], {"k": THREE}), ["0", "1.0", "2.k"]),
        (Pair(ONE, {"a": TWO}), ["first", "second.a"]),
        (Result(ONE, [TWO], 2.0), ["logits", "hidden.0"]),
        (OrderedDict(b=ONE, a=TWO), ["b", "a"]),
    ],
)
def test_a_structure_comes_apart_by_name_and_together_again(value, names):
    flat = flatten(value)
    assert flat.names == names
    again = unflatten(flat.tree, flat.tensors)
    assert again == value
    assert type(again) is type(value)
    assert [leaf.name for leaf in leaves(flat.tree)] == names


def test_other_tensors_leave_the_first_structure_alone():
    result = Result(ONE, [TWO])
    flat = flatten(result)
    assert unflatten(flat.tree, [THREE, THREE]) == Result(THREE, [THREE])
    assert result == Result(ONE, [TWO])


def test_inputs_are_named_by_the_signature():
    def forward(x, pair, *rest, flag=True, **more):
        raise AssertionError

    flat = flatten_call(Sample((ONE, Pair(TWO, THREE), ONE), {"flag": False, "extra": {"deep": TWO}}), forward)
    assert flat.names == ["x", "pair.first", "pair.second", "rest.0", "extra.deep"]
    args, kwargs = unflatten(flat.tree, flat.tensors)
    assert args == (ONE, Pair(TWO, THREE), ONE)
    assert kwargs == {"flag": False, "extra": {"deep": TWO}}


def test_keyword_arguments_take_the_order_of_the_signature():
    flat = flatten_call(Sample(kwargs={"b": TWO, "a": ONE}), lambda a, b: None)
    assert flat.names == ["a", "b"]


def test_a_numpy_array_is_a_tensor():
    assert flatten(np.ones(2, np.float32)).tensors[0].dtype == torch.float32


def test_a_sample_that_does_not_fit_is_refused_with_the_signature():
    with pytest.raises(InputError, match=r"does not fit forward\(x\): too many positional"):
        flatten_call(Sample((ONE, TWO)), lambda x: None)


def test_what_is_no_container_we_know_is_refused_by_its_place():
    with pytest.raises(InputError, match=r"value 'a\.0': a builtins\.set cannot be an input"):
        flatten({"a": [{1, 2}]})


def test_structures_differ_when_a_key_does_or_a_constant_that_is_no_number():
    assert same_structure(flatten({"a": ONE, "k": 1}).tree, flatten({"a": TWO, "k": 1}).tree)
    assert same_structure(flatten({"a": ONE, "k": 1}).tree, flatten({"a": ONE, "k": 2}).tree)
    for first, second in (1, True), (1, 1.0), ("a", "b"), (1, None), (True, False):
        assert not same_structure(flatten({"a": ONE, "k": first}).tree, flatten({"a": ONE, "k": second}).tree)
    assert not same_structure(flatten({"a": ONE}).tree, flatten({"b": ONE}).tree)
    assert not same_structure(flatten((ONE,)).tree, flatten([ONE]).tree)


def test_the_structure_is_told_in_json():
    inputs, outputs = flatten((ONE, 2.5)), flatten(Result(ONE, None))
    told = json.loads(structure_json(inputs.tree, outputs.tree, {"0": "x"}, {"logits": "y"}))
    assert told["inputs"] == {"tuple": [[0, {"tensor": "x"}], [1, {"constant": 2.5}]]}
    assert told["outputs"]["dataclass"][0] == ["logits", {"tensor": "y"}]
    assert told["outputs"]["type"].endswith(":Result")
