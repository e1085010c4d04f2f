"""What a package is held to before it is handed over, and what is held back from the model meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
import torch

import entrepot as ep
from entrepot.exporters.transformers import export, upstream, verify
from entrepot.exporters.transformers.called import Called
from entrepot.exporters.transformers.verify import Case, compared
from entrepot.runtime.generation.manifest import Manifest, State
from entrepot.runtime.generation.package import Package
from entrepot.runtime.generation.settings import Settings
from tests.export_cases.generating import built
from tests.exporters.transformers.test_plain_modules import TwoArguments
from tests.sweeps.packages import _is_as_close, _is_rounding, _manner

OURS, OTHERS = np.array([[1, 2, 3]]), np.array([[1, 2, 4]])


def test_a_package_with_other_weights_than_the_model_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def spoilt(package: Package) -> Package:
        graph = package.graphs["decoder"].ir.clone()
        weight = max(graph.graph.initializers.values(), key=lambda value: value.const_value.nbytes)
        weight.const_value = ir.tensor(weight.const_value.numpy() * np.float32(1.01), name=weight.name)
        return Package({"decoder": ep.Model(graph)}, package.manifest)

    monkeypatch.setattr(export, "with_last_scores", spoilt)
    with pytest.raises(ep.VerificationError, match="does not compute the same thing"):
        ep.export_transformer(TwoArguments().eval())


class Deaf(TwoArguments):
    """Takes something that it does not look at."""

    def forward(self, input_ids: Any, past_keys: Any = None, past_values: Any = None, style: Any = None) -> Any:
        return super().forward(input_ids, past_keys, past_values)


def test_a_sample_that_changes_nothing_is_an_error() -> None:
    samples = {"input_ids": torch.tensor([[3, 4, 5], [6, 7, 8]]), "style": torch.ones(2)}
    with pytest.raises(ep.ConversionError, match="'style' of the samples has no effect"):
        ep.export_transformer(Deaf().eval(), samples)


def judged(
    monkeypatch: pytest.MonkeyPatch,
    tokens: Callable[[torch.dtype], Any],
    made: Callable[[], Any],
    *,
    bare: bool = False,
    uncached: Any = None,
) -> Any:
    """What is said of a package that makes tokens, beside a model that makes others by its precision, or its cache."""
    model = torch.nn.Linear(1, 1)

    def generated(module: Any, _: Any, asked: Any) -> Any:
        return tokens(module.weight.dtype) if asked.get("use_cache", True) else uncached

    monkeypatch.setattr(verify, "generated", generated)
    called = Called(model, ep.Roles())
    package = SimpleNamespace(
        generate=lambda **_: made(), manifest=Manifest(kind="decoder"), inputs={"input_ids": None}, settings=Settings()
    )
    building = SimpleNamespace(trials=SimpleNamespace(called=called), form=SimpleNamespace(bare=bare))
    prompt = torch.ones(1, 2, dtype=torch.int64)
    judge: Any = verify._Judge(package, building)  # type: ignore[arg-type]
    return judge._tokens(Case("a prompt", prompt, prompt, {}), 1)


def raising(error: Exception) -> Callable[..., Any]:
    def function(*_: Any, **__: Any) -> Any:
        raise error

    return function


@pytest.mark.parametrize(
    ("tokens", "made", "verdict"),
    [
        (lambda _: OURS, lambda: OURS, "agrees"),
        (lambda _: OURS, lambda: OTHERS, "differs"),
        (lambda dtype: OURS if dtype == torch.float32 else OTHERS, lambda: OTHERS, "noted"),
        (raising(RuntimeError("no such loop")), lambda: OURS, "noted"),
        (lambda _: OURS, raising(ep.InputError("no room")), "error"),
    ],
    ids=["the same", "others", "rounding decides", "the model does not", "the package does not"],
)
def test_tokens_count_where_rounding_does_not_decide_about_them(
    monkeypatch: pytest.MonkeyPatch, tokens: Any, made: Any, verdict: str
) -> None:
    assert judged(monkeypatch, tokens, made).verdict == verdict


@pytest.mark.parametrize(
    ("bare", "uncached", "verdict"), [(True, OTHERS, "noted"), (True, OURS, "differs"), (False, OTHERS, "differs")]
)
def test_a_package_without_a_cache_is_held_to_the_model_without_one(
    monkeypatch: pytest.MonkeyPatch, bare: bool, uncached: Any, verdict: str
) -> None:
    found = judged(monkeypatch, lambda _: OURS, lambda: OTHERS, bare=bare, uncached=uncached)
    assert found.verdict == verdict


def test_a_model_too_large_to_be_run_in_doubles_is_not_judged_by_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("entrepot.exporters.transformers.called._MOST_DOUBLED", 1)
    assert judged(monkeypatch, lambda _: OURS, lambda: OTHERS).verdict == "noted"


@pytest.mark.parametrize("same", [True, False])
def test_a_loop_in_the_graph_is_held_to_that_on_the_host(same: bool) -> None:
    host: Any = SimpleNamespace(using=lambda: SimpleNamespace(generate=lambda **_: OURS))
    made = SimpleNamespace(generate=lambda **_: OURS if same else OTHERS)
    whole: Any = SimpleNamespace(using=lambda: made, inputs={"input_ids": None}, settings=Settings())
    given = {"input_ids": torch.tensor([[1]])}
    if same:
        compared(whole, host, given, 1)
    else:
        with pytest.raises(ep.VerificationError, match=r"generates \[\[1, 2, 4\]\], expected \[\[1, 2, 3\]\]"):
            compared(whole, host, given, 1)


class Summing(torch.nn.Module):
    """A sum in which single precision loses what is small, and a count."""

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"sum": ((x + 1e4) - 1e4).sum(-1), "count": (x > 0).sum(-1)}


@pytest.mark.parametrize(
    ("error", "count", "rounding"),
    [(0.0, 0, True), (1.0, 0, True), (-0.9, 0, True), (4.0, 0, False), (0.0, 1, False)],
    ids=["none", "none at all", "twice", "more", "in integers"],
)
def test_results_as_close_to_doubles_as_the_model_are_rounding(error: float, count: int, rounding: bool) -> None:
    """``error`` in units of the model's own."""
    x = torch.rand(3, 50, generator=torch.Generator().manual_seed(0))
    model = Summing()
    wanted = {name: value.numpy() for name, value in model(x).items()}
    exact = model(x.double())["sum"].numpy()
    own = np.abs(wanted["sum"] - exact).max()
    assert own > 1e-4
    got = {"sum": exact + error * own, "count": wanted["count"] + count}
    assert _is_rounding(model, {"x": x}, wanted, got) is rounding
    assert not _is_rounding(model, {"x": x}, wanted, got | {"sum": got["sum"][:2]})


def test_what_the_model_itself_computes_otherwise_in_doubles_is_no_evidence() -> None:
    exact, got = np.array([0.2, 0.9]), np.array([0.5, 0.5], np.float32)
    assert _is_as_close(got, np.array([0.9, 0.2], np.float32), exact)  # another order
    assert not _is_as_close(got, np.array([0.2, 0.9], np.float32), exact)
    assert not _is_as_close(got[:1], np.array([0.9, 0.2], np.float32), exact)
    places, others = np.array([1, 0]), np.array([0, 1])
    assert _is_as_close(others, places, others)
    assert not _is_as_close(others, places, places)


@pytest.mark.parametrize(
    ("manifest", "said"),
    [
        (Manifest(), "forward"),
        (Manifest(kind="decoder"), "decoder, without a cache"),
        (Manifest(kind="decoder", step=1, states=(State("a", "b", (-1, 2), "float32"),)), "one token of a prompt"),
        (Manifest(kind="encoder-decoder", states=(State("a", "b", (-1, 0), "float32"),)), "encoder-decoder"),
    ],
)
def test_a_sweep_says_what_steps_cost(manifest: Manifest, said: str) -> None:
    package: Any = SimpleNamespace(manifest=manifest, generates=manifest.kind != "forward", graphs={"decoder": None})
    assert said in _manner(package)


def test_a_loop_that_wants_another_library_is_a_refusal_of_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    model = built("GPT2LMHeadModel")
    monkeypatch.setattr(type(model), "_prepare_generation_config", raising(ImportError("pip install more")))
    with pytest.raises(ValueError, match="pip install more"):
        upstream.generated(model, {"input_ids": torch.ones(1, 2, dtype=torch.int64)}, {})
