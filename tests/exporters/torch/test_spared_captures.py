"""What a capture cannot do with required axes is found out in as few captures as there are questions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import nn

import entrepot as ep
from entrepot.exporters import pipeline


class Values(nn.Module):
    """No capture of it succeeds, whichever axes vary."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2 if x.sum() > 5 else x - 1


class Rows(nn.Module):
    """A capture of it succeeds for as many rows as the sample has."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        total = x[0]
        for row in x.unbind()[1:]:
            total = total * 0.5 + row
        return total


class Short(nn.Module):
    """A capture of it succeeds for up to sixteen rows."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2 if x.shape[0] <= 16 else x - 1


class Texts(nn.Module):
    """Nor does one of it rewritten, since a text decides."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x * 2 if x.shape[0] > 5 else x
        return x + float(str(x.sum().item()))


def captures(
    module: nn.Module, monkeypatch: pytest.MonkeyPatch, **axes: dict[int, str]
) -> tuple[ep.Model | None, list[int]]:
    """An export with axes that have to vary, if it succeeds, and how many captures each way took."""
    export, counts = torch.export.export, [0]

    def counted(*args: Any, **kwargs: Any) -> Any:
        counts[-1] += 1
        return export(*args, **kwargs)

    def tell(line: str) -> None:
        if line.startswith("trying another way"):
            counts.append(0)

    monkeypatch.setattr(torch.export, "export", counted)
    try:
        return ep.export(module, torch.randn(7, 3), dynamic=axes, progress=tell), counts
    except ep.ConversionError:
        return None, counts


def test_what_fails_with_every_axis_fixed_is_not_tried_with_fewer(monkeypatch: pytest.MonkeyPatch) -> None:
    model, counts = captures(Values(), monkeypatch, x={0: "rows"})
    assert model is not None
    assert model.inputs[0].shape == ("rows", 3)
    assert counts[0] == 2  # with the axis, and without


@pytest.mark.parametrize("module", [Rows(), Short()])
def test_without_an_axis_that_is_required_it_is_captured_for_others_only(
    module: nn.Module, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, counts = captures(module, monkeypatch, x={0: "rows"})
    assert model is not None
    assert model.inputs[0].shape == ("rows", 3)
    assert counts[0] == 1  # of any size, which says all; nobody puts captures of fewer axes together


def test_axes_that_are_required_are_not_tried_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    model, counts = captures(Texts(), monkeypatch, x={0: "rows", 1: "columns"})
    assert counts[:2] == [2, 2]  # the second way: with both paths, and with that of the sample
    assert model is None


class Padded(nn.Module):
    """Padded to a multiple of four if need be, and cut to what it was; a value decides in between."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        missing = (4 - x.shape[0] % 4) % 4
        padded = nn.functional.pad(x, (0, 0, 0, missing)) if missing > 0 else x
        padded = padded.reshape(-1, 4, 3).cumsum(1).reshape(-1, 3)
        padded = padded * 2 if padded.sum() > 5 else padded - 1
        if missing > 0:
            padded = padded[:-missing]
        return padded + x if padded.shape[0] == x.shape[0] else padded


def test_what_is_cut_off_in_one_arm_leaves_a_size_that_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    model, counts = captures(Padded(), monkeypatch, x={0: "rows"})
    assert model is not None
    assert model.inputs[0].shape == ("rows", 3)
    assert len(counts) == 2  # as it is, and rewritten
    for rows in (1, 3, 4, 8, 9):
        x = torch.randn(rows, 3)
        torch.testing.assert_close(torch.tensor(ep.Session(model).run([x.numpy()])["output"]), Padded()(x))


class Places(nn.Module):
    """Captured from a size on, and with one condition on two sizes."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x[::4, ::4]
        x = x * 2 if x.shape[0] > 1 and x.shape[1] > 1 else x
        places = x[::2, ::2].flatten()
        return places * 1.0 if places.shape[0] == 1 else places


def test_where_a_capture_begins_is_found_once(monkeypatch: pytest.MonkeyPatch) -> None:
    export, counts = torch.export.export, [0]

    def counted(*args: Any, **kwargs: Any) -> Any:
        counts[-1] += 1
        return export(*args, **kwargs)

    monkeypatch.setattr(torch.export, "export", counted)
    model = ep.export(
        Places(),
        torch.randn(8, 8),
        progress=lambda line: counts.append(0) if line.startswith("trying another way") else None,
    )
    assert model.inputs[0].shape == ("batch", "x_dim1")
    assert counts[0] == 2  # of any size, and with names for them


@pytest.mark.parametrize(("edge", "tried"), [("finite", False), ("", True)])
def test_what_decides_nothing_by_values_is_not_captured_as_it_decides(
    edge: str, tried: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A graph that was captured as it is, and differs at edge values alone, shows that there is nothing to decide."""
    compare, told = pipeline.compare, list[str]()

    def unlike(*args: Any, **kwargs: Any) -> ep.Report:
        report = compare(*args, **kwargs)
        return replace(report, runs=(*report.runs, replace(report.runs[0], verdict="differs", edge=edge)))

    monkeypatch.setattr(pipeline, "compare", unlike)
    with pytest.raises(ep.VerificationError):
        ep.export(nn.Linear(3, 4), torch.randn(7, 3), dynamic={"input": {0: "rows"}}, progress=told.append)
    assert ("trying another way: as it decides for the sample" in told) == tried
    assert any(line.startswith("in parts: puts captures as it is together") for line in told) != tried
