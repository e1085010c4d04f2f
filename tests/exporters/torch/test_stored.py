"""What modules store in themselves while they run, and weights that they write to."""

import numpy as np
import onnxruntime
import pytest
import torch
from torch import nn

import entrepot as ep
from entrepot.ir.errors import ConversionError


class Base(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.cell, self.linear = nn.GRUCell(4, 4), nn.Linear(4, 4)


class ByMethods(Base):
    def step(self, x):
        self.h = self.cell(x, self.h)
        self.count = self.count + 1
        return self.h * self.scale

    def forward(self, x):
        self.h, self.count, self.scale = x.new_zeros(x.shape[0], 4), 0, x.abs().amax()
        made = []
        for t in range(x.shape[1]):
            made.append(self.step(x[:, t]))
        return torch.stack(made, 1), self.h * self.count


class NothingAtFirst(Base):
    def forward(self, x):
        self.h, self.made = None, []
        for t in range(x.shape[1]):
            if self.h is None:
                self.h = torch.ones_like(x[:, t])
            self.h = self.cell(x[:, t], self.h)
            self.made.append(self.h)
        return torch.stack(self.made, 1)


class InADict(Base):
    """State in a dict that is made in ``__init__``."""

    def __init__(self):
        super().__init__()
        self.state = {"turns": 0}

    def step(self, x):
        self.state["h"] = self.cell(x, self.state["h"])
        self.state["turns"] += 1

    def forward(self, x):
        self.state["h"] = x.new_zeros(x.shape[0], 4)
        self.state["turns"] = 0
        for t in range(x.shape[1]):
            self.step(x[:, t])
        return self.state["h"] * self.state["turns"]


class OnABranch(Base):
    def forward(self, x):
        self.mode, self.factor = x, 3
        if x.sum() > 0:
            self.mode, self.factor = self.linear(x), 2
        return self.mode * self.factor


class OfAnotherKind(Base):
    """What is stored changes its shape from turn to turn, and nothing that is returned depends on it."""

    def forward(self, x):
        h, self.seen = x.new_zeros(x.shape[0], 4), x.new_zeros(x.shape[0], 0)
        for t in range(x.shape[1]):
            h = self.cell(x[:, t], h)
            self.seen = self.seen.sum() if self.seen.dim() else h.mean(-1)
        return h


class ListsThatGrow(Base):
    """Lists grow by ``+=`` and ``extend``, and their length says when it is enough."""

    def forward(self, x):
        h, first, second = x.new_zeros(x.shape[0], 4), [], []
        while len(first) < x.shape[1] - 1:
            h = self.cell(x[:, len(first)], h)
            first += [h]
            second.extend([h.sum(-1)])
        return torch.stack(first, 1), torch.stack(second, 1)


def x(*shape: int) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(sum(shape)).standard_normal(shape, np.float32))


@pytest.mark.parametrize(
    ("kind", "sample", "others"),
    [
        (ByMethods, x(2, 5, 4), [x(3, 9, 4), x(1, 1, 4)]),
        (NothingAtFirst, x(2, 5, 4), [x(3, 9, 4), x(1, 1, 4)]),
        (InADict, x(2, 5, 4), [x(3, 9, 4), x(1, 1, 4)]),
        (OnABranch, x(2, 4).abs(), [-x(3, 4).abs(), x(1, 4).abs()]),
        (OfAnotherKind, x(2, 5, 4), [x(3, 9, 4), x(1, 1, 4)]),
        (ListsThatGrow, x(2, 5, 4), [x(3, 9, 4), x(1, 2, 4)]),
    ],
)
def test_what_a_module_stores_is_followed_at_other_sizes(kind, sample, others):
    module = kind().eval()
    before = dict(vars(module))
    model = ep.export(module, sample)
    assert vars(module) == before
    session = onnxruntime.InferenceSession(model.to_proto().SerializeToString())
    for given in (sample, *others):
        with torch.no_grad():
            expected = module(given)
        found = session.run(None, {session.get_inputs()[0].name: given.numpy()})
        for mine, theirs in zip(found, [expected] if isinstance(expected, torch.Tensor) else expected, strict=True):
            np.testing.assert_allclose(mine, theirs.numpy(), rtol=2e-4, atol=2e-5)


def test_a_loop_that_stores_its_state_is_a_loop_in_the_file():
    model = ep.export(ByMethods().eval(), x(2, 5, 4))
    assert {"Scan", "Loop"} & {node.op_type for node in model.ir.graph}


class Masked(nn.Linear):
    def __init__(self):
        super().__init__(4, 4)
        self.register_buffer("mask", torch.ones(4, 4).tril())

    def forward(self, x):
        self.weight.data *= self.mask
        return super().forward(x)


class Replaced(Masked):
    def forward(self, x):
        self.weight.data = self.weight.data * self.mask
        return super().forward(x)


class Limited(Masked):
    def forward(self, x):
        with torch.no_grad():
            self.weight.clamp_(-0.1, 0.1)
        return super().forward(x)


@pytest.mark.parametrize("kind", [Masked, Replaced, Limited])
def test_weights_that_are_put_right_in_every_call(kind):
    module = kind().eval()
    before = module.weight.detach().clone()
    model = ep.export(module, torch.randn(2, 4))
    assert torch.equal(module.weight, before)
    given = torch.randn(5, 4)
    with torch.no_grad():
        expected = module(given)
    (found,) = ep.Session(model).run(dict.fromkeys([model.inputs[0].name], given.numpy())).values()
    np.testing.assert_allclose(found, expected.numpy(), rtol=1e-4, atol=1e-5)
    assert not torch.equal(module.weight, before)


@pytest.mark.parametrize("how", [{}, {"state": "outputs"}, {"state": "freeze"}])
def test_weights_that_carry_state_from_call_to_call_are_refused(how):
    class Growing(nn.Linear):
        def forward(self, x):
            self.weight.data.add_(0.1)
            return super().forward(x)

    module = Growing(4, 4).eval()
    before = module.weight.detach().clone()
    with pytest.raises(ConversionError, match=r"parameters that forward writes to \(weight\)"):
        ep.export(module, torch.randn(2, 4), **how)
    assert torch.equal(module.weight, before)


class KeptGrids(nn.Module):
    """A grid for each map, kept in a list for maps of the same size."""

    def __init__(self):
        super().__init__()
        self.grids = [torch.empty(0), torch.empty(0)]

    def forward(self, first, second):
        made = []
        for at, map_ in enumerate((first, second)):
            if self.grids[at].shape[:2] != map_.shape[1:]:
                rows, columns = torch.arange(map_.shape[1]), torch.arange(map_.shape[2])
                self.grids[at] = torch.stack(torch.meshgrid(rows, columns, indexing="ij"), -1)
            made.append(map_[..., None] + self.grids[at])
        return tuple(made)


def test_what_a_capture_leaves_in_a_list_meets_no_other_call():
    model = ep.export(KeptGrids(), (torch.randn(2, 6, 6), torch.randn(2, 3, 3)))
    assert [isinstance(size, str) for spec in model.inputs for size in spec.shape] == [True] * 6
    first, second = np.ones((1, 2, 3), np.float32), np.ones((1, 4, 5), np.float32)
    made = list(ep.Session(model).run([first, second]).values())
    for map_, result in zip((first, second), made, strict=True):
        np.testing.assert_array_equal(result, map_[..., None] + np.moveaxis(np.indices(map_.shape[1:]), 0, -1))


class ReadWherePositive(nn.Module):
    """Reads the rows whose sum is positive with a recurrent layer, which keeps a list of its own weights."""

    def __init__(self):
        super().__init__()
        self.layer = nn.LSTM(4, 4, batch_first=True)

    def forward(self, x, *, scale=2.0):  # TorchScript takes no keywords only
        made = []
        for row in x:
            if row.sum() > 0:
                made.append(self.layer(row[None])[0])
            else:
                made.append(row[None] * scale)
        return torch.cat(made)


def test_lists_of_weights_that_layers_keep_are_nothing_that_a_block_stores():
    module = ReadWherePositive().eval()
    model = ep.export(module, torch.randn(2, 5, 4))
    assert model.inputs[0].shape == ("batch", "x_dim1", 4)
    x = torch.randn(6, 3, 4)
    (found,) = ep.Session(model).run({"x": x.numpy()}).values()
    torch.testing.assert_close(torch.from_numpy(found), module(x))
