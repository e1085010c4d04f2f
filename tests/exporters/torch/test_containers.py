"""Objects of any class as arguments and results of an exported module, caches above all."""

import copy
import dataclasses
from collections.abc import MutableMapping

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


class Counted:
    """A window over the past that knows how much it has seen, as sliding caches do."""

    def __init__(self, window=6):
        self.keys, self.seen, self.window, self.counters = None, 0, window, {"calls": 3}

    def update(self, new):
        self.keys = new if self.keys is None else torch.cat([self.keys, new], 1)
        self.seen += new.shape[1]
        positions = torch.arange(self.seen - new.shape[1], self.seen)
        seen, self.keys = self.keys, self.keys[:, -self.window :]
        return seen, positions


class Windowed(nn.Module):
    def forward(self, x, past):
        seen, positions = past.update(x)
        return x + seen.mean(1, keepdim=True) + positions[:, None], past


def windowed(length, window=6):
    past = Counted(window)
    past.update(PAST[:, :1].repeat(1, length, 1))
    return past


@pytest.mark.parametrize("window", [6, 40])
def test_a_number_that_counts_what_is_in_an_object_follows_its_size(window):
    """Without that, positions would go on from the length in the sample, whatever the past."""
    model = ep.export(Windowed(), (X, windowed(4, window)))
    assert [spec.name for spec in model.inputs] == ["x", "past.keys"]
    assert [spec.name for spec in model.outputs][-2:] == ["output_1.keys", "output_1.seen"]
    for provider in "cpu", "onnxruntime":
        session = ep.Session(model, providers=[provider])
        for length in 2, 5, 6:
            past = windowed(length, window)
            feeds = {"x": X.numpy(), "past.keys": past.keys.numpy()}
            expected, left = Windowed()(X, past)
            actual = list(session.run(feeds).values())
            np.testing.assert_allclose(actual[0], expected.numpy(), rtol=1e-5, atol=1e-5)
            np.testing.assert_array_equal(actual[1], left.keys.numpy())
            assert actual[2] == left.seen
    assert ep.verify(Windowed(), model, (X, windowed(4, window)))


def test_a_number_that_forward_changes_but_that_is_no_size_is_named_in_a_note():
    class Calls(nn.Module):
        def forward(self, x, past):
            past.calls += 1
            past.keys = past.keys + x
            return x * past.calls, past.keys

    past = Counted()
    past.keys, past.calls = X.clone(), 7
    model = ep.export(Calls(), (X, past))
    assert "a number that forward changes, but a constant of the graph: past.calls" in model.notes
    assert past.calls == 7


def test_numbers_that_nothing_changes_are_left_alone_although_a_size_is_equal():
    class Scaled(nn.Module):
        def forward(self, x, past):
            past.keys = torch.cat([past.keys, x], 1)
            return x * past.window, past.keys

    past = Counted(window=5)
    past.keys = PAST
    model = ep.export(Scaled(), (X, past))
    other = {"x": X.numpy(), "past.keys": PAST[:, :2].numpy()}
    actual = next(iter(ep.Session(model, providers=["onnxruntime"]).run(other).values()))
    np.testing.assert_allclose(actual, 5 * X.numpy())


def test_a_change_that_no_output_shows_is_named_in_a_note():
    lost = [note for note in ep.export(Decoder(returned=False), (X, filled())).notes if "does not return" in note]
    assert lost == ["forward changes, but does not return, so no output has: past.layers.0.keys, past.layers.1.keys"]
    assert not any("does not return" in note for note in ep.export(Decoder(), (X, filled())).notes)


class Batched(MutableMapping):
    """As libraries for reinforcement learning hold steps: one batch for all, and no pairs in ``update``."""

    def __init__(self, batch, **items):
        self.batch, self.items_of = batch, {}
        self.update(items)

    def __getitem__(self, key):
        return self.items_of[key]

    def __setitem__(self, key, value):
        if value.shape[0] != self.batch:
            raise RuntimeError(f"{key} has {value.shape[0]} rows, not {self.batch}")
        self.items_of[key] = value

    def __delitem__(self, key):
        del self.items_of[key]

    def __iter__(self):
        return iter(self.items_of)

    def __len__(self):
        return len(self.items_of)

    def __copy__(self):
        return Batched(self.batch, **self.items_of)

    def update(self, items):
        for key, value in items.items():
            self[key] = value


def test_a_mapping_that_checks_what_it_holds_refuses_sizes_as_a_module_does():
    class Summed(nn.Module):
        def forward(self, step):
            return step["seen"] + step["reward"].sum()

    model = ep.export(Summed(), (Batched(3, seen=torch.randn(3, 4), reward=torch.randn(3)),))
    assert [each.shape for each in model.inputs] == [(3, "step_seen_dim1"), (3,)]
    assert "has 5 rows, not 3" in "".join(model.notes)
