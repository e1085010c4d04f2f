"""Modules that were built without weights, and safetensors files that stay where they are."""

import json
import os
import struct

import numpy as np
import onnxruntime
import pytest
import torch
from safetensors.torch import save_file
from torch import nn

import entrepot as ep

IDS = torch.arange(6).reshape(2, 3)


class Net(nn.Module):
    """Tied weights, two- and three-dimensional products, a normalisation with buffers."""

    def __init__(self, dtype=torch.float32):
        super().__init__()
        self.embed = nn.Embedding(50, 32, dtype=dtype)
        self.layer = nn.Linear(32, 32, dtype=dtype)
        self.norm = nn.BatchNorm1d(32, dtype=dtype)
        self.head = nn.Linear(32, 50, bias=False, dtype=dtype)
        self.head.weight = self.embed.weight

    def forward(self, ids):
        x = torch.relu(self.layer(self.embed(ids)))
        return self.head(self.norm(x.transpose(1, 2)).transpose(1, 2))


@pytest.fixture
def real():
    torch.manual_seed(0)
    return Net().eval()


@pytest.fixture
def meta():
    with torch.device("meta"):
        net = Net().eval()
        net.head.weight = net.embed.weight
    return net


@pytest.fixture
def weights(real, tmp_path):
    path = tmp_path / "model.safetensors"
    save_file({name: value for name, value in real.state_dict().items() if name != "head.weight"}, path)
    return path


def test_the_weights_stay_in_their_file_and_the_module_without_any(real, meta, weights, tmp_path):
    before = weights.read_bytes()
    model = ep.export(meta, IDS, tmp_path / "net.onnx", weights=weights)
    assert model.report.ok
    assert sorted(os.listdir(tmp_path)) == ["model.safetensors", "net.onnx"]
    assert weights.read_bytes() == before
    assert {tensor.device.type for tensor in (*meta.parameters(), *meta.buffers())} == {"meta"}
    assert meta.head.weight is meta.embed.weight
    session = onnxruntime.InferenceSession(tmp_path / "net.onnx", providers=["CPUExecutionProvider"])
    expected = real(IDS).detach().numpy()
    np.testing.assert_allclose(session.run(None, {"ids": IDS.numpy()})[0], expected, rtol=1e-4, atol=1e-5)
    assert ep.verify(real, tmp_path / "net.onnx", IDS)
    assert ep.verify(meta, model, IDS, weights=tmp_path)


def test_every_large_weight_is_a_reference(meta, weights):
    model = ep.export(meta, IDS, weights=weights)
    large = [value.const_value for value in model.ir.graph.initializers.values() if value.const_value.nbytes >= 1024]
    assert {tensor.name for tensor in large} == {"embed.weight", "layer.weight"}
    assert {tensor.file.path for tensor in large} == {weights}


def test_elsewhere_it_is_saved_with_its_weights_or_not_at_all(real, meta, weights, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    model = ep.export(meta, IDS, weights=weights)
    with pytest.raises(ep.InputError, match=r"the weights lie in .*gather=True"):
        model.save(other / "net.onnx")
    with pytest.raises(ep.InputError, match=r"the weights lie in .*gather=True"):
        ep.export(meta, IDS, other / "net.onnx", weights=weights)
    assert os.listdir(other) == []
    model.save(other / "net.onnx", gather=True)
    weights.unlink()
    assert ep.verify(real, other / "net.onnx", IDS)


def test_several_files_in_a_folder_are_one_set_of_weights(real, meta, tmp_path):
    state = real.state_dict()
    del state["head.weight"]
    for part, names in enumerate((list(state)[:3], list(state)[3:])):
        save_file({name: state[name] for name in names}, tmp_path / f"model-{part}.safetensors")
    assert ep.export(meta, IDS, tmp_path / "net.onnx", weights=tmp_path).report.ok


def test_halves_keep_their_type(tmp_path):
    torch.manual_seed(0)
    real = nn.Linear(32, 32, dtype=torch.bfloat16)
    save_file(real.state_dict(), tmp_path / "model.safetensors")
    x = torch.randn(2, 32).bfloat16()
    with torch.device("meta"):
        net = nn.Linear(32, 32, dtype=torch.bfloat16)
    ep.export(net, x, tmp_path / "net.onnx", weights=tmp_path, dynamic=False)
    kept = ep.load(tmp_path / "net.onnx").ir.graph.initializers["weight"].const_value
    assert str(kept.dtype) == "BFLOAT16"
    np.testing.assert_array_equal(kept.numpy().view(np.uint16), real.weight.detach().view(torch.uint16).numpy())


def test_a_forward_that_writes_to_a_weight_is_refused_and_writes_to_no_file(tmp_path):
    class Writes(nn.Linear):
        def forward(self, x):
            with torch.no_grad():
                self.weight.mul_(2)
            return super().forward(x)

    save_file(nn.Linear(4, 4).state_dict(), tmp_path / "m.safetensors")
    before = (tmp_path / "m.safetensors").read_bytes()
    with torch.device("meta"):
        net = Writes(4, 4)
    with pytest.raises(ep.ConversionError, match=r"parameters that forward writes to \(weight\)"):
        ep.export(net, torch.ones(2, 4), weights=tmp_path)
    assert (tmp_path / "m.safetensors").read_bytes() == before


def test_what_is_missing_or_does_not_fit_is_named(meta, weights, tmp_path):
    save_file({"embed.weight": torch.zeros(50, 32)}, tmp_path / "part.safetensors")
    with pytest.raises(ep.InputError, match=r"in none of the files: layer\.weight, layer\.bias"):
        ep.export(meta, IDS, weights=tmp_path / "part.safetensors")
    save_file({"embed.weight": torch.zeros(50, 31)}, tmp_path / "wrong.safetensors")
    with pytest.raises(ep.InputError, match=r"'embed\.weight'.*the file has shape \(50, 31\), the module \(50, 32\)"):
        ep.export(meta, IDS, weights=tmp_path / "wrong.safetensors")
    with pytest.raises(ep.InputError, match="the module has its weights already"):
        ep.export(Net(), IDS, weights=weights)
    with pytest.raises(ep.InputError, match=r'on the meta device.*weights="model\.safetensors"'):
        ep.export(meta, IDS)
    with pytest.raises(ep.MissingFileError, match="there is no safetensors file"):
        ep.export(meta, IDS, weights=tmp_path / "no.safetensors")


def table(entries, data=b"\0" * 16):
    header = json.dumps(entries).encode()
    return struct.pack("<Q", len(header)) + header + data


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"short",
        struct.pack("<Q", 1 << 60) + b"{}",
        struct.pack("<Q", 3) + b"[1]",
        struct.pack("<Q", 2) + b"{{",
        table({"weight": {"dtype": "F99", "shape": [4], "data_offsets": [0, 16]}}),
        table({"weight": {"dtype": "F32", "shape": [4], "data_offsets": [0, 15]}}),
        table({"weight": {"dtype": "F32", "shape": [4], "data_offsets": [16, 32]}}),
        table({"weight": {"dtype": "F32", "shape": [-4], "data_offsets": [0, 16]}}),
        table({"weight": {"dtype": "F32", "shape": "ab", "data_offsets": [0, 16]}}),
        table({"weight": 3}),
    ],
)
def test_a_damaged_file_is_refused(content, tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(content)
    with torch.device("meta"):
        net = nn.Linear(2, 2)
    with pytest.raises(ep.ModelFormatError):
        ep.export(net, torch.ones(1, 2), weights=path)


def test_a_large_model_is_verified_by_onnxruntime_alone_on_the_files_themselves(meta, weights, monkeypatch):
    from entrepot.runtime.providers.onnxruntime import weights as handing

    monkeypatch.setattr(handing, "INLINE_BYTES", 4096)
    model = ep.export(meta, IDS, weights=weights)
    assert model.report.ok
    assert model.report.providers == ("onnxruntime",)
