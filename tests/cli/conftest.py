from __future__ import annotations

import json
from pathlib import Path

import onnx_ir
import pytest
from click.testing import CliRunner

from entrepot.cli import main

HEAD = '<ir_version: 10, opset_import: ["": 20]>'


class Commands:
    """Runs verbs in this process."""

    def __call__(self, *words, status=0):
        result = CliRunner().invoke(main, [str(word) for word in words])
        assert result.exit_code == status, result.output
        return result

    def json(self, *words, status=0):
        return json.loads(self(*words, "--json", status=status).stdout)


@pytest.fixture
def entrepot():
    return Commands()


@pytest.fixture
def write(tmp_path):
    """Writes a model given as text."""

    def make(body, inputs="float[batch, 3] x", outputs="float[batch, 3] y", name="net", head=HEAD) -> Path:
        path = tmp_path / f"{name}.onnx"
        onnx_ir.save(onnx_ir.from_onnx_text(f"{head} {name} ({inputs}) => ({outputs}) {{ {body} }}"), path)
        return path

    return make


@pytest.fixture
def relu(write):
    return write("y = Relu(x)", name="relu")


@pytest.fixture
def fancy(write):
    """A model with an operator nobody has."""
    return write("y = acme.Fancy(x)", name="fancy", head='<ir_version: 10, opset_import: ["": 20, "acme": 1]>')
