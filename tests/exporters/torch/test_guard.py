import logging
import random
import sys
import warnings
from collections import OrderedDict
from types import ModuleType

import numpy as np
import pytest
import torch
from torch import nn

import entrepot as ep
from entrepot.exporters.torch.running import guard
from entrepot.exporters.torch.running.guard import quiet, untouched
from entrepot.ir.errors import ConversionError


class Restless(nn.Module):
    """Changes whatever a module can reach."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.register_buffer("count", torch.zeros(2))
        self.seen: list[int] = []
        self.last = None

    def forward(self, x):
        self.count += 1
        self.seen.append(1)
        self.last = x
        self.fresh = x
        torch.manual_seed(1)
        random.random()
        np.random.rand()  # noqa: NPY002
        print("noise")
        warnings.warn("noise", stacklevel=1)
        return self.linear(x)


def test_a_module_and_the_random_state_are_as_before():
    module = Restless().train()
    module.linear.eval()
    before = (torch.get_rng_state(), np.random.get_state()[1].tolist(), random.getstate())  # noqa: NPY002
    with untouched(module) as state, quiet():
        assert not any(part.training for part in module.modules())
        assert not torch.is_grad_enabled()
        module(torch.ones(1, 3))
        assert {place.name for place in state.changed()} == {"count", "seen", "last", "fresh"}
    assert (module.training, module.linear.training) == (True, False)
    assert module.count.tolist() == [0, 0]
    assert (module.seen, module.last) == ([], None)
    assert not hasattr(module, "fresh")
    assert torch.equal(torch.get_rng_state(), before[0])
    assert np.random.get_state()[1].tolist() == before[1]  # noqa: NPY002
    assert random.getstate() == before[2]
    assert torch.is_grad_enabled()


def test_a_module_is_restored_when_the_work_fails():
    module = Restless().train()
    fastpath = torch.backends.mha.get_fastpath_enabled()
    with pytest.raises(RuntimeError), untouched(module), quiet():
        module(torch.ones(1, 5))
    assert module.training
    assert module.count.tolist() == [0, 0]
    assert torch.backends.mha.get_fastpath_enabled() is fastpath


def test_writing_to_a_parameter_is_refused():
    module = nn.Linear(2, 2)
    with pytest.raises(ConversionError, match="forward writes to the parameter 'weight'"), untouched(module):
        module.weight.add_(1)


def test_quiet_keeps_prints_and_warnings_to_itself(capfd):
    with quiet():
        print("noise")
        warnings.warn("noise", stacklevel=1)
    print("after")
    assert capfd.readouterr() == ("after\n", "")


class Frozen(OrderedDict):
    """A configuration as libraries keep it: nobody may write to it, or copy it without its name."""

    def __init__(self, name, values):
        super().__init__(values)
        self.name = name

    def _refuse(self, *args):
        raise RuntimeError("it is frozen")

    update = pop = __delitem__ = clear = copy = _refuse


def test_attributes_that_refuse_to_be_changed_or_copied_stay_as_they_are():
    module = nn.Linear(2, 2)
    module.config = Frozen("layer", {"width": 2})
    with untouched(module):
        module(torch.ones(1, 2))
    assert module.config == {"width": 2}


MODULE = """
import torch
def is_torchdynamo_exporting():
    return torch.compiler.is_exporting()
def solved(a, b):
    if not is_torchdynamo_exporting():
        return torch.linalg.solve_triangular(a, b, upper=False)
    x = torch.zeros_like(b)
    for row in range(a.shape[-1]):
        x[row] = (b[row] - a[row, :row] @ x[:row]) / a[row, row]
    return x
class Solving(torch.nn.Module):
    def forward(self, a, b):
        return solved(a, b)
"""


def test_systems_are_solved_in_an_export_as_without_one(monkeypatch):
    module = ModuleType("solving")
    monkeypatch.setitem(sys.modules, "solving", module)
    exec(MODULE, vars(module))
    with untouched(module.Solving()):
        assert not module.is_torchdynamo_exporting()
    with pytest.raises(ValueError, match="in the middle"), untouched(module.Solving()):
        raise ValueError("in the middle")
    with untouched(nn.Linear(1, 1)):
        assert module.is_torchdynamo_exporting is module.solved.__globals__["is_torchdynamo_exporting"]
    sample = torch.eye(6) * 2 + torch.ones(6, 6).tril(), torch.ones(6, 2)
    model = ep.export(module.Solving(), sample, dynamic=False, verify=False, progress=False)
    assert not any(node.op_type.startswith("Scatter") for node in model.ir.graph)


def test_levels_of_loggers_change_once_for_many_calls(monkeypatch):
    changed = []
    plain = logging.Logger.setLevel
    monkeypatch.setattr(logging.Logger, "setLevel", lambda *args: changed.append(args) or plain(*args))
    levels = [logging.getLogger(name).level for name in guard._NOISY_LOGGERS]
    with untouched(nn.Linear(2, 2)):
        before = len(changed)
        for _ in range(3):
            with quiet():
                assert not logging.getLogger("torch.export.unflatten").isEnabledFor(logging.ERROR)
        assert len(changed) == before
    assert [logging.getLogger(name).level for name in guard._NOISY_LOGGERS] == levels


class Hooked(nn.Module):
    """Puts something into what a module has empty, takes away what it has, and changes the order of the rest."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(2, 2)
        self.first, self.second, self.kept = 1, 2, {"a": 1}

    def forward(self, x):
        self.inner.register_forward_hook(lambda *_: None)
        del self.inner.bias
        self.kept.clear()
        first, second = self.first, self.second
        del self.first, self.second
        self.second, self.first = first, second
        return x


def test_hooks_parts_and_values_are_put_back_after_each_call():
    module = Hooked()
    with untouched(module) as state:
        for _ in range(2):
            module(torch.ones(1))
            state.restore()
            assert not module.inner._forward_hooks
            assert module.inner.bias is not None
            assert (module.first, module.second, module.kept) == (1, 2, {"a": 1})
