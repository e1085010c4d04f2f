"""Axes that one capture fixes: branches on sizes, numbers that Python computes from them, loops that it unrolls."""

import contextlib
import inspect
import math

import onnx_ir
import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch import nn

import entrepot as ep
from entrepot.exporters.axes.groups import Group
from entrepot.exporters.axes.probe import Prober
from entrepot.exporters.paths.expression import Expression
from entrepot.exporters.paths.path import Path
from entrepot.exporters.paths.trying import Trials
from entrepot.exporters.torch.sources.module import ModuleSource


class Function(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


SEEDED = torch.Generator().manual_seed(0)
WEIGHT = torch.randn(8, 8, generator=SEEDED) / 8  # recurrences by it forget, and rounding with it
DECAY = torch.rand(8, generator=SEEDED)
CELL = nn.GRUCell(8, 8)
TABLE = torch.randn(1, 4, 4, 8)


def parity(x):
    return x.relu().cumsum(1) if x.shape[1] % 2 == 0 else x.sigmoid()


def long_or_short(x):
    return x[:, :8].mean(1) if x.shape[1] > 8 else x.sum(1)


def unless_alone(x):
    return (x - x.mean(0)) / x.std(0) if x.shape[0] > 1 else x


def windows(x):
    height, width = x.shape[1], x.shape[2]
    right, below = (4 - width % 4) % 4, (4 - height % 4) % 4
    if right > 0 or below > 0:
        x = F.pad(x, (0, 0, 0, right, 0, below))
    rows, columns = x.shape[1] // 4, x.shape[2] // 4
    parts = x.view(-1, rows, 4, columns, 4, 8).permute(0, 1, 3, 2, 4, 5).reshape(-1, 16, 8)
    parts = (parts @ WEIGHT).softmax(1).view(-1, rows, columns, 4, 4, 8).permute(0, 1, 3, 2, 4, 5)
    return parts.reshape(-1, rows * 4, columns * 4, 8)[:, :height, :width]


def positions(x):
    height, width = x.shape[1], x.shape[2]
    if (height, width) == (4, 4):
        return x + TABLE
    table = F.interpolate(TABLE.permute(0, 3, 1, 2), size=(height, width), mode="bicubic")
    return x + table.permute(0, 2, 3, 1)


def scaled_by_length(x):
    return (x @ x.transpose(1, 2)) / math.sqrt(x.shape[1])


def half_as_long_again(x):
    return F.interpolate(x.transpose(1, 2), size=int(x.shape[1] * 1.5), mode="linear")


def recurrence(x):
    state, states = torch.zeros(x.shape[0], 8), []
    for step in range(x.shape[1]):
        state = DECAY * state + x[:, step]
        states.append(state)
    return torch.stack(states, 1)


def both_directions(x):
    left = right = torch.zeros(x.shape[0], 8)
    lefts, rights = [], []
    for step in range(x.shape[1]):
        left = torch.tanh(left @ WEIGHT + x[:, step])
        lefts.append(left)
    for step in reversed(range(x.shape[1])):
        right = DECAY * right + x[:, step]
        rights.append(right)
    return torch.cat([torch.stack(lefts, 1), torch.stack(rights[::-1], 1)], -1)


def unbound(x):
    state = torch.zeros_like(x[:, 0])
    for step, frame in enumerate(x.unbind(1)):
        state = CELL(frame, state) * (1.0 / (step + 1))
    return state


def written_into(x):
    result = x.clone()
    for step in range(1, x.shape[1]):
        result[:, step] = result[:, step - 1] * 0.5 + x[:, step]
    return result


def first_one_kept(x):
    states = [x[:, 0]]
    for step in range(1, x.shape[1]):
        states.append(torch.tanh(states[-1]) + x[:, step] * step / x.shape[1])
    return torch.stack(states, 1)


def up_and_joined(x):
    """As U-Nets do that take any size: what was halved is doubled, and widened by one where the size was odd."""
    levels = [x]
    for _ in range(2):
        levels.append(F.max_pool2d(levels[-1], 2))
    y = levels.pop()
    for level in levels[::-1]:
        y = y.repeat_interleave(2, 2).repeat_interleave(2, 3)
        pads = [0, 0, 0, 0]
        for axis in range(2):
            if level.shape[-axis - 1] != y.shape[-axis - 1]:
                pads[2 * axis + 1] = 1
        y = level + F.pad(y, pads, "replicate")
    return y


CASES = [
    (up_and_joined, (1, 2, 8, 8), [(2, 2, 9, 8), (1, 2, 8, 11), (1, 2, 10, 14), (3, 2, 31, 17), (1, 2, 4, 7)]),
    (parity, (2, 6, 8), [(3, 1, 8), (2, 9, 8), (1, 40, 8)]),
    (long_or_short, (2, 6, 8), [(3, 1, 8), (2, 8, 8), (1, 9, 8), (2, 50, 8)]),
    (unless_alone, (4, 8), [(1, 8), (2, 8), (9, 8)]),
    (windows, (2, 8, 8, 8), [(1, 1, 1, 8), (2, 12, 4, 8), (1, 13, 4, 8), (1, 4, 30, 8)]),
    (positions, (2, 4, 4, 8), [(1, 4, 5, 8), (1, 9, 4, 8), (3, 2, 17, 8)]),
    (scaled_by_length, (2, 5, 8), [(1, 1, 8), (3, 33, 8)]),
    (half_as_long_again, (2, 6, 8), [(1, 1, 8), (3, 33, 8), (1, 20, 8)]),
    (recurrence, (2, 5, 8), [(1, 1, 8), (3, 2, 8), (2, 33, 8)]),
    (both_directions, (2, 5, 8), [(1, 1, 8), (3, 2, 8), (2, 33, 8)]),
    (unbound, (2, 5, 8), [(1, 1, 8), (3, 2, 8), (2, 33, 8)]),
    (written_into, (2, 5, 8), [(1, 2, 8), (3, 3, 8), (2, 33, 8)]),
    (first_one_kept, (2, 5, 8), [(1, 1, 8), (3, 2, 8), (2, 33, 8)]),
]


@pytest.mark.parametrize(("function", "sample", "others"), CASES, ids=lambda case: getattr(case, "__name__", ""))
def test_an_axis_that_one_capture_fixes_varies(function, sample, others):
    torch.manual_seed(0)
    module = Function(function).eval()
    model = ep.export(module, torch.randn(sample), progress=False)
    session = ep.Session(model, providers=["onnxruntime"])
    for shape in [sample, *others]:
        x = torch.randn(shape)
        (result,) = session.run({model.inputs[0].name: x.numpy()}).values()
        torch.testing.assert_close(torch.from_numpy(result), module(x).detach(), rtol=1e-4, atol=1e-5)


def test_a_loop_becomes_a_loop_and_a_branch_a_branch():
    loop = ep.export(Function(recurrence), torch.randn(2, 5, 8), progress=False)
    branch = ep.export(Function(parity), torch.randn(2, 6, 8), progress=False)
    assert "Loop" in {node.op_type for node in loop.ir.graph}
    assert "If" in {node.op_type for node in branch.ir.graph}


def test_a_path_that_is_right_everywhere_needs_no_branch():
    names = dict(globals())
    exec(inspect.getsource(windows), names)  # captures alone: what is made so has no source
    model = ep.export(Function(names["windows"]), torch.randn(2, 8, 8, 8), progress=False)
    assert "If" not in {node.op_type for node in model.ir.graph}


@pytest.mark.parametrize("opset", [14, 17, 20])
def test_loops_and_branches_are_expressed_at_older_opsets(opset):
    x = torch.randn(2, 7, 8)
    for function in (recurrence, parity):
        model = ep.export(Function(function), torch.randn(2, 6, 8), opset=opset, progress=False)
        assert model.opset == opset
        (result,) = ep.Session(model, providers=["onnxruntime"]).run({model.inputs[0].name: x.numpy()}).values()
        torch.testing.assert_close(torch.from_numpy(result), function(x))


def test_a_branch_and_a_loop_that_python_takes_by_other_means_stay_fixed_and_correct():
    def secret(x):
        return x * int(str(x.shape[1] ** 3)[:1])

    model = ep.export(Function(secret), torch.randn(2, 5), progress=False)
    assert model.inputs[0].shape[1] == 5
    assert "the capture fails with it dynamic" in model.metadata["entrepot.fixed_axes"]


class Chosen(nn.Module):
    """Sizes of a kind are doubled, in a way that no capture says anything about."""

    def __init__(self, kind):
        super().__init__()
        self.kind = kind

    def forward(self, x):
        return x * 2 if self.kind(x.shape[1]) else x.sum(1, keepdim=True) + x


KINDS = {
    "powers of two": lambda size: math.log2(size).is_integer(),
    "squares": lambda size: (size**0.5).is_integer(),
    "some": lambda size: int(size) in (20, 40, 80),
    "primes": lambda size: all(int(size) % each for each in range(2, int(size))),
}


@pytest.mark.parametrize("present", [10, 16, 20])
@pytest.mark.parametrize("kind", KINDS)
def test_sizes_of_a_kind_are_right_or_refused(kind, present):
    module = Chosen(KINDS[kind]).eval()
    session = ep.Session(ep.export(module, torch.randn(2, present)))
    for size in (*range(1, 50), 64, 80, 81, 97, 128, 256, 1024):
        x = torch.randn(3, size, generator=torch.Generator().manual_seed(size))
        try:
            found = session.run({"x": x.numpy()})["output"]
        except ep.EntrepotError:
            assert size != present
            continue
        torch.testing.assert_close(torch.from_numpy(found), module(x), rtol=1e-4, atol=1e-4)


def test_what_one_of_several_captures_fixes_is_not_taken_for_free():
    names = {"torch": torch, "weight": WEIGHT}
    rows = "torch.stack([row @ weight * at for at, row in enumerate(x)])"
    exec(f"def rows(x): return x * 2 if x.shape[1] > 6 else {rows}", names)  # captures alone: it has no source
    model = ep.export(Function(names["rows"]), torch.randn(2, 7, 8), progress=False)
    session = ep.Session(model)
    for shape in [(2, 7), (2, 5), (4, 5), (5, 6), (6, 3), (4, 8)]:
        x = torch.randn(*shape, 8)
        with contextlib.suppress(ep.InputError):  # which axes it fixes is its own choice
            (found,) = session.run({model.inputs[0].name: x.numpy()}).values()
            torch.testing.assert_close(torch.from_numpy(found), names["rows"](x))


def test_where_a_path_is_looked_at_elsewhere_it_is_still_that_path():
    source = ModuleSource(nn.Identity().eval(), (torch.zeros(3, 12, 12),))
    groups = [
        Group(frozenset({(0, axis)}), name, [size])
        for axis, (name, size) in enumerate(zip("bhw", (3, 12, 12), strict=True))
    ]
    conditions = [Expression("h >= w"), Expression("Eq(b, 3)")]
    path = Path(onnx_ir.Model(onnx_ir.Graph([], [], nodes=[]), ir_version=10), {"b": 3, "h": 12, "w": 12}, conditions)
    with source.guard():
        trials = Trials(source, Prober(source, source.call.tensors, source(source.call.tensors)), groups, ["h"])
        assert trials.elsewhere(path, [{"b": 4, "h": 8, "w": 13}]) == [(5, 12, 11)]
