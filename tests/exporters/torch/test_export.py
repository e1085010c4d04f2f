import dataclasses
import json

import numpy as np
import onnx_ir
import pytest
import torch
from torch import nn

import entrepot as ep


@dataclasses.dataclass
class Answer:
    logits: torch.Tensor
    hidden: list[torch.Tensor]
    note: str = "fine"


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(6)
        self.fc = nn.Linear(6, 6)

    def forward(self, x):
        return x + torch.relu(self.fc(self.norm(x)))


class Net(nn.Module):
    """Nested inputs and outputs, a tied weight, equal parameters, a norm and dropout that know about modes."""

    def __init__(self):
        super().__init__()
        self.layer = nn.ModuleList([Block(), Block()])
        self.bn = nn.BatchNorm1d(6)
        self.drop = nn.Dropout(0.5)
        self.head = nn.Linear(6, 6, bias=False)
        self.head.weight = self.layer[0].fc.weight

    def forward(self, batch, scale: float, *, shift=None):
        x = self.bn(batch["x"])
        hidden = []
        for layer in self.layer:
            x = layer(x)
            hidden.append(x)
        x = self.drop(x) * scale
        return Answer(self.head(x if shift is None else x + shift), hidden)


SAMPLE = ep.Sample(({"x": torch.randn(1, 6), "unused": None}, 0.5), {"shift": torch.randn(1, 6)})


@pytest.fixture(scope="module")
def net():
    torch.manual_seed(0)
    return Net().train()


@pytest.fixture(scope="module")
def model(net):
    return ep.export(net, SAMPLE)


def test_inputs_and_outputs_are_named_by_their_place_and_batches_of_one_are_dynamic(model):
    assert [str(spec) for spec in model.inputs] == ["batch.x: float32[batch, 6]", "shift: float32[batch, 6]"]
    assert [str(spec) for spec in model.outputs] == [
        f"{name}: float32[batch, 6]" for name in ("logits", "hidden.0", "hidden.1")
    ]


def test_the_result_was_run_on_both_providers_at_other_sizes(model):
    assert model.report is not None
    assert model.report.ok
    assert {"sample", "other values", "batch=2"} <= {run.label for run in model.report.runs}
    assert set(model.report.providers) == {"cpu", "onnxruntime"}


def test_it_computes_what_the_module_computes_in_evaluation_mode(net, model):
    x, shift = torch.randn(5, 6), torch.randn(5, 6)
    actual = ep.Session(model).run({"batch.x": x.numpy(), "shift": shift.numpy()})
    with torch.no_grad():
        net.eval()
        expected = net({"x": x}, 0.5, shift=shift)
        net.train()
    np.testing.assert_allclose(actual["logits"], expected.logits.numpy(), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(actual["hidden.1"], expected.hidden[1].numpy(), rtol=1e-5, atol=1e-5)


def test_the_structure_is_kept_in_the_metadata(model):
    structure = json.loads(model.metadata["entrepot.structure"])
    args, kwargs = structure["inputs"]["tuple"]
    assert args == [
        "args",
        {
            "tuple": [
                [0, {"dict": [["x", {"tensor": "batch.x"}], ["unused", {"constant": None}]]}],
                [1, {"constant": 0.5}],
            ]
        },
    ]
    assert kwargs == ["kwargs", {"dict": [["shift", {"tensor": "shift"}]]}]
    assert structure["outputs"]["type"].endswith(":Answer")
    assert structure["outputs"]["dataclass"][2] == ["note", {"constant": "fine"}]


def test_weights_keep_their_names_and_one_that_is_tied_is_there_once(net, model):
    initializers = model.ir.graph.initializers
    named = dict(net.named_parameters())
    for name in ("layer.0.fc.weight", "layer.1.norm.bias", "bn.weight"):
        assert np.array_equal(initializers[name].const_value.numpy(), named[name].detach().numpy())
    total = sum(value.const_value.nbytes for value in initializers.values())
    buffers = sum(buffer.nbytes for buffer in net.buffers())
    assert total <= 1.05 * (sum(parameter.nbytes for parameter in net.parameters()) + buffers)


def test_nodes_say_which_module_and_line_they_come_from(model):
    gemms = [node for node in model.ir.graph if node.op_type in ("Gemm", "MatMul")]
    assert [node.metadata_props["entrepot.module"] for node in gemms] == ["layer.0.fc", "layer.1.fc", "head"]
    assert all(node.metadata_props["entrepot.source"].startswith("test_export.py:") for node in gemms)
    assert gemms[0].name.startswith("layer.0.fc/")
    keys = {key for node in onnx_ir.traversal.RecursiveGraphIterator(model.ir.graph) for key in node.metadata_props}
    assert keys == {"entrepot.module", "entrepot.source"}


def test_the_default_opset_needs_no_conversion_and_another_is_reached_by_one(net, model):
    assert model.opset == 20
    assert ep.export(net, SAMPLE, opset=17, dynamic=False).opset == 17


def test_the_file_holds_the_same_model(model, tmp_path):
    model.save(tmp_path / "net.onnx")
    again = ep.load(tmp_path / "net.onnx")
    assert again.inputs == model.inputs
    feeds = {"batch.x": np.ones((3, 6), np.float32), "shift": np.zeros((3, 6), np.float32)}
    first, second = ep.Session(model).run(feeds), ep.Session(again).run(feeds)
    assert all(np.array_equal(first[name], second[name]) for name in first)


def test_verify_compares_a_module_with_any_model_of_it(net, model):
    assert ep.verify(net, model, SAMPLE, providers=["cpu"]).ok
    torch.manual_seed(1)
    other = Net()
    report = ep.verify(other, model, SAMPLE, providers=["cpu"])
    assert not report.ok


def test_nothing_of_the_module_or_of_torch_is_changed(net):
    torch.manual_seed(3)
    before = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    attributes = [set(vars(part)) for part in net.modules()]
    sample = torch.randn(2, 6)
    copy, state = sample.clone(), torch.get_rng_state()
    ep.export(net, ({"x": sample}, 1.0), verify=False)
    assert net.training
    assert net.drop.training
    assert [set(vars(part)) for part in net.modules()] == attributes
    assert all(torch.equal(tensor, before[name]) for name, tensor in net.state_dict().items())
    assert torch.equal(sample, copy)
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.is_grad_enabled()
    assert torch.backends.mha.get_fastpath_enabled()


class Aliases(nn.Module):
    """Returns an input, the same tensor twice, and names that are taken."""

    def __init__(self):
        super().__init__()
        self.x = nn.Parameter(torch.ones(3))

    def forward(self, x):
        y = x * self.x
        return {"x": x, "y": y, "again": y}


def test_aliased_results_and_names_that_are_taken_are_kept_apart():
    model = ep.export(Aliases(), torch.randn(2, 3))
    assert [spec.name for spec in model.inputs] == ["x_in"]
    assert [spec.name for spec in model.outputs] == ["x_out", "y", "again"]


def test_names_can_be_given():
    model = ep.export(nn.ReLU(), torch.randn(2, 3), input_names=["pixels"], output_names=["rectified"], verify=False)
    assert [model.inputs[0].name, model.outputs[0].name] == ["pixels", "rectified"]


@pytest.mark.parametrize("names", [["a", "b"], []])
def test_too_many_or_too_few_names_are_refused(names):
    with pytest.raises(ep.InputError, match="input_names is"):
        ep.export(nn.ReLU(), torch.randn(2, 3), input_names=names, verify=False)


def test_nothing_is_printed(capfd):
    ep.export(nn.ReLU(), torch.randn(2, 3), progress=False)
    assert capfd.readouterr() == ("", "")
