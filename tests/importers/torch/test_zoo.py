"""Exports of the zoo as modules again: the same results, the same names, and everything that modules can do.

What is cheap is asked of every model; what takes seconds, of a few a day, so that all get their turn.
"""

from __future__ import annotations

import copy
import datetime as dt
import pickle
import re
import subprocess
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import ruff
import torch

import entrepot as ep
from entrepot.models_zoo import registry
from entrepot.models_zoo.torch.lenet_digits import LeNet
from entrepot.testing.parity import Parity
from tests.importers.torch.gradients import gradients, padding, plain_loop
from tests.importers.torch.networks import arguments, built, exported, feeds, imported, judged, kept, results

RUFF = ruff.find_ruff_bin()
ZOO = registry.names()
DRAWN_BY_DATA = {"early_exit", "fixed_point"}
"""Whose path depends on values, which tensors without memory have none of."""


def todays(count: int, names: Sequence[str] = ZOO) -> list[str]:
    """Some models of the zoo: others each day."""
    first = dt.datetime.now(dt.UTC).date().toordinal() * count
    return [names[(first + at) % len(names)] for at in range(count)]


@pytest.mark.parametrize("name", ZOO)
def test_a_module_computes_what_onnxruntime_does(name: str) -> None:
    for sample in built(name).samples:
        with torch.no_grad():
            made = results(imported(name), arguments(name, sample))
        expected = judged(name, feeds(name, sample))
        assert ep.compare(expected, dict(zip(expected, (tensor.numpy() for tensor in made), strict=True)))


@pytest.mark.parametrize("name", ZOO)
def test_what_the_file_kept_has_the_names_shapes_and_roles_that_the_network_gave_it(name: str) -> None:
    theirs, net = built(name).module, imported(name)
    expected = {key: tuple(value.shape) for key, value in theirs.state_dict().items()}
    found = {key: tuple(value.shape) for key, value in net.state_dict().items()}
    assert {key: found[key] for key in found if key in expected} == {
        key: expected[key] for key in found if key in expected
    }
    assert {key for key, _ in net.named_parameters()} - {key for key, _ in theirs.named_parameters()} <= _biases(theirs)


def _biases(module: torch.nn.Module) -> set[str]:
    """Biases of layers without them, which normalisations that were folded left there."""
    return {f"{name}.bias" for name, layer in module.named_modules() if getattr(layer, "bias", 0) is None}


@pytest.mark.parametrize("name", ZOO)
def test_copies_and_pickles_compute_the_same(name: str) -> None:
    net, given = imported(name), arguments(name, built(name).sample)
    with torch.no_grad():
        expected = results(net, given)
        for other in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
            assert other.source() == net.source()
            for left, right in zip(results(other, given), expected, strict=True):
                torch.testing.assert_close(left, right, rtol=0, atol=0)


@pytest.mark.parametrize("name", [name for name in ZOO if name not in DRAWN_BY_DATA])
def test_everything_that_a_module_keeps_moves_with_it(name: str) -> None:
    net = copy.deepcopy(imported(name)).to("meta")
    given = [tensor.to("meta") for tensor in arguments(name, built(name).sample)]
    assert all(tensor.device.type == "meta" for tensor in results(net, given))


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("name", ZOO)
def test_modules_compute_in_other_types(name: str, kind: torch.dtype) -> None:
    net = copy.deepcopy(imported(name)).to(kind)
    given = [each.to(kind) if each.is_floating_point() else each for each in arguments(name, built(name).sample)]
    with torch.no_grad():
        assert all(tensor.dtype == kind for tensor in results(net, given) if tensor.is_floating_point())


@pytest.mark.parametrize("name", ZOO)
def test_modules_can_be_trained(name: str) -> None:
    net = copy.deepcopy(imported(name)).train()
    made = results(net, arguments(name, built(name).samples[-1]))
    sum(each.square().mean() for each in made if each.is_floating_point()).backward()
    reached = [key for key, value in net.named_parameters() if value.grad is not None and value.grad.isfinite().all()]
    if name == "early_exit":  # Python's own branch gives nothing to the other
        reached += [key for key, _ in net.named_parameters() if key.split(".")[0] in ("shallow", "deep")]
    assert {key for key, _ in net.named_parameters()} <= {*reached}


def test_texts_are_what_a_formatter_would_leave_and_a_linter_pass(tmp_path: Path) -> None:
    for name in ZOO:
        (tmp_path / f"{name}.py").write_text(imported(name).source())
    for command in (["format", "--diff"], ["check", "--select", "E4,E7,E9,F,I,B,UP,RUF100"]):
        told = subprocess.run([RUFF, *command, "--isolated", tmp_path], capture_output=True, text=True, check=False)
        assert told.returncode == 0, told.stdout


@pytest.mark.parametrize("name", sorted({"vit", *todays(3)}))  # whose layers begin alike, and are trained apart
def test_weights_and_gradients_are_those_of_the_network(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    net, original = copy.deepcopy(kept(name)).double(), copy.deepcopy(built(name).module).double()
    nodes = len(exported(name).ir.graph)
    monkeypatch.setattr(torch, "while_loop", plain_loop)  # for what runs, not for what is captured
    state = original.state_dict()
    for key, value in net.state_dict().items():
        if key in state and not key.endswith("num_batches_tracked"):  # nothing in a file reads it
            torch.testing.assert_close(value, state[key], rtol=0, atol=0)
    found, expected = gradients(net, name), gradients(original, name)
    for key, row in padding(original):
        found[key][row] = 0
    largest = max(gradient.abs().max().item() for gradient in expected.values())
    noise = torch.finfo(torch.float64).eps * sum(map(torch.numel, expected.values())) * largest
    for key in found.keys() & expected.keys():  # each step may bring a constant that the file has in float32
        rounded = torch.finfo(torch.float32).eps * nodes * expected[key].abs().max().item()
        assert (found[key] - expected[key]).abs().max().item() <= rounded + noise, key


OF_ONE_LENGTH = {"lstm_tagger", "gru_classifier"}
"""Networks with layers that torch captures at the length that it sees; it does so with the networks themselves."""


@pytest.mark.parametrize("name", todays(5))
def test_modules_are_captured_at_any_size(name: str) -> None:
    net, model = imported(name), exported(name)
    kept = {1} if name in OF_ONE_LENGTH else set()
    free = tuple(
        {
            axis: torch.export.Dim.DYNAMIC
            for axis in range(len(spec.shape))
            if f"{spec.name}.{axis}" in built(name).dynamic and axis not in kept
        }
        for spec in model.inputs
    )
    samples = [arguments(name, sample) for sample in built(name).samples]
    if kept:
        samples = [samples[-1], [each.repeat(3, 1) for each in samples[-1]]]
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's own layers and operators warn of each other
        program = torch.export.export(
            net, (*arguments(name, built(name).samples[-1]),), dynamic_shapes=free, strict=False
        )
        for given in samples:
            for left, right in zip(results(program.module(), given), results(net, given), strict=True):
                torch.testing.assert_close(left, right)


@pytest.mark.parametrize("name", todays(4))
def test_modules_compile_as_one_graph(name: str) -> None:
    net, given = imported(name), arguments(name, built(name).sample)
    with torch._dynamo.config.patch(allow_rnn=True), torch.no_grad():  # without it torch compiles no recurrent layer
        compiled = torch.compile(net, fullgraph=True, backend="eager")
        for left, right in zip(results(compiled, given), results(net, given), strict=True):
            torch.testing.assert_close(left, right)


@pytest.mark.parametrize("name", todays(2))
def test_a_folder_runs_with_torch_alone(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "made" / "here"
    net = ep.to_torch(exported(name), source=folder, verify=False)
    given = arguments(name, built(name).sample)
    torch.save(given, folder / "given.pt")
    code = f"""
import sys, torch
from model import load
torch.set_num_threads({torch.get_num_threads()})  # which sums depend on
with torch.no_grad():
    made = load()(*torch.load("given.pt"))
assert not {{"onnx", "onnx_ir", "onnxruntime", "entrepot"}} & set(sys.modules)
torch.save(list(made) if isinstance(made, tuple) else [made], "made.pt")
"""
    subprocess.run([sys.executable, "-c", code], cwd=folder, check=True)
    with torch.no_grad():
        for left, right in zip(torch.load(folder / "made.pt"), results(net, given), strict=True):
            torch.testing.assert_close(left, right, rtol=0, atol=0)
    assert (folder / "model.py").read_text() == net.source()
    assert (folder / "requirements.txt").read_text().split() == ["torch>=2.4", "safetensors"]


def test_tied_weights_stay_one() -> None:
    assert imported("gpt").head.weight is imported("gpt").tokens.weight


def test_blocks_that_repeat_are_one_class_and_a_loop() -> None:
    source = imported("gpt").source()
    assert source.count("class Block") == 1
    assert "for block in self.blocks:" in source
    assert "batch, sequence = " in source


SPELLED_OTHERWISE = {
    "swin": "its windows are told from shapes, which the exporter writes anew",
    "lstm_tagger": "layers that are stacked come apart: the axis of directions is put in and taken out between them",
    "mixture_of_experts": "places that count from the end are brought to the front before they are written to",
    "dlrm": "the triangle of products is picked by slices instead of one Gather",
    "detection_head": "of equal scores the first comes first: a TopK is a stable sort, of which a part is taken",
    "fixed_point": "the first turn of a loop is computed before it, to know what is carried",
}
"""Models that come back with other nodes; all that may be asked of them is the same results, inputs and outputs."""


@pytest.mark.parametrize("name", ZOO)
def test_a_model_of_the_zoo_comes_back_as_it_went(parity: Parity, name: str) -> None:
    given = feeds(name, built(name).samples[-1])
    parity.round_trip(exported(name), through=["torch"], feeds=given, structure=name not in SPELLED_OTHERWISE)


SURE = [name for name in ZOO if name not in SPELLED_OTHERWISE]


@pytest.mark.parametrize("name", sorted({"mlp", "gru_classifier", "bert", *todays(1, SURE)}))
def test_a_model_may_go_round_twice(parity: Parity, name: str) -> None:
    parity.round_trip(exported(name), through=["torch", "torch"], structure=True)


def test_what_is_exported_again_agrees_and_keeps_its_names() -> None:
    net = imported("mlp")
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
