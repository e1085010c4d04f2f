"""Exports of the zoo as modules again: the same results, the same names, and everything that modules can do."""

from __future__ import annotations

import copy
import pickle
import re
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import ruff
import torch

import entrepot as ep
from entrepot.models_zoo.torch.lenet_digits import LeNet
from tests.importers.torch.networks import CHEAP, arguments, built, exported, feeds, judged, results

RUFF = ruff.find_ruff_bin()


@pytest.mark.parametrize("name", CHEAP)
def test_a_module_computes_what_onnxruntime_does_and_proves_it(name: str) -> None:
    net = ep.to_torch(exported(name), sample=feeds(name, built(name).sample))
    assert net.report.ok
    for sample in built(name).samples:
        with torch.no_grad():
            made = results(net, arguments(name, sample))
        expected = judged(name, feeds(name, sample))
        assert ep.compare(expected, dict(zip(expected, (tensor.numpy() for tensor in made), strict=True)))


PLAIN = ["mlp", "gru_classifier", "bert", "gpt", "two_tower", "early_exit"]
"""Whose exports keep every weight as it is: no normalisation was folded into a product."""


@pytest.mark.parametrize("name", PLAIN)
def test_parameters_have_the_names_and_shapes_that_the_network_gave_them(name: str) -> None:
    theirs, net = built(name).module.state_dict(), ep.to_torch(exported(name), verify=False)
    assert {key: tuple(value.shape) for key, value in net.state_dict().items()} == {
        key: tuple(value.shape) for key, value in theirs.items()
    }
    for parameter in net.parameters():
        torch.nn.init.normal_(parameter)
    net.load_state_dict(theirs)
    for key, value in net.state_dict().items():
        torch.testing.assert_close(value, theirs[key], rtol=0, atol=0)


@pytest.mark.parametrize("name", PLAIN)
def test_gradients_are_those_of_the_network(name: str) -> None:
    net, original = ep.to_torch(exported(name), verify=False), copy.deepcopy(built(name).module)
    given = arguments(name, built(name).samples[-1])
    made = results(net, given)
    torch.manual_seed(0)
    weights = [torch.randn_like(tensor) for tensor in made if tensor.is_floating_point()]
    sum((each * w).sum() for each, w in zip(made, weights, strict=False)).backward()
    theirs = _outputs(original, built(name).samples[-1])
    sum((each * w).sum() for each, w in zip(theirs, weights, strict=False)).backward()
    expected, found = _gradients(original), _gradients(net)
    assert found.keys() == expected.keys()
    for key, row in _padding(original):
        found[key][row] = 0
    least = 1e-3 * max(gradient.abs().max().item() for gradient in expected.values())
    for key, gradient in found.items():
        scale = max(expected[key].abs().max().item(), least)  # biases of keys have none but what is rounded
        torch.testing.assert_close(gradient / scale, expected[key] / scale, rtol=1e-3, atol=1e-4)


def _gradients(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Gradients by name; torch.cond gives zeros to the branch that is not taken, Python none."""
    pairs = module.named_parameters()
    return {key: torch.zeros_like(value) if value.grad is None else value.grad for key, value in pairs}


def _padding(module: torch.nn.Module) -> Iterator[tuple[str, int]]:
    """Rows of embeddings that get no gradient, which no file says."""
    for name, layer in module.named_modules():
        if isinstance(layer, torch.nn.Embedding) and layer.padding_idx is not None:
            yield f"{name}.weight", layer.padding_idx


def _outputs(module: torch.nn.Module, sample: object) -> list[torch.Tensor]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch.cond's own
        return list(_tensors(module(**sample) if isinstance(sample, dict) else module(*sample)))


def _tensors(made: Any) -> Iterator[torch.Tensor]:
    if isinstance(made, torch.Tensor):
        yield made
        return
    for each in made if isinstance(made, tuple) else (made if isinstance(made, dict) else vars(made)).values():
        yield from _tensors(each)


@pytest.mark.parametrize("name", CHEAP)
def test_copies_and_pickles_compute_the_same(name: str) -> None:
    net = ep.to_torch(exported(name), verify=False)
    given = arguments(name, built(name).sample)
    with torch.no_grad():
        expected = results(net, given)
        for other in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
            assert other.source() == net.source()
            for left, right in zip(results(other, given), expected, strict=True):
                torch.testing.assert_close(left, right, rtol=0, atol=0)


@pytest.mark.parametrize("name", [name for name in CHEAP if name != "early_exit"])  # its condition needs data
def test_everything_that_a_module_keeps_is_in_its_state(name: str) -> None:
    net = ep.to_torch(exported(name), verify=False).to("meta")
    given = [tensor.to("meta") for tensor in arguments(name, built(name).sample)]
    assert all(tensor.device.type == "meta" for tensor in results(net, given))


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float64])
@pytest.mark.parametrize(
    "name", ["mlp", "dcgan_generator", "gru_classifier", "lstm_tagger", "bert", "gpt", "two_tower"]
)
def test_modules_compute_in_other_types(name: str, kind: torch.dtype) -> None:
    net = ep.to_torch(exported(name), verify=False).to(kind)
    given = [each.to(kind) if each.is_floating_point() else each for each in arguments(name, built(name).sample)]
    with torch.no_grad():
        assert all(tensor.dtype == kind for tensor in results(net, given) if tensor.is_floating_point())


@pytest.mark.parametrize("name", CHEAP)
def test_modules_are_captured_at_any_batch(name: str) -> None:
    net = ep.to_torch(exported(name), verify=False)
    given = tuple(arguments(name, built(name).samples[-1]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's own layers and operators warn of each other
        program = torch.export.export(net, given, strict=False)
    with torch.no_grad():
        for left, right in zip(results(program.module(), list(given)), results(net, list(given)), strict=True):
            torch.testing.assert_close(left, right)


@pytest.mark.parametrize("name", ["mlp", "bert", "gpt", "dcgan_generator"])
def test_modules_compile_as_one_graph(name: str) -> None:
    net = ep.to_torch(exported(name), verify=False)
    given = arguments(name, built(name).sample)
    compiled = torch.compile(net, fullgraph=True, backend="eager")
    with torch.no_grad():
        for left, right in zip(results(compiled, given), results(net, given), strict=True):
            torch.testing.assert_close(left, right)


def test_tied_weights_stay_one() -> None:
    net = ep.to_torch(exported("gpt"), verify=False)
    assert net.head.weight is net.tokens.weight


def test_blocks_that_repeat_are_one_class_and_a_loop() -> None:
    source = ep.to_torch(exported("gpt"), verify=False).source()
    assert source.count("class Block") == 1
    assert "for block in self.blocks:" in source
    assert "batch, sequence = " in source


@pytest.mark.parametrize("name", CHEAP)
def test_a_folder_runs_with_torch_alone(name: str, tmp_path: Path) -> None:
    net = ep.to_torch(exported(name), source=tmp_path / "made" / "here", verify=False)
    folder = tmp_path / "made" / "here"
    given = arguments(name, built(name).sample)
    torch.save(given, folder / "given.pt")
    code = """
import sys, torch
from model import load
with torch.no_grad():
    made = load()(*torch.load("given.pt"))
assert not {"onnx", "onnx_ir", "onnxruntime", "entrepot"} & set(sys.modules)
torch.save(list(made) if isinstance(made, tuple) else [made], "made.pt")
"""
    subprocess.run([sys.executable, "-c", code], cwd=folder, check=True)
    with torch.no_grad():
        for left, right in zip(torch.load(folder / "made.pt"), results(net, given), strict=True):
            torch.testing.assert_close(left, right, rtol=0, atol=0)
    assert (folder / "model.py").read_text() == net.source()
    assert (folder / "requirements.txt").read_text().split() == ["torch>=2.4", "safetensors"]


@pytest.mark.parametrize("name", CHEAP)
def test_the_text_is_what_a_formatter_would_leave_and_a_linter_pass(name: str, tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(ep.to_torch(exported(name), verify=False).source())
    for command in (["format", "--diff"], ["check", "--select", "E4,E7,E9,F,I,B,UP,RUF100"]):
        told = subprocess.run(
            [RUFF, *command, "--isolated", tmp_path / "model.py"], capture_output=True, text=True, check=False
        )
        assert told.returncode == 0, told.stdout


def test_what_is_exported_again_agrees_and_keeps_its_names() -> None:
    net = ep.to_torch(exported("mlp"), verify=False)
    again = ep.export(net, tuple(arguments("mlp", built("mlp").sample)))
    assert again.report is not None
    assert again.report.ok
    assert {name for name in again.ir.graph.initializers if re.search("weight|bias", name)} == set(net.state_dict())


def test_a_classifier_learns_on_from_its_file(tmp_path: Path) -> None:
    from entrepot.models_zoo.torch.lenet_digits import accuracy, digits, train

    data = digits()
    torch.manual_seed(0)
    original = train(LeNet(), data, epochs=2)
    ep.export(original, (torch.from_numpy(data.test_images[:2]),), tmp_path / "lenet.onnx", verify=False)
    net = ep.to_torch(tmp_path / "lenet.onnx", verify=False)
    for module in (net, original):
        _steps(module, data)
    scores = [accuracy(_predictor(module), data) for module in (net, original)]
    assert scores[0] == pytest.approx(scores[1], abs=0.01)


def _steps(module: torch.nn.Module, data: object) -> None:
    """Twenty steps of training on the same batches."""
    images, labels = (torch.from_numpy(np.asarray(each)) for each in (data.train_images, data.train_labels))
    module.train()
    optimizer = torch.optim.SGD(module.parameters(), lr=0.05)
    for at in range(20):
        part = slice(at * 64 % len(images), at * 64 % len(images) + 64)
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(module(images[part]), labels[part]).backward()
        optimizer.step()
    module.eval()


def _predictor(module: torch.nn.Module) -> object:
    def predict(images: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            return module(torch.from_numpy(images)).numpy()

    return predict
