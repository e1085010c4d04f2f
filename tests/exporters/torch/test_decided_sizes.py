"""Captures that cannot lead anywhere end early: branches on sizes are decided instead first, and bodies come first."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch.nn import Module

import entrepot as ep
from entrepot.exporters.torch.capture import capture as capturing
from entrepot.exporters.torch.capture.ranges import Opening
from entrepot.exporters.torch.rewriting.flows import FLOWS
from entrepot.exporters.torch.rewriting.reaching import SIZES
from entrepot.exporters.torch.rewriting.trees import UnlikeError
from entrepot.exporters.torch.sources import other_ways
from entrepot.ir.errors import ConversionError

NONE, ONE, TWO = (dict.fromkeys(range(count), "a reason") for count in range(3))


@pytest.mark.parametrize(
    ("decided", "fewer", "order", "result"),
    [
        (NONE, ONE, ["decided"], "decided"),
        (ONE, TWO, ["decided", "fewer"], "decided"),
        (TWO, ONE, ["decided", "fewer"], "fewer"),
        (None, ONE, ["decided", "fewer"], "fewer"),
        (ONE, None, ["decided", "fewer"], "decided"),
        (None, None, ["decided", "fewer"], None),
    ],
)
def test_before_axes_are_given_up_branches_on_sizes_are_decided(
    monkeypatch: pytest.MonkeyPatch, decided: Any, fewer: Any, order: list[str], result: str | None
) -> None:
    seen: list[str] = []

    def capture(*_: Any, failed: Any = lambda: None, **__: Any) -> Any:
        SIZES.met, name, fixed = True, "decided", decided
        if not SIZES.decide:
            failed()
            name, fixed = "fewer", fewer
        seen.append(name)
        FLOWS[name] = name  # type: ignore[assignment]
        if fixed is None:
            raise ConversionError(name)
        return SimpleNamespace(name=name, fixed=fixed, groups=[])

    monkeypatch.setattr(other_ways, "capture", capture)
    source: Any = SimpleNamespace(check_gain=lambda *_: None, call=None)
    options: Any = SimpleNamespace(tell=None)
    arguments: Any = (source, None, None, [], options)
    try:
        if result is None:
            with pytest.raises(ConversionError, match="decided"):
                other_ways._capture_rewritten(*arguments)
        else:
            found: Any = other_ways._capture_rewritten(*arguments)
            assert (found.name, list(FLOWS)) == (result, [result])
        assert seen == order
    finally:
        FLOWS.clear()


class _FoundError(Exception):
    """What is found where sizes are decided."""


@pytest.mark.parametrize(
    ("sizes", "error", "first"),
    [
        ((2, 7), "no attribute 'size'", True),
        ((7, 7), "no attribute 'size'", False),  # two axes that may be one are tried as one before
        ((2, 7), "Constraints violated (rows)! For more information", False),
    ],
)
def test_sizes_are_decided_before_it_is_asked_whether_they_are_to_blame(
    monkeypatch: pytest.MonkeyPatch, sizes: tuple[int, int], error: str, first: bool
) -> None:
    def found() -> None:
        raise _FoundError

    def asked(*_: Any) -> None:
        raise LookupError

    groups: Any = [SimpleNamespace(formula=None, axes={(0, at)}, required=False) for at in range(2)]
    prober: Any = SimpleNamespace(size=lambda axis: sizes[axis[1]], said=lambda *_: None, sample=())
    monkeypatch.setattr(capturing, "_opened", lambda *_: (Opening(error=AttributeError(error)), groups, {}))
    monkeypatch.setattr(capturing, "_for_no_size", asked)
    call: Any = None
    with pytest.raises(_FoundError if first else LookupError):
        capturing.capture(Module(), call, prober, groups, progress=lambda _: None, failed=found)


class Grouped(Module):
    """What is chosen comes in threes where its sum is positive, which no capture can know."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        chosen = x[x > -9]
        if x.sum() > 0:
            return chosen.view(-1, 3).sum(0)
        return x[:3, 0]


def test_bodies_are_captured_before_anything_is_translated(monkeypatch: pytest.MonkeyPatch) -> None:
    translated: list[Any] = []
    real = other_ways.translate
    monkeypatch.setattr(other_ways, "translate", lambda program: translated.append(program) or real(program))
    model = ep.export(Grouped(), torch.linspace(1, 2, 18).reshape(6, 3), dynamic=False)
    assert any("branches and loops rewritten: " in note and "captured as it decides" in note for note in model.notes)
    assert len(translated) == 1  # what it decides for the sample, and not the whole around the body that is refused


def test_what_no_body_can_keep_is_a_refusal_of_this_way_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any) -> Any:
        raise UnlikeError("None becomes a list")

    monkeypatch.setattr(other_ways, "Bodies", refused)
    model = ep.export(Grouped(), torch.linspace(1, 2, 18).reshape(6, 3), dynamic=False)
    assert any(
        "branches and loops rewritten: what was rewritten cannot be captured: None" in each for each in model.notes
    )
