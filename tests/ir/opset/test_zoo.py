"""Telling exports of the zoo at telling opsets, in onnxruntime beside torch; ``benchmarks.zoo_opsets`` runs all."""

from __future__ import annotations

from pathlib import Path

import pytest

import entrepot as ep
from tests.sweeps import zoo
from tests.sweeps.zoo import Case

OPSETS = (9, 11, 13, 15, 17, 21, 26)
MODELS = ("gpt", "convnext", "lstm_tagger", "early_exit")
"""Attention, masks and GELU; a norm over the last axis; a recurrent operator; a branch."""


@pytest.fixture(scope="module", params=MODELS)
def export(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[ep.Model, list[Case]]:
    folder: Path = tmp_path_factory.mktemp("zoo")
    return zoo.exported(request.param, folder, fresh=True)


@pytest.mark.parametrize("opset", OPSETS)
def test_an_export_computes_the_same_at_every_opset(export: tuple[ep.Model, list[Case]], opset: int) -> None:
    assert zoo.judge(export[0], opset, export[1]) == ("ok", "")


def test_a_wrong_result_is_called_wrong(export: tuple[ep.Model, list[Case]]) -> None:
    model, cases = export
    spoiled = [(feeds, {name: value + 0.5 for name, value in answers.items()}) for feeds, answers in cases]
    assert zoo.judge(model, 17, spoiled)[0] == "WRONG"
