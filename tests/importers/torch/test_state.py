"""What a module keeps: the names, shapes and roles that the network's own tensors had, and nothing else."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import onnx
import onnx_ir
import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor, nn

import entrepot as ep

X = torch.linspace(-1, 1, 24)

ALONE = {
    "Linear": (lambda: nn.Linear(4, 2), X.reshape(6, 4)),
    "LSTM": (lambda: nn.LSTM(4, 3, batch_first=True), X.reshape(2, 3, 4)),
    "GRU": (lambda: nn.GRU(4, 3, 2, bidirectional=True), X.reshape(2, 3, 4)),
    "MultiheadAttention": (lambda: nn.MultiheadAttention(4, 2), (X.reshape(3, 2, 4),) * 3),
    "Conv2d": (lambda: nn.Conv2d(2, 4, 3), X.reshape(1, 2, 3, 4)),
    "ConvTranspose2d": (lambda: nn.ConvTranspose2d(2, 4, 3), X.reshape(1, 2, 3, 4)),
    "LayerNorm": (lambda: nn.LayerNorm(4), X.reshape(6, 4)),
    "RMSNorm": (lambda: nn.RMSNorm(4), X.reshape(6, 4)),
    "GroupNorm": (lambda: nn.GroupNorm(2, 4), X.reshape(2, 4, 3)),
    "BatchNorm1d": (lambda: nn.BatchNorm1d(4), X.reshape(6, 4)),
    "Embedding": (lambda: nn.Embedding(5, 4), torch.tensor([[0, 4, 2]])),
    "PReLU": (nn.PReLU, X.reshape(6, 4)),
    "LSTMCell": (lambda: nn.LSTMCell(4, 3), X.reshape(6, 4)),
    "TransformerDecoderLayer": (lambda: nn.TransformerDecoderLayer(4, 2, 8), (X.reshape(3, 2, 4),) * 2),
    "group norm without a bias": (lambda: nn.GroupNorm(2, 4, bias=False), torch.randn(2, 4, 5)),
    "instance norm without a bias": (
        lambda: nn.InstanceNorm2d(4, affine=True, bias=False),
        torch.randn(2, 4, 5, 6),
    ),
}


def _drawn(module: nn.Module) -> nn.Module:
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator))
    return module.eval()


def _results(module: nn.Module, given: tuple[Tensor, ...]) -> list[Tensor]:
    made = module(*given)
    flat = torch.utils._pytree.tree_leaves(made)
    return [each.detach() for each in flat if isinstance(each, Tensor)]


@pytest.mark.parametrize("optimize", ["default", "none"])
@pytest.mark.parametrize("name", ALONE)
def test_a_layer_exported_alone_takes_the_state_of_the_original(name: str, optimize: str) -> None:
    build, given = ALONE[name]
    given = given if isinstance(given, tuple) else (given,)
    original = _drawn(build())
    options: dict[str, Any] = {} if optimize == "default" else {"optimize": optimize}
    net = ep.to_torch(ep.export(_drawn(build()), given, verify=False, **options), verify=False)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.zero_()
    net.load_state_dict(original.state_dict())
    for left, right in zip(_results(net, given), _results(original, given), strict=True):
        torch.testing.assert_close(left, right)


def test_a_batch_norm_without_a_bias_has_none_and_needs_a_torch_that_knows_it(tmp_path: Path) -> None:
    original = _drawn(nn.BatchNorm2d(4, bias=False))
    net = ep.to_torch(ep.export(original, torch.randn(2, 4, 5, 6), progress=False), source=tmp_path / "net")
    assert net.state_dict().keys() == original.state_dict().keys()
    assert "torch>=2.13" in (tmp_path / "net" / "requirements.txt").read_text("utf-8").split()


class Scaled(nn.Module):
    """A weight of its own that a norm reads as it is, and another one as something else."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4))

    def forward(self, x: Tensor) -> Tensor:
        y = nn.functional.instance_norm(nn.functional.group_norm(x, 2, self.weight, None), weight=self.weight * 2)
        return nn.functional.batch_norm(y, torch.zeros(4), torch.ones(4), self.weight)


def test_a_norm_in_the_place_of_the_module_leaves_room_for_its_other_weights() -> None:
    x = torch.randn(2, 4, 5, 6)
    original = Scaled().eval()
    net = ep.to_torch(ep.export(original, x, progress=False))
    torch.testing.assert_close(net(x), original(x))


class Mixed(nn.Module):
    """Tensors of every role: trained in its own shape or another, saved, unsaved, and one of the code alone."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.rand(3) + 1)
        self.table = nn.Parameter(torch.rand(2, 6))
        self.register_buffer("mean", torch.rand(3, 1, 1))
        self.register_buffer("window", torch.hann_window(4))
        self.register_buffer("steps", torch.arange(4.0) / 4, persistent=False)
        self.register_buffer("order", torch.randint(0, 48, (70,)), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        left, right = self.table.split(3, dim=1)
        scaled = (
            (x - self.mean) * self.scale.view(1, -1, 1, 1)
            + self.steps
            + self.window.sqrt()
            + torch.tensor([0.5, 1.5, 2.5, 4.5])
        )
        return (scaled.mean((2, 3)) @ left.T) + right.sum() + x.flatten(1)[:, self.order].sum(1, keepdim=True)


@pytest.mark.parametrize("optimize", ["default", "none"])
def test_tensors_keep_their_roles(optimize: str) -> None:
    options: dict[str, Any] = {} if optimize == "default" else {"optimize": optimize}
    original, x = Mixed().eval(), torch.rand(2, 3, 4, 4)
    net = ep.to_torch(ep.export(original, (x,), **options))
    assert {name: value.shape for name, value in net.state_dict().items()} == {
        name: value.shape for name, value in original.state_dict().items()
    }
    assert {name for name, _ in net.named_parameters()} == {"scale", "table"}
    net.load_state_dict(original.state_dict())
    torch.testing.assert_close(net(x), original(x))
    for module in (net, original):
        module(x).square().sum().backward()
    for name, parameter in original.named_parameters():
        torch.testing.assert_close(net.get_parameter(name).grad, parameter.grad)


def test_a_folder_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    model = ep.export(nn.Linear(4, 2).eval(), (torch.zeros(1, 4),), verify=False)
    (tmp_path / "model.py").mkdir()
    (tmp_path / "model.safetensors").write_bytes(b"before")
    with pytest.raises(ep.StorageError, match="a folder has that name"):
        ep.to_torch(model, source=tmp_path, verify=False)
    assert {each.name for each in tmp_path.iterdir()} == {"model.py", "model.safetensors"}
    assert (tmp_path / "model.safetensors").read_bytes() == b"before"


def test_numbers_that_are_in_no_state_are_in_the_text(tmp_path: Path) -> None:
    original, x = Mixed().eval(), torch.rand(2, 3, 4, 4)
    net = ep.to_torch(ep.export(original, (x,), verify=False), source=tmp_path, verify=False)
    torch.save(x, tmp_path / "x.pt")
    code = "import torch; from model import load; torch.save(load()(torch.load('x.pt')), 'y.pt')"
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
    torch.testing.assert_close(torch.load(tmp_path / "y.pt"), net(x), rtol=0, atol=0)
    assert {*load_file(tmp_path / "model.safetensors")} == {*original.state_dict()}
    beside = load_file(tmp_path / "buffers.safetensors")
    assert torch.equal(beside["order"].flatten(), original.order)
    assert all(each.dtype == torch.float16 for each in net.half().buffers() if each.is_floating_point())


@pytest.mark.parametrize("target", ["{-1, 4, 2, 3}", "{-1, 4, 3, 2}"])
def test_groups_that_are_normalised_and_put_back_to_a_known_size_are_a_layer(target: str) -> None:
    other = target.endswith("3, 2}")
    proto = onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["": 17]>
        g (float[batch, 4, 2, 3] x) => (float[batch, 4, H, W] y)
        <int64[3] apart = {{0, 2, -1}}, int64[4] back = {target}, float[2] one = {{1, 1}}, float[2] none = {{0, 0}},
        float[4, 1, 1] s = {{1, 2, 3, 4}}, float[4, 1, 1] b = {{5, 6, 7, 8}}> {{
            a = Reshape(x, apart)  n = InstanceNormalization(a, one, none)  r = Reshape(n, back)
            m = Mul(r, s)  y = Add(m, b) }}""")
    net = ep.to_torch(ep.load(proto))
    assert any(isinstance(each, nn.GroupNorm) for each in net.modules()) != other
    assert net.report is not None
    assert net.report.ok


WITHOUT_WEIGHTS = {
    "LayerNorm": (lambda: nn.LayerNorm(4, elementwise_affine=False), (6, 4)),
    "RMSNorm": (lambda: nn.RMSNorm(4, elementwise_affine=False), (6, 4)),
    "GroupNorm": (lambda: nn.GroupNorm(2, 4, affine=False), (2, 4, 3)),
    "InstanceNorm2d": (lambda: nn.InstanceNorm2d(3), (1, 3, 2, 4)),
    "BatchNorm2d": (lambda: nn.BatchNorm2d(3, affine=False), (1, 3, 2, 4)),
}


@pytest.mark.parametrize("name", WITHOUT_WEIGHTS)
def test_normalisations_without_weights_get_none(name: str) -> None:
    make, shape = WITHOUT_WEIGHTS[name]
    original, x = nn.Sequential(make(), nn.PReLU()).eval(), X[:24].reshape(shape)
    net = ep.to_torch(ep.export(original, x, optimize="extended", verify=False))
    assert net.state_dict().keys() == original.state_dict().keys()
    torch.testing.assert_close(net(x), original(x))


def test_a_list_of_one_layer_may_be_called_twice() -> None:
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.only = nn.Sequential(nn.Linear(4, 4))

        def forward(self, x: Tensor) -> Tensor:
            return self.only(x) * self.only(x + 1)

    original, x = Twice().eval(), X.reshape(6, 4)
    net = ep.to_torch(ep.export(original, x, verify=False))
    assert net.state_dict().keys() == original.state_dict().keys()
    torch.testing.assert_close(net(x), original(x))


def test_layers_that_are_no_stack_are_those_of_a_module() -> None:
    net, x, state = _drawn(nn.GRU(4, 3, 2)), X.reshape(2, 3, 4), torch.randn(2, 3, 3)
    model = onnx_ir.serde.serialize_model(ep.export(net, (x, state)).ir)
    _, place = (at for at, node in enumerate(model.graph.node) if node.op_type == "GRU")
    above = model.graph.node[place]
    turned = onnx.helper.make_node("Neg", [above.input[5]], ["turned"])  # what the upper one begins with
    above.input[5] = "turned"
    model.graph.node.insert(place, turned)
    found = ep.to_torch(ep.load(model), verify=False)
    assert [type(part).__name__ for part in found.children()] == ["GRU", "GRU"]
    state_of_both = torch.stack([state[0], -state[1]])
    for left, right in zip(_results(found, (x, state)), _results(net, (x, state_of_both)), strict=True):
        torch.testing.assert_close(left, right)
