"""Objects of any class as arguments and results of an exported module, caches above all."""

import copy
import dataclasses

import numpy as np
import pytest
import torch
from torch import nn

import entrepot as ep

GENERATOR = torch.Generator().manual_seed(0)
X = torch.randn(2, 3, 4, generator=GENERATOR)
PAST = torch.randn(2, 5, 4, generator=GENERATOR)


class Layer:
    """Filled when it is first written to, as caches are."""

    __slots__ = ("dtype", "filled", "keys")

    def __init__(self):
        self.keys, self.filled, self.dtype = None, False, None

    def update(self, new):
        self.keys = torch.cat([self.keys, new], 1) if self.filled else new
        self.filled, self.dtype = True, new.dtype
        return self.keys


class Cache:
    def __init__(self, count=2):
        self.layers = [Layer() for _ in range(count)]
        self.last = self.layers[-1]  # one object, reached in two ways


class Written:
    """Preallocated and written to in place."""

    def __init__(self):
        self.keys, self.start = torch.zeros(2, 8, 4), torch.tensor(0)

    def update(self, new):
        self.keys.index_copy_(1, torch.arange(new.shape[1]) + self.start, new)
        self.start += new.shape[1]
        return self.keys


@dataclasses.dataclass
class Output:
    logits: torch.Tensor
    cache: Cache | None = None


class Decoder(nn.Module):
    """Attends to all it has seen."""

    def __init__(self, returned=True):
        super().__init__()
        torch.manual_seed(0)
        self.key, self.returned = nn.Linear(4, 4), returned

    def forward(self, x, past=None):
        past = Cache() if past is None else past
        for layer in past.layers:
            keys = layer.update(self.key(x))
            x = x + torch.softmax(x @ keys.transpose(1, 2), -1) @ keys
        return Output(x, past) if self.returned else x


class InPlace(nn.Module):
    def forward(self, x, cache):
        return x.sum() * cache.update(x), cache


def filled():
    cache = Cache()
    for layer in cache.layers:
        layer.update(PAST)
    return cache


def test_a_cache_that_forward_makes_is_a_set_of_outputs():
    model = ep.export(Decoder(), X)
    assert model.report.ok
    assert [spec.name for spec in model.outputs] == ["logits", "cache.layers.0.keys", "cache.layers.1.keys"]
    assert model.outputs[1].shape == model.inputs[0].shape
    assert not any("constant" in note for note in model.notes)


def test_a_cache_is_a_set_of_inputs_and_what_forward_makes_of_it_outputs():
    net, cache = Decoder().eval(), filled()
    model = ep.export(net, (X, cache))
    assert model.report.ok
    (batch, new, _), (_, old, _) = model.inputs[0].shape, model.inputs[1].shape
    assert [spec.name for spec in model.inputs] == ["x", "past.layers.0.keys", "past.layers.1.keys"]
    assert len({batch, new, old}) == 3
    assert [spec.name for spec in model.outputs[1:]] == ["cache.layers.0.keys", "cache.layers.1.keys"]
    assert ep.verify(net, model, (X, cache))


def test_the_steps_of_a_decoder_are_those_of_the_module():
    net = Decoder().eval()
    model = ep.export(net, (X, filled()))
    given, state = filled(), None
    session = ep.Session(model, providers=["onnxruntime"])
    for length in 3, 1, 4:
        x = torch.randn(2, length, 4, generator=GENERATOR)
        state = [layer.keys for layer in given.layers] if state is None else state
        names = [spec.name for spec in model.inputs]
        actual = list(session.run(dict(zip(names, map(np.asarray, (x, *state)), strict=True))).values())
        with torch.no_grad():
            expected = net(x, given)
        np.testing.assert_allclose(actual[0], expected.logits.numpy(), rtol=1e-4, atol=1e-5)
        state = actual[1:]


def test_the_callers_own_cache_stays_as_it_is():
    for net, cache in (Decoder(), filled()), (Decoder(), Cache()), (InPlace(), Written()):
        parts = cache.layers if isinstance(cache, Cache) else [cache]
        before = copy.deepcopy([part.keys for part in parts])
        held = [part.keys for part in parts]
        model = ep.export(net, (X, cache))
        ep.verify(net, model, (X, cache))
        for part, same, value in zip(parts, held, before, strict=True):
            assert part.keys is same
            assert value is None or torch.equal(part.keys, value)


def test_an_empty_cache_is_no_input_but_its_contents_are_outputs():
    model = ep.export(Decoder(), (X, Cache()))
    assert [spec.name for spec in model.inputs] == ["x"]
    assert [spec.name for spec in model.outputs[1:]] == ["cache.layers.0.keys", "cache.layers.1.keys"]


def test_a_cache_that_is_written_to_in_place_comes_back_changed():
    model = ep.export(InPlace(), (X, Written()))
    assert [spec.name for spec in model.inputs] == ["x", "cache.keys", "cache.start"]
    cache = Written()
    with torch.no_grad():
        expected, _ = InPlace()(X, cache)
    feeds = {"x": X.numpy(), "cache.keys": np.zeros((2, 8, 4), np.float32), "cache.start": np.array(0)}
    for provider in "cpu", "onnxruntime":
        actual = list(ep.Session(model, providers=[provider]).run(feeds).values())
        np.testing.assert_allclose(actual[0], expected.numpy(), rtol=1e-5, atol=1e-5)
        np.testing.assert_array_equal(actual[1], cache.keys.numpy())
        assert actual[2] == 3


def test_the_present_is_called_after_the_past():
    class Step(nn.Module):
        def forward(self, x, past_state):
            return {"y": x, "past_state": [past_state[0] + x.sum()]}

    model = ep.export(Step(), (X, [torch.ones(2)]))
    assert [spec.name for spec in model.inputs] == ["x", "past_state.0"]
    assert [spec.name for spec in model.outputs] == ["y", "present_state.0"]


@pytest.mark.parametrize("where", ["argument", "result"])
def test_an_iterator_is_refused_where_it_is(where):
    class Lazy(nn.Module):
        def forward(self, x):
            return {"rows": iter(x)} if where == "result" else next(x)

    with pytest.raises(ep.InputError, match=r"iterator cannot be an input or output"):
        ep.export(Lazy(), (iter([X]),) if where == "argument" else (X,))
