"""State that forward changes: refused, made inputs and outputs, or kept as it is."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

import entrepot as ep

X = torch.randn(2, 4, generator=torch.Generator().manual_seed(0))


class Average(nn.Module):
    """Buffers: one written to in place, one replaced."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.inner = nn.Module()
        self.inner.register_buffer("count", torch.tensor(0.0))
        self.register_buffer("mean", torch.zeros(4))
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        self.inner.count += 1
        self.mean = 0.9 * self.mean + 0.1 * x.mean(0)
        return self.fc(x) / self.inner.count + self.mean


class Recurrent(nn.Module):
    """Attributes: none before the first call, then a tensor; and a number that only counts."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.hidden, self.calls, self.fc = None, 0, nn.Linear(4, 4)

    def forward(self, x):
        self.calls += 1
        hidden = torch.zeros_like(x) if self.hidden is None else self.hidden
        self.hidden = torch.tanh(self.fc(x) + hidden)
        return 2 * self.hidden


class Listed(nn.Module):
    """An attribute that is a list of tensors, one of them written to in place."""

    def __init__(self):
        super().__init__()
        self.parts = [torch.zeros(2, 4), torch.ones(2, 4)]

    def forward(self, x):
        self.parts[0] += x
        self.parts = [self.parts[0], self.parts[1] * 2]
        return self.parts[0] * self.parts[1]


class Normed(nn.Module):
    """Computes an attribute anew in every call: that is no state."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.v, self.weight = nn.Parameter(torch.randn(4, 4)), None
        self.register_buffer("seen", torch.tensor(0))

    def forward(self, x):
        self.weight = self.v / self.v.norm()
        self.seen += 1
        return x @ self.weight


class Numbered(nn.Module):
    def __init__(self):
        super().__init__()
        self.step = 1

    def forward(self, x):
        self.step += 1
        return x * self.step


class Cache:
    def __init__(self):
        self.seen, self.steps = [], 0

    def add(self, x):
        self.seen.append(x)
        self.steps += 1
        return sum(self.seen)


class Layer(nn.Module):
    def __init__(self, cache):
        super().__init__()
        self.cache, self.fc = cache, nn.Linear(4, 4)

    def forward(self, x):
        return self.cache.add(self.fc(x))


class Sharing(nn.Module):
    """An object that two layers share."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.cache = Cache()
        self.layers = nn.Sequential(Layer(self.cache), Layer(self.cache))

    def forward(self, x):
        return self.layers(x)


class Held(nn.Module):
    """An object whose tensor is written to in place and then replaced."""

    def __init__(self):
        super().__init__()
        self.cache = Cache()
        self.cache.seen = torch.zeros(2, 4)

    def forward(self, x):
        self.cache.seen += x
        self.cache.seen = self.cache.seen * 2
        return self.cache.seen


def called_once(net):
    with torch.no_grad():
        net(X)
    return net


NETS = {
    "buffers": (Average, ["mean", "inner.count"]),
    "an attribute": (lambda: called_once(Recurrent()), ["hidden"]),
    "an attribute without a value": (Recurrent, []),
    "a list": (Listed, ["parts.0", "parts.1"]),
    "an object": (Held, ["cache.seen"]),
    "not an attribute that is computed anew": (Normed, ["seen"]),
}


@pytest.mark.parametrize(("make", "names"), NETS.values(), ids=NETS.keys())
def test_state_goes_in_and_out_and_steps_are_those_of_the_module(make, names):
    net = make().eval()
    model = ep.export(net, X, state="outputs")
    assert model.report.ok
    assert [spec.name for spec in model.inputs] == ["x", *names]
    assert ep.verify(net, model, X)
    if not names:
        return
    theirs, feeds = copy.deepcopy(net), {"x": X.numpy()} | initial(net, names)
    session = ep.Session(model, providers=["onnxruntime"])
    for _ in range(3):
        with torch.no_grad():
            expected = theirs(X)
        result, *state = session.run(feeds).values()
        np.testing.assert_allclose(result, expected.numpy(), rtol=1e-5, atol=1e-6)
        feeds |= dict(zip(names, state, strict=True))


def initial(net, names):
    values = {}
    for name in names:
        found = net
        for key in name.split("."):
            found = found[int(key)] if key.isdigit() else getattr(found, key)
        values[name] = found.numpy().copy()
    return values


@pytest.mark.parametrize("make", [make for make, _ in NETS.values()], ids=NETS.keys())
def test_frozen_state_stays_as_it_is(make):
    net = make().eval()
    model = ep.export(net, X, state="freeze")
    assert model.report.ok
    assert [spec.name for spec in model.inputs] == ["x"]
    assert len(model.outputs) == 1
    with torch.no_grad():
        expected = copy.deepcopy(net)(X)
    session = ep.Session(model, providers=["onnxruntime"])
    for _ in range(2):
        np.testing.assert_allclose(*session.run({"x": X.numpy()}).values(), expected.numpy(), rtol=1e-5, atol=1e-6)
    assert ep.verify(net, model, X)


@pytest.mark.parametrize("state", ["outputs", "freeze"])
@pytest.mark.parametrize("make", [make for make, _ in NETS.values()], ids=NETS.keys())
def test_the_module_itself_stays_as_it_was(make, state):
    net = make().eval()
    before, order = copy.deepcopy(net), list(net.state_dict())
    ep.export(net, X, state=state)
    assert list(net.state_dict()) == order
    for _ in range(2):
        with torch.no_grad():
            assert torch.equal(net(X), before(X))


def test_an_object_that_layers_share_is_left_alone_and_may_be_frozen():
    net = Sharing().eval()
    with torch.no_grad():
        expected = copy.deepcopy(net)(X)
    with pytest.raises(ep.ConversionError, match=r"state that forward changes \(cache, layers\.0\.cache"):
        ep.export(net, X)
    model = ep.export(net, X, state="freeze")
    actual = next(iter(ep.Session(model, providers=["onnxruntime"]).run({"x": X.numpy()}).values()))
    np.testing.assert_allclose(actual, expected.numpy(), rtol=1e-5, atol=1e-6)
    assert (net.cache.seen, net.cache.steps) == ([], 0)
    assert net.layers[0].cache is net.cache


def test_frozen_state_is_named_in_a_note():
    assert 'state="freeze": kept as in the sample: mean, inner.count' in ep.export(Average(), X, state="freeze").notes


def test_state_that_is_no_tensor_cannot_go_in_and_out():
    with pytest.raises(
        ep.ConversionError, match=r"forward changes 'step'.* but it is no tensor: 1.*keep it in a buffer"
    ):
        ep.export(Numbered(), X, state="outputs")


@pytest.mark.parametrize("make", [Average, Recurrent, Listed, Numbered])
def test_by_default_state_is_refused_with_the_options(make):
    with pytest.raises(ep.ConversionError, match=r'results depend on state that forward changes.*state="outputs"'):
        ep.export(make(), X)


def test_nothing_changes_where_nothing_is_state():
    plain, asked = (ep.export(nn.Linear(4, 2), X, state=state) for state in ("refuse", "outputs"))
    assert [str(spec) for spec in asked.inputs] == [str(spec) for spec in plain.inputs]
    assert [str(spec) for spec in asked.outputs] == [str(spec) for spec in plain.outputs]


def test_a_program_has_no_such_options():
    program = torch.export.export(nn.Linear(4, 2), (X,))
    for how in ({"state": "freeze"}, {"training": True}, {"random": True}):
        with pytest.raises(ep.InputError, match="state, random, training and weights are for torch modules"):
            ep.export(program, **how)


def test_any_other_word_is_refused():
    with pytest.raises(ep.InputError, match="state is 'keep'"):
        ep.export(Average(), X, state="keep")


class FirstMade(nn.Module):
    """A mean that moves, from the first call on."""

    def __init__(self):
        super().__init__()
        self.mean = None

    def forward(self, x):
        self.mean = x.mean(0) if self.mean is None else 0.9 * self.mean + 0.1 * x.mean(0)
        return x - self.mean


class Grown(nn.Module):
    """All inputs so far."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def forward(self, x):
        self.seen.append(x)
        return torch.stack(self.seen).sum(0)


@pytest.mark.parametrize("make", [FirstMade, Grown])
def test_state_that_is_not_there_before_the_first_call_makes_a_graph_of_one_step_which_says_so(make):
    model = ep.export(make(), X, state="outputs")
    assert [spec.name for spec in model.inputs] == ["x"]
    assert any(note.startswith("one step only, as in the sample") for note in model.notes)


def test_state_that_a_call_has_made_is_an_input():
    module = FirstMade().eval()
    module(X + 1)
    model = ep.export(module, X, state="outputs")
    assert [spec.name for spec in model.inputs] == ["x", "mean"]
    mean, other = module.mean.clone(), torch.randn_like(X)
    found = ep.Session(model).run([other.numpy(), mean.numpy()])
    np.testing.assert_allclose(found["output"], module(other).numpy(), atol=1e-6)
    np.testing.assert_allclose(found["mean_out"], module.mean.numpy(), atol=1e-6)


def test_a_list_that_grows_has_a_graph_for_each_step():
    module = Grown()
    module(X)
    model = ep.export(module, X, state="outputs")
    assert [spec.name for spec in model.inputs] == ["x", "seen.0"]
    assert any(note.startswith("one step only, as in the sample") for note in model.notes)


def test_state_that_keeps_its_form_needs_no_such_note():
    assert not any("one step only" in note for note in ep.export(Average(), X, state="outputs").notes)
