import dataclasses
import functools
import json
import re
import threading
from collections import OrderedDict, UserDict, defaultdict, deque, namedtuple
from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
import pytest
import torch

from entrepot.exporters import structure
from entrepot.exporters.description import structure_json
from entrepot.exporters.sample import Sample
from entrepot.exporters.structure import leaves, same_structure, unflatten
from entrepot.exporters.torch.arrays import TORCH
from entrepot.ir.errors import InputError

flatten = functools.partial(structure.flatten, arrays=TORCH)
flatten_call = functools.partial(structure.flatten_call, arrays=TORCH)
Pair = namedtuple("Pair", "first second")  # noqa: PYI024 - its kind is what is tested
ONE, TWO, THREE = (torch.tensor(float(number)) for number in range(1, 4))


class Holder:
    def __init__(self, **attributes):
        self.__dict__.update(attributes)


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


@pytest.mark.parametrize(
    ("value", "name", "kind"),
    [
        ({"a": [{ONE, TWO}]}, "a.0", "builtins.set"),
        ({"a": (x for x in (ONE, TWO))}, "a", "builtins.generator"),
        (iter([ONE]), "", "builtins.list_iterator"),
        (Holder(parts=iter([ONE])), "parts", "builtins.list_iterator"),
        (Holder(parts={ONE}), "parts", "builtins.set"),
        ([len], "0", "builtins.builtin_function_or_method"),
    ],
)
def test_what_may_hide_a_tensor_is_refused_by_its_place(value, name, kind):
    where = f"value '{name}': " if name else ""
    with pytest.raises(InputError, match=re.escape(f"{where}a {kind} cannot be an input")):
        flatten(value)


def test_a_list_that_contains_itself_is_refused_by_its_place():
    value = [ONE]
    value.append({"deep": value})
    with pytest.raises(InputError, match=r"value '1\.deep': it contains itself"):
        flatten(value)


@dataclasses.dataclass(frozen=True, slots=True)
class Frozen:
    mean: torch.Tensor
    deep: list


class Attrs:
    """As attrs writes it: slots, values set past the class's own ``__setattr__``, one for weak references."""

    __slots__ = ("__weakref__", "mean")
    __attrs_attrs__ = ()

    def __init__(self, mean):
        object.__setattr__(self, "mean", mean)

    def __setattr__(self, key, value):
        raise AttributeError("frozen")


class Slots:
    __slots__ = ("__hidden", "state")

    def __init__(self):
        self.state, self.__hidden = ONE, TWO


class SlotsAndMore(Slots):
    def __init__(self):
        super().__init__()
        self.more = THREE


class WithArguments:
    def __new__(cls, size):
        made = super().__new__(cls)
        made.size = size
        return made

    def __init__(self, size):
        self.kept = ONE * size


class Guarded:
    """Forbids what unflattening must not need."""

    def __init__(self):
        self.__dict__["state"] = ONE

    def __setattr__(self, key, value):
        raise AttributeError(key)

    def __getattr__(self, key):
        raise AttributeError(key)


class Layer:
    def __init__(self, keys, cache=None):
        self.keys, self.cache, self.filled, self.kind = keys, cache, True, len


class Cache:
    def __init__(self):
        self.layers = [Layer(ONE, self), Layer(TWO, self)]
        self.again = self.layers[0]
        self.layers_too = self.layers


@dataclasses.dataclass
class Derived:
    x: torch.Tensor

    def __post_init__(self):
        self.doubled = 2 * self.x


class Named(list):
    """A list with something of its own."""


OBJECTS = {
    "attributes": (Holder(a=ONE, b=[TWO, {"c": THREE}], n=3, s="x"), ["a", "b.0", "b.1.c"]),
    "a frozen dataclass with slots": (Frozen(ONE, [TWO]), ["mean", "deep.0"]),
    "attrs": (Attrs(ONE), ["mean"]),
    "slots": (Slots(), ["_Slots__hidden", "state"]),
    "slots and attributes": (SlotsAndMore(), ["more", "_Slots__hidden", "state"]),
    "made with arguments": (WithArguments(3), ["kept"]),
    "guarded attributes": (Guarded(), ["state"]),
    "a dataclass with more than its fields": (Derived(ONE), ["x", "doubled"]),
    "nothing yet": (Holder(), []),
    "a mapping that is no dict": (UserDict(a=ONE), ["a"]),
    "a mapping that cannot change": (MappingProxyType({"a": ONE}), ["a"]),
    "a dict with a default": (defaultdict(list, a=[ONE]), ["a.0"]),
    "a deque": (deque([ONE, TWO], maxlen=2), ["0", "1"]),
    "a list with a class of its own": (Named([ONE]), ["0"]),
    "a tuple with a class of its own": (torch.return_types.max((ONE, TWO)), ["0", "1"]),
    "a distribution": (torch.distributions.Normal(ONE, TWO), ["loc", "scale"]),
    "a cache whose layers know it": (Cache(), ["layers.0.keys", "layers.1.keys"]),
}


@pytest.mark.parametrize(("value", "names"), OBJECTS.values(), ids=OBJECTS.keys())
def test_an_object_comes_apart_and_another_like_it_is_made(value, names):
    flat = flatten(value)
    assert sorted(flat.names) == sorted(names)
    others = [torch.full_like(tensor, 7.0) for tensor in flat.tensors]
    again = unflatten(flat.tree, others)
    assert type(again) is type(value)
    assert again is not value
    second = flatten(again)
    assert same_structure(second.tree, flat.tree)
    assert second.names == flat.names
    assert all(found is other for found, other in zip(_raw(again, flat.names), others, strict=True))
    assert all(float(tensor) != 7.0 for tensor in flatten(value).tensors)


def _raw(value, names):
    """The tensors themselves: a flat list has detached ones."""
    for name in names:
        found = value
        for key in name.split("."):
            if isinstance(found, Mapping):
                found = found[key]
            else:
                found = found[int(key)] if key.isdigit() else getattr(found, key)
        yield found


def test_what_is_shared_inside_an_object_stays_shared_and_is_no_longer_the_first():
    first = Cache()
    again = unflatten(flatten(first).tree, [THREE, THREE])
    assert again.layers[0].cache is again
    assert again.again is again.layers[0]
    assert again.layers_too is again.layers
    again.layers.append(Layer(ONE))
    again.layers[0].filled = False
    assert len(first.layers) == 2
    assert first.layers[0].filled


def test_a_set_in_the_state_of_an_object_is_not_shared_with_the_first():
    first = Holder(x=ONE, seen={1})
    unflatten(flatten(first).tree, [TWO]).seen.add(2)
    assert first.seen == {1}


def test_one_object_given_twice_is_one_object_inside():
    holder = Holder(x=ONE)
    flat = flatten_call(Sample((holder, holder)), lambda a, b: None)
    assert flat.names == ["a.x"]
    (first, second), _ = unflatten(flat.tree, [TWO])
    assert first is second


def test_a_function_or_a_set_of_words_is_a_constant_argument():
    flat = flatten_call(Sample((ONE, len, {"fast"})), lambda x, act, flags: None)
    assert flat.names == ["x"]
    args, _ = unflatten(flat.tree, [TWO])
    assert args == (TWO, len, {"fast"})


def test_structures_differ_when_a_key_does_or_a_constant_that_is_no_number():
    assert same_structure(flatten({"a": ONE, "k": 1}).tree, flatten({"a": TWO, "k": 1}).tree)
    assert same_structure(flatten({"a": ONE, "k": 1}).tree, flatten({"a": ONE, "k": 2}).tree)
    for first, second in (1, True), (1, 1.0), ("a", "b"), (1, None), (True, False):
        assert not same_structure(flatten({"a": ONE, "k": first}).tree, flatten({"a": ONE, "k": second}).tree)
    assert not same_structure(flatten({"a": ONE}).tree, flatten({"b": ONE}).tree)
    assert not same_structure(flatten((ONE,)).tree, flatten([ONE]).tree)


def test_constants_that_no_two_runs_share_do_not_make_structures_differ():
    first, second = ({"k": Holder(x=ONE, lock=threading.Lock(), act=lambda: 0)} for _ in range(2))
    assert same_structure(flatten(first).tree, flatten(second).tree)


def test_an_object_is_told_in_json_without_the_addresses_of_anything():
    cache = Holder(layers=[Holder(keys=ONE, act=lambda: 0)], config=Holder(size=3))
    cache.again = cache.layers
    told = json.loads(structure_json(flatten(()).tree, flatten(cache).tree, {}, {"layers.0.keys": "y"}))["outputs"]
    name = f"{__name__}:Holder"
    assert told["type"] == name
    layers, config, again = told["object"]
    act = "builtins:function"
    layer = {"object": [["keys", {"tensor": "y"}], ["act", {"constant": act}]], "type": name}
    assert layers == ["layers", {"list": [[0, layer]]}]
    assert config == ["config", {"constant": name}]
    assert again == ["again", {"shared": "layers"}]


def test_the_structure_is_told_in_json():
    inputs, outputs = flatten((ONE, 2.5)), flatten(Result(ONE, None))
    told = json.loads(structure_json(inputs.tree, outputs.tree, {"0": "x"}, {"logits": "y"}))
    assert told["inputs"] == {"tuple": [[0, {"tensor": "x"}], [1, {"constant": 2.5}]]}
    assert told["outputs"]["dataclass"][0] == ["logits", {"tensor": "y"}]
    assert told["outputs"]["type"].endswith(":Result")
