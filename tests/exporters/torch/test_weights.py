"""A model is a value: what is done to the module afterwards changes neither what it computes nor what is saved."""

import numpy as np
import pytest
import torch
from torch import nn

import entrepot as ep
from entrepot.exporters import weight_store
from entrepot.ir.io.weights import all_tensors

PROVIDERS = ["cpu", "reference", "onnxruntime"]
X = torch.randn(2, 3, 4, generator=torch.Generator().manual_seed(1))


class Net(nn.Module):
    """Weights of every kind: packed, transposed, tied, views of one storage, buffers, plain tensors, in a branch."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.tied = nn.Linear(4, 4)
        self.tied.weight = self.fc.weight
        self.lstm = nn.LSTM(4, 4, bidirectional=True, batch_first=True)
        self.norm = nn.BatchNorm1d(4)
        both = torch.randn(8, 4)
        self.upper, self.lower = nn.Parameter(both[:4]), nn.Parameter(both[4:])
        self.turned = nn.Parameter(torch.randn(4, 4).t())
        self.register_buffer("spread", torch.randn(1, 1).expand(4, 4))
        self.plain = torch.randn(4)
        self.coarse = nn.Parameter(torch.randn(4).to(torch.bfloat16))

    def forward(self, x):
        y = self.tied(self.fc(x)) @ self.upper + x @ self.lower.t() @ self.turned
        y = self.norm(y.transpose(1, 2)).transpose(1, 2) + self.plain * self.coarse.float()
        y = torch.cond(y.sum() > 0, lambda t: t @ self.spread, lambda t: t @ self.turned, (y,))
        return self.lstm(y)[0]


class Small(nn.Module):
    """A weight that is read as it is, and packed ones."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.lstm = nn.LSTM(4, 4, batch_first=True)

    def forward(self, x):
        return self.lstm(self.fc(x))[0]


def everything(module):
    """Every tensor that hangs on a module."""
    found = [*module.parameters(), *module.buffers()]
    return found + [value for part in module.modules() for value in vars(part).values() if torch.is_tensor(value)]


def write_in_place(module):
    with torch.no_grad():
        for tensor in everything(module):
            tensor.copy_(tensor.clone() * 3 + 1) if tensor.is_contiguous() else tensor.copy_(tensor[:1] * 3)


def write_to_data(module):
    for tensor in module.parameters():
        tensor.data.mul_(3)


def write_through_numpy(module):
    module.fc.weight.detach().numpy()[...] = 7


def load_another(module):
    module.load_state_dict({name: value * 2 + 1 for name, value in module.state_dict().items()}, strict=False)


def step(module):
    for tensor in module.parameters():
        tensor.grad = torch.full_like(tensor, 3)
    torch.optim.SGD(module.parameters(), 1.0).step()


CHANGES = [write_in_place, write_to_data, write_through_numpy, load_another, step]


def module_of():
    torch.manual_seed(0)
    net = Net()
    net.spread = net.spread.clone()  # so that it can be written to
    return net


def results(model):
    return {name: ep.Session(model, providers=[name]).run({"x": X.numpy()})["output"] for name in PROVIDERS}


@pytest.fixture(scope="module")
def exported():
    """A module, a model of it, and what both compute before anybody writes to the module."""
    module = module_of()
    model = ep.export(module, X)
    with torch.no_grad():
        return module, model, module.eval()(X).numpy()


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_what_is_done_to_the_module_changes_no_result_and_no_file(change, exported, tmp_path):
    module, model, expected = exported
    change(module)
    with torch.no_grad():
        assert not np.allclose(module.eval()(X).numpy(), expected, atol=1e-3)
    model.save(tmp_path / "net.onnx")
    for given in model, ep.load(tmp_path / "net.onnx"):
        for name, result in results(given).items():
            np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-4, err_msg=name)
    assert model.report.ok


def test_no_tensor_of_a_model_lies_in_the_memory_of_the_module():
    module = module_of()
    model = ep.export(module, X, verify=False)
    theirs = [torch.empty(0, dtype=torch.uint8).set_(value.untyped_storage()) for value in everything(module)]
    ours = [tensor.numpy() for tensor, _ in all_tensors(model.ir)]
    assert len(ours) > 10
    assert not any(np.may_share_memory(mine, other.numpy()) for mine in ours for other in theirs)


@pytest.mark.filterwarnings("ignore:The tensor attributes:UserWarning")
def test_an_exported_program_is_copied_too():
    module = module_of()
    with torch.no_grad():
        program = torch.export.export(module.eval(), (X,))
    model = ep.export(program)
    before = results(model)
    with torch.no_grad():
        for value in program.state_dict.values():
            value.mul_(3)
    after = results(model)
    assert all(np.array_equal(before[name], after[name]) for name in PROVIDERS)


@pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")
def test_a_scripted_module_is_copied_too():
    module = torch.jit.script(nn.Linear(4, 4))
    model = ep.export(module, X)
    (name,) = (spec.name for spec in model.outputs)
    before = ep.Session(model).run({"input": X.numpy()})[name]
    write_to_data(module)
    assert np.array_equal(ep.Session(model).run({"input": X.numpy()})[name], before)
    with pytest.raises(ep.InputError, match="cannot be shared"):
        ep.export(module, X, share=True)


class Views(nn.Module):
    """Overlapping views of one storage, and a small part of a large one."""

    def __init__(self):
        super().__init__()
        table = torch.randn(64, 64)
        self.register_buffer("whole", table)
        self.register_buffer("most", table[1:])
        self.register_buffer("wide", torch.randn(1, 64).expand(64, 64))
        self.register_buffer("part", torch.randn(1000, 64)[:2])

    def forward(self, x):
        return x @ self.whole @ self.most.t() @ self.most @ self.wide @ self.part.t()


def test_views_cost_what_they_cost_in_the_module():
    model = ep.export(Views(), torch.randn(2, 64))
    arrays = [model.ir.graph.initializers[name].const_value.numpy() for name in ("whole", "most", "wide", "part")]
    assert sum(dict(map(_memory, arrays)).values()) == 4 * (64 * 64 + 64 + 2 * 64)


def _memory(array):
    """Where the memory lies that an array is a view of, and how much it is."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    if array.base is None:  # it was rearranged
        return array.ctypes.data, array.nbytes
    storage = array.base.untyped_storage()  # it was copied by torch
    return storage.data_ptr(), storage.nbytes()


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_a_shared_model_follows_the_module_and_its_report_is_void(change, tmp_path):
    module = Small()
    model = ep.export(module, X, share=True)
    assert model.report.ok
    converted = ep.convert_opset(model, 21, verify=True, feeds={"x": X.numpy()})
    assert converted.report.ok
    change(module)
    with torch.no_grad():
        expected = module.eval()(X).numpy()
    for name, result in results(model).items():
        np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-4, err_msg=name)
    for each in model, converted:
        assert not each.report.ok
        assert "NOT verified" in each.report.summary()
        assert "any more" in str(each)
    with pytest.warns(UserWarning, match="was not verified: weights shared with the source changed"):
        model.save(tmp_path / "net.onnx")
    model.report = ep.verify(module, model, X)
    assert model.report.ok


def test_a_shared_model_takes_no_memory_for_weights():
    module = nn.Linear(4, 4)
    model = ep.export(module, torch.randn(2, 4), share=True)
    weight = model.ir.graph.initializers["weight"].const_value.numpy()
    assert np.shares_memory(weight, module.weight.detach().numpy())


def test_weights_may_have_the_names_that_the_graph_gives_to_its_values():
    class Named(nn.Module):
        def __init__(self):
            super().__init__()
            for name in ("val_0", "val_1", "val_2", "view", "add", "add_1", "mul", "output", "x"):
                self.register_buffer(name, torch.randn(4), persistent=name != "val_2")

        def forward(self, x):
            y = x.reshape(x.shape[0], -1, 4)
            for buffer in self.buffers():
                y = y * 2.5 + buffer
            return torch.clamp(y, -1e3, 5.5)

    module = Named().eval()
    model = ep.export(module, (torch.randn(3, 8),))
    assert set(module.state_dict()) <= {value.name for value in model.ir.graph.initializers.values()}


def test_a_large_model_that_is_saved_has_its_weights_in_a_file(tmp_path, monkeypatch):
    monkeypatch.setattr(weight_store, "_MOST_IN_MEMORY", 0)
    module, x, path = nn.Linear(512, 600), torch.randn(2, 512), tmp_path / "model.onnx"
    model = ep.export(module, x, path)
    weights = [tensor.numpy() for tensor, _ in all_tensors(model.ir) if tensor.size == 512 * 600]
    assert [each.flags.writeable for each in weights] == [False]
    before, *_ = ep.Session(model).run({"input": x.numpy()}).values()
    module.weight.data.zero_()
    for each in (model, ep.load(path)):
        assert np.array_equal(ep.Session(each).run({"input": x.numpy()})["output"], before)
    assert [each.name for each in tmp_path.iterdir()] == ["model.onnx"]
