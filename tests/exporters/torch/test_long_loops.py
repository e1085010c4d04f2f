"""Loops over a length, long ones and those inside of functions with gradients of their own, and branches of these."""

import pytest
import torch
from torch import nn

import entrepot as ep


def filtered(x: torch.Tensor, factors: torch.Tensor) -> torch.Tensor:
    """Each sample less what the filter makes of the ones before it, written in place."""
    order = factors.size(0)
    result = torch.zeros(x.shape[0], x.shape[1] + order)
    for at, now in enumerate(x.t()):
        result[:, at + order] = now - result[:, at : at + order] @ factors
    return result[:, order:]


class Filter(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factors):
        ctx.save_for_backward(factors)
        ctx.wanted = ctx.needs_input_grad[0]
        return filtered(x, factors)

    @staticmethod
    def backward(ctx, gradient):
        return gradient, None


class LaterContext(torch.autograd.Function):
    @staticmethod
    def forward(x, factors):
        return filtered(x, factors)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, gradient):
        return gradient, None


class Filtering(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function
        self.factors = nn.Parameter(torch.tensor([0.2, 0.3]))

    def forward(self, x):
        return self.function(x, self.factors)


@pytest.mark.parametrize("function", [Filter, LaterContext])
def test_loops_of_functions_with_gradients_of_their_own_are_kept(function):
    model = ep.export(Filtering(function.apply).eval(), torch.randn(3, 7))
    assert all(isinstance(size, str) for size in model.inputs[0].shape)
    assert {"Scan", "Loop"} & {node.op_type for node in model.ir.graph}


class Signed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x if x.sum() > 0 else x - 1

    @staticmethod
    def backward(ctx, gradient):
        return gradient


class Signing(nn.Module):
    def forward(self, x):
        return Signed.apply(x)


def test_branches_of_functions_with_gradients_of_their_own_are_kept():
    x = torch.linspace(-1, 1.2, 12).reshape(3, 4)
    session = ep.Session(ep.export(Signing().eval(), x))
    for each in (x, -x):
        (found,) = session.run({"x": each.numpy()}).values()
        torch.testing.assert_close(torch.from_numpy(found), Signing()(each))


def test_a_long_loop_is_kept_at_once_where_a_capture_would_follow_each_step():
    model = ep.export(Filtering(filtered).eval(), torch.randn(2, 400))
    assert all(isinstance(size, str) for size in model.inputs[0].shape)
    (note,) = [note for note in model.notes if note.startswith("captured")]
    assert "rewritten, since it takes" in note
    assert "steps of Python" in note


class Leaky(nn.Module):
    """The turn of a loop that starts at 1 reads two steps."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        level = x[:, 0]
        for at in range(1, x.shape[1]):
            level = 0.5 * level + x[:, at] * x[:, at - 1]
        return level


def test_a_turn_computes_nothing_that_nobody_reads():
    model = ep.export(Leaky(), torch.randn(2, 5, 3), progress=False)
    (loop,) = (node for node in model.ir.graph if node.op_type == "Loop")
    body = loop.attributes["body"].as_graph()
    unread = [node.op_type for node in body if not any(each.uses() or each.is_graph_output() for each in node.outputs)]
    assert not unread
    assert [node.op_type for node in body].count("Add") == 2  # the step, and the sum


class Shifted(nn.Module):
    """Of a single step in several rows, it makes another shape, as transformers' Rwkv does."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        before = x[:, 0] if x.shape[1] == 1 else nn.functional.pad(x, (0, 0, 1, -1))
        mixed = x + 0.5 * before
        level, levels = torch.zeros_like(mixed[:, 0]), torch.zeros_like(mixed)
        for at in range(x.shape[1]):
            level = 0.5 * level + mixed[:, at]
            levels[:, at] = level
        return levels


def test_a_loop_that_begins_later_is_captured_once_and_not_put_together_of_captures():
    told = []
    sample = {"x": torch.randn(2, 130, 3)}  # by name, which torch.jit.script is not given
    model = ep.export(Shifted(), sample, dynamic={"x": {0: "rows", 1: "steps"}}, progress=told.append)
    assert told.count("capturing the rewritten module") == 1
    assert not [line for line in told if line.startswith("capturing at")]
    assert model.conditions == ("steps >= 2",)
    assert model.inputs[0].shape == ("rows", "steps", 3)
    for shape in ((3, 2, 3), (1, 7, 3)):
        x = torch.randn(shape)
        (found,) = ep.Session(model).run({"x": x.numpy()}).values()
        torch.testing.assert_close(torch.from_numpy(found), Shifted()(x))
