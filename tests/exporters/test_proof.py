"""What is broken on purpose is caught, or at least called unproven, on every way into the library."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from click.testing import CliRunner

import entrepot as ep
from entrepot.cli import main
from entrepot.exporters.torch.lowering import translate
from entrepot.exporters.torch.translations import decompositions
from entrepot.ir.opset import rules
from entrepot.ir.table import Entry, OpKey
from entrepot.runtime.providers.cpu.table import native
from tests.ir.opset.evaluate import parse

X = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
OLD = "y = Softmax<axis = 0>(x)"


class Softmax(torch.nn.Module):
    def forward(self, x):
        return torch.softmax(x, 0)


class Hypot(torch.nn.Module):
    def forward(self, x):
        return torch.hypot(x, x + 1)


@pytest.fixture
def break_adapters(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Steps of an operator that leave nodes as they are."""

    def break_steps(*versions: tuple[int, int]) -> None:
        for start, stop in versions:
            assert rules.find(rules.Step("", "Softmax", start, stop)) is not None
            monkeypatch.setitem(rules._rules, rules.Step("", "Softmax", start, stop), rules.keep)
        rules.route.cache_clear()

    yield break_steps
    rules.route.cache_clear()


@pytest.fixture
def broken_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    right = native.get("", "Softmax", 13).function
    wrong = Entry(lambda x, *, axis=-1: right(x, axis=axis) * np.float32(1.01))
    monkeypatch.setitem(native._entries, OpKey("", "Softmax", 13), wrong)


@pytest.fixture
def broken_translation(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(decompositions(), torch.ops.aten.hypot.default, lambda a, b: a.abs() + b.abs())
    translate._decompositions.cache_clear()
    yield
    translate._decompositions.cache_clear()


@pytest.fixture
def without_onnxruntime(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)


# --- the ways in: each takes a file and an opset to a verdict


def by_export(path: Path, opset: int) -> Any:
    return ep.export(ep.load(path), X, opset=opset).report


def by_export_of_a_path(path: Path, opset: int) -> Any:
    return ep.export(path, X, opset=opset).report


def by_convert_opset(path: Path, opset: int) -> Any:
    return ep.convert_opset(path, opset, verify=True, feeds=X).report


def by_verify(path: Path, opset: int) -> Any:
    return ep.verify(path, ep.convert_opset(path, opset), X)


def by_command(path: Path, opset: int) -> Any:
    return _command("convert", path, "--opset", opset, "-o", path.with_suffix(".new.onnx"), "--require-proof")


def by_command_export(path: Path, opset: int) -> Any:
    return _command("export", path, "--opset", opset, "-o", path.with_suffix(".new.onnx"), "--require-proof")


def by_command_compare(path: Path, opset: int) -> Any:
    target = path.with_suffix(".new.onnx")
    ep.convert_opset(path, opset).save(target)
    return _command("compare", path, target)


def _command(*words: Any) -> bool:
    result = CliRunner().invoke(main, [str(word) for word in words])
    assert result.exit_code in {0, 1}, result.output
    return result.exit_code == 0


OF_FILES = [
    by_export,
    by_export_of_a_path,
    by_convert_opset,
    by_verify,
    by_command,
    by_command_export,
    by_command_compare,
]


def passes(way: Callable[[Path, int], Any], path: Path, opset: int) -> bool:
    try:
        return bool(way(path, opset))
    except ep.VerificationError:
        return False


@pytest.fixture
def saved(tmp_path: Path) -> Callable[[int], Path]:
    def save(opset: int) -> Path:
        parse(OLD, opset).save(tmp_path / "net.onnx")
        return tmp_path / "net.onnx"

    return save


@pytest.mark.parametrize("way", OF_FILES)
@pytest.mark.parametrize(("have", "want"), [(11, 13), (13, 11)])
def test_what_is_right_is_proved(way, have, want, saved):
    assert passes(way, saved(have), want)


@pytest.mark.parametrize("way", OF_FILES)
@pytest.mark.parametrize(("have", "want"), [(11, 13), (13, 11)])
def test_a_broken_adapter_is_caught(way, have, want, saved, break_adapters):
    break_adapters((have, want))
    assert not passes(way, saved(have), want)


@pytest.mark.parametrize("way", OF_FILES)
@pytest.mark.parametrize(("have", "want"), [(11, 13), (13, 11)])
def test_adapters_broken_alike_in_both_directions_are_caught(way, have, want, saved, break_adapters):
    break_adapters((11, 13), (13, 11))
    assert not passes(way, saved(have), want)


@pytest.mark.parametrize("way", OF_FILES)
@pytest.mark.parametrize(("have", "want"), [(11, 13), (13, 11)])
def test_without_an_independent_judge_nothing_is_ok(way, have, want, saved, break_adapters, without_onnxruntime):
    break_adapters((11, 13), (13, 11))
    assert not passes(way, saved(have), want)


@pytest.mark.parametrize("way", OF_FILES)
def test_a_broken_kernel_is_caught(way, saved, broken_kernel):
    assert not passes(way, saved(13), 18)


@pytest.mark.parametrize("way", OF_FILES)
def test_a_broken_kernel_is_caught_by_the_reference_alone(way, saved, broken_kernel, without_onnxruntime):
    assert not passes(way, saved(13), 18)


GROUPS = """
    scale = Constant<value = float[2] {1, 2}>()
    bias = Constant<value = float[2] {0, 1}>()
    shape = Constant<value = int64[3] {-1, 2, 2}>()
    images = Reshape(x, shape)
    y = GroupNormalization<num_groups = 2>(images, scale, bias)
"""


@pytest.fixture
def groups(tmp_path: Path) -> Path:
    """The versions of the operator take different weights; its function body says what each means."""
    parse(GROUPS, 18, "float[N,4] x) => (float[N,2,2] y").save(tmp_path / "net.onnx")
    return tmp_path / "net.onnx"


@pytest.fixture
def broken_groups(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    wrong = rules.Step("", "GroupNormalization", 18, 21)
    assert rules.find(wrong) is not None
    monkeypatch.setitem(rules._rules, wrong, lambda op, _: op.set(epsilon=1.0))
    rules.route.cache_clear()
    yield
    rules.route.cache_clear()


@pytest.mark.parametrize("way", OF_FILES)
def test_a_function_body_proves_what_nobody_else_can_judge(way, groups, without_onnxruntime):
    assert passes(way, groups, 21)


@pytest.mark.parametrize("way", OF_FILES)
def test_a_function_body_shows_that_an_adapter_is_broken(way, groups, without_onnxruntime, broken_groups):
    assert not passes(way, groups, 21)


def test_a_kernel_that_folds_constants_wrongly_is_caught(broken_kernel):
    model = parse(
        "c = Constant<value = float[2] {1, 2}>() s = Softmax(c) y = Mul(x, s)", 13, "float[N,2] x) => (float[N,2] y"
    )
    with pytest.raises(ep.VerificationError):
        ep.simplify(model)


# --- from a framework


@pytest.mark.parametrize("opset", [11, 12])
def test_a_broken_adapter_is_caught_in_exports_of_a_module(opset, break_adapters):
    break_adapters((13, 11))
    with pytest.raises(ep.VerificationError):
        ep.export(Softmax(), torch.tensor(X), opset=opset)
    model = ep.export(Softmax(), torch.tensor(X), opset=opset, verify=False)
    assert not ep.verify(Softmax(), model, torch.tensor(X))


def test_an_older_opset_that_only_we_can_read_is_unproven(break_adapters, without_onnxruntime):
    break_adapters((11, 13), (13, 11))
    report = ep.export(Softmax(), torch.tensor(X), opset=11).report
    assert not report
    assert not report.failures
    assert "unproven, because nobody ran the file but cpu" in report.summary()


def test_the_default_opset_is_proved_without_onnxruntime(without_onnxruntime):
    assert ep.export(Softmax(), torch.tensor(X)).report


def test_a_broken_kernel_is_caught_in_exports_of_a_module(broken_kernel):
    with pytest.raises(ep.VerificationError):
        ep.export(Softmax(), torch.tensor(X))
    assert not ep.verify(Softmax(), ep.export(Softmax(), torch.tensor(X), verify=False), torch.tensor(X))


def test_a_broken_translation_is_caught(broken_translation):
    with pytest.raises(ep.VerificationError):
        ep.export(Hypot(), torch.tensor(X))
    assert not ep.verify(Hypot(), ep.export(Hypot(), torch.tensor(X), verify=False), torch.tensor(X))


NETS = """
import torch
from tests.exporters.test_proof import Softmax, Hypot, X
softmax, hypot, x = Softmax(), Hypot(), torch.tensor(X)
"""


@pytest.fixture
def nets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., bool]]:
    (tmp_path / "broken_nets.py").write_text(NETS)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])

    def export(name: str, *words: Any) -> bool:
        return _command("export", f"broken_nets:{name}", "--sample", "broken_nets:x", "-o", tmp_path / "a.onnx", *words)

    yield export
    sys.modules.pop("broken_nets", None)


def test_the_command_exports_what_is_right(nets):
    assert nets("softmax", "--opset", 11, "--require-proof")
    assert nets("hypot")


def test_the_command_catches_a_broken_adapter(nets, break_adapters):
    break_adapters((13, 11))
    assert not nets("softmax", "--opset", 11)


def test_the_command_catches_a_broken_kernel(nets, broken_kernel):
    assert not nets("softmax")


def test_the_command_catches_a_broken_translation(nets, broken_translation):
    assert not nets("hypot")


def test_the_command_writes_what_is_unproven_and_says_so_unless_a_proof_is_required(
    nets, break_adapters, without_onnxruntime, tmp_path
):
    break_adapters((11, 13), (13, 11))
    assert not nets("softmax", "--opset", 11, "--require-proof")
    assert not (tmp_path / "a.onnx").exists()
    assert nets("softmax", "--opset", 11)
    assert (tmp_path / "a.onnx").exists()
