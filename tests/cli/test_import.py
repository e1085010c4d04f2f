"""``entrepot import``: a model becomes a folder that runs on its own."""

from __future__ import annotations

import runpy

import numpy as np
import pytest
import torch


def test_a_folder_for_torch_is_proved_and_loads(entrepot, relu, tmp_path):
    facts = entrepot.json("import", relu, "--to", "torch", "-o", tmp_path / "net")
    assert facts["verified"]
    assert sorted(path.name for path in (tmp_path / "net").iterdir()) == [
        "model.py", "model.safetensors", "requirements.txt"
    ]  # fmt: skip
    net = runpy.run_path(str(tmp_path / "net" / "model.py"))["load"]()
    assert net(torch.tensor([[-1.0, 0.0, 2.0]])).tolist() == [[0, 0, 2]]


def test_without_a_proof_nothing_is_run(entrepot, relu, tmp_path):
    facts = entrepot.json("import", relu, "--to", "torch", "-o", tmp_path / "net", "--no-verify")
    assert not facts["verified"]
    assert (tmp_path / "net" / "model.py").exists()


def test_a_folder_for_numpy_has_one_function(entrepot, relu, tmp_path):
    entrepot("import", relu, "--to", "numpy", "-o", tmp_path / "net")
    function = runpy.run_path(str(tmp_path / "net" / "model.py"))["relu"]
    np.testing.assert_array_equal(function(np.float32([[-1, 0, 2]])), [[0, 0, 2]])


def test_what_torch_has_no_form_for_is_refused_and_nothing_written(entrepot, write, tmp_path):
    model = write("y = ImageDecoder(x)", "uint8[N] x", "uint8[H, W, 3] y", name="picture")
    told = entrepot("import", model, "--to", "torch", "-o", tmp_path / "net", status=4).stderr
    assert "ImageDecoder" in told
    assert not (tmp_path / "net").exists()


def test_a_file_in_place_of_the_folder_and_a_missing_framework_are_wrong_usage(entrepot, relu, tmp_path):
    (tmp_path / "taken").write_text("kept")
    assert "taken" in entrepot("import", relu, "--to", "torch", "-o", tmp_path / "taken", status=2).stderr
    assert (tmp_path / "taken").read_text() == "kept"
    (told,) = entrepot("import", relu, "-o", tmp_path / "net", status=2).stderr.splitlines()
    assert "Missing option '--to'. Choose from: torch, numpy" in told


@pytest.mark.parametrize("framework", ["torch", "numpy"])
def test_no_folder_is_not_the_one_that_one_is_in(entrepot, relu, tmp_path, monkeypatch, framework):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert "path" in entrepot("import", relu, "--to", framework, "-o", "", status=2).stderr
    assert not list((tmp_path / "here").iterdir())
