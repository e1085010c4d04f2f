"""Branches by a module's own buffers, which are the same in every call."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from torch._dynamo._trace_wrapped_higher_order_op import TransformGetItemToIndex
from torch._subclasses.fake_tensor import DataDependentOutputException

import entrepot as ep
from entrepot.exporters.torch.capture.held import held_values
from entrepot.exporters.torch.upstream import FakeTensorMode

X = torch.linspace(-1, 1, 6).reshape(2, 3)


class Gated(nn.Module):
    """Reads its buffers in every way that Python can."""

    def __init__(self):
        super().__init__()
        self.chances = nn.Buffer(torch.tensor([1.0, 0.0]))
        self.count = nn.Buffer(torch.tensor(3))

    def forward(self, x):
        for chance in self.chances:
            if self.training or chance > 0:
                x = x * 3
        for _ in range(int(self.count)):
            x = x + 1
        if 0.0 in self.chances:
            x = x - max(self.count, self.count // 2)
        return x * self.chances.tolist()[0] ** self.count.item()


class Counted(nn.Module):
    """Reads which axes there are from a tensor, as scripts of TorchScript write it."""

    def forward(self, x):
        axes = torch.arange(1, x.dim()).tolist()
        last = int((torch.arange(x.dim()) * 2)[-1])
        return x.mean(axes, keepdim=True) * last + torch.linspace(0, 1, 3).sum().item()


def test_what_python_reads_of_numbers_that_are_counted_is_known():
    x = torch.randn(2, 3, 4, generator=torch.Generator().manual_seed(0))
    model = ep.export(Counted(), x)
    assert model.inputs[0].shape == ("batch", "x_dim1", "x_dim2")
    y = torch.randn(3, 5, 2, generator=torch.Generator().manual_seed(1))
    found = ep.Session(model).run({"x": y.numpy()})["output"]
    torch.testing.assert_close(torch.from_numpy(found), y.mean((1, 2), keepdim=True) * 4 + 1.5)


class Turned(nn.Module):
    """Keeps an order of axes in a tensor, and its inverse, as entropy models do; another one is written to."""

    def forward(self, x):
        order = torch.cat((torch.tensor([1, 0]), torch.arange(2, x.ndim)))
        sums = torch.tensor([0.0, 1.0])
        sums[0] = x.sum()
        turned = x.permute(*order).contiguous()
        rows = turned.reshape(turned.size(0), 1, -1).cumsum(-1)
        return rows.reshape(turned.shape).permute(*order.argsort()) * sums[0] + sums[1].item()


def test_what_python_reads_of_tensors_of_listed_numbers_is_known():
    model = ep.export(Turned(), torch.randn(2, 3, 4))
    assert model.inputs[0].shape == ("batch", "x_dim1", "x_dim2")
    y = torch.randn(3, 5, 2)
    found = ep.Session(model).run({"x": y.numpy()})["output"]
    torch.testing.assert_close(torch.from_numpy(found), Turned()(y), rtol=1e-4, atol=1e-3)


def test_what_python_reads_of_buffers_is_what_they_hold():
    model = ep.export(Gated(), X)
    assert model.report
    assert model.inputs[0].shape[0] == "batch"
    assert not {node.op_type for node in model.ir.graph} & {"If", "Loop"}


class Read(nn.Module):
    """Changes its buffer, or a copy or a part of it, before it reads it."""

    def __init__(self, change):
        super().__init__()
        self.held = nn.Buffer(torch.tensor([1, 2]))
        self.change = change

    def forward(self, x):
        return x + self.change(self, x).item()


def of_input(self, x):
    return self.held.sum() + x.sum().long()


def in_place(self, x):
    return self.held.add_(1).sum()


def by_a_view(self, x):
    self.held.view(2)[0] = 5
    return self.held.sum()


def replaced(self, x):
    self.held = self.held + x.sum().long()
    return self.held.sum()


def into(self, x):
    return torch.add(x.sum().long(), 1, out=self.held[0])


def drawn(self, x):
    return torch.bernoulli(self.held * 0.25).sum()


@pytest.mark.parametrize("change", [of_input, in_place, by_a_view, replaced, into, drawn])
def test_what_may_be_another_in_the_next_call_is_not_known(change):
    flat, mode = Read(change), FakeTensorMode()
    with held_values(flat), mode:
        flat.held = mode.from_tensor(flat.held)
        with pytest.raises(DataDependentOutputException):
            flat(mode.from_tensor(X))


def test_a_draw_is_not_made_twice():
    flat, mode = Read(lambda self, x: torch.bernoulli(self.held * 0.25)[0] * 0), FakeTensorMode()
    before = torch.get_rng_state()
    with held_values(flat), mode:
        flat.held = mode.from_tensor(flat.held)
        with pytest.raises(DataDependentOutputException):
            flat(mode.from_tensor(X))
    assert torch.equal(before, torch.get_rng_state())


class Beside(nn.Module):
    """Keeps numbers in a tensor that is no buffer, and in an array."""

    def __init__(self):
        super().__init__()
        self.dilations = 2 ** torch.arange(2)
        self.kernel = nn.Parameter(torch.linspace(-1, 1, 3).reshape(1, 1, 3))
        self.steps = np.prod([(2, 3), (1, 2)], axis=0)

    def forward(self, x):
        steps = torch.from_numpy(self.steps)
        for dilation in self.dilations:
            x = torch.conv1d(x, self.kernel, padding=dilation.item(), dilation=dilation.item())
        return x[..., :: int(steps[1]) // int(steps[0])]


def test_what_python_reads_of_a_tensor_beside_the_buffers_is_what_it_holds():
    module = Beside().eval()
    model = ep.export(module, torch.randn(2, 1, 9), progress=False)
    x = torch.randn(3, 1, 14)
    (found,) = ep.Session(model).run({"x": x.numpy()}).values()
    torch.testing.assert_close(torch.from_numpy(found), module(x))


class Stepping(Beside):
    """Writes into that tensor before it reads it."""

    def forward(self, x):
        return x * self.dilations.add_(1)[0].item()


def test_what_is_written_into_a_tensor_beside_the_buffers_is_not_known():
    with pytest.raises(ep.EntrepotError):
        ep.export(Stepping().eval(), torch.randn(2, 1, 9), progress=False)


class Masked(nn.Module):
    """A mask of a function of one place, as transformers makes it."""

    def forward(self, x, keep):
        def allowed(row, query, key):
            return (query >= key) & keep[row, key]

        places = torch.vmap(torch.vmap(torch.vmap(allowed, (None, None, 0)), (None, 0, None)), (0, None, None))
        rows, columns = (torch.arange(size) for size in x.shape)
        with TransformGetItemToIndex():
            mask = places(rows, columns, columns)
        return (mask * x[:, None]).sum(-1)


def test_whether_elements_are_few_is_not_asked_of_sizes_that_vary(monkeypatch):
    """Asked, two rows of 40 were captured for no more than 4,096 elements, and then once more."""
    captures, plain = [], torch.export.export
    monkeypatch.setattr(torch.export, "export", lambda *args, **how: captures.append(args) or plain(*args, **how))
    module = Masked().eval()
    model = ep.export(module, (torch.randn(2, 40), torch.rand(2, 40) > 0.5))
    assert len(captures) == 1
    for shape in ((3, 5), (60, 100), (1, 1)):
        x, keep = torch.randn(shape), torch.rand(shape) > 0.5
        found = ep.Session(model).run({"x": x.numpy(), "keep": keep.numpy()})["output"]
        np.testing.assert_allclose(found, module(x, keep).numpy(), rtol=1e-5, atol=1e-4)
