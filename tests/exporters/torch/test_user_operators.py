"""Operators of ``ep.op`` in modules: one node of their own domain, proved against their own Python."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import entrepot as ep
from entrepot.exporters.operators import Operator
from entrepot.ir.errors import InputError, VerificationError

BODY = """<opset_import: ["": 20], domain: "test.torch"> Softer <alpha: float = 1.0> (x) => (y)
{ a = Constant <value_float: float = @alpha> ()  b = CastLike (a, x)  c = Mul (x, b)  y = Tanh (c) }"""


class Net(nn.Module):
    """Calls an operator that is not torch's."""

    def __init__(self, operator: Operator) -> None:
        super().__init__()
        self.linear, self.operator = nn.Linear(4, 3), operator

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.operator(self.linear(x), alpha=0.5).relu()


def soft(x: np.ndarray, *, alpha: float = 1.0) -> np.ndarray:
    """tanh(alpha * x), by NumPy."""
    return np.tanh(x * np.float32(alpha))


@pytest.fixture
def softer() -> Iterator[Operator]:
    operator = ep.op("test.torch", "Softer")(soft)
    yield operator
    operator.remove()


def test_it_is_exported_as_one_node(softer: Operator, tmp_path: Path) -> None:
    module, x = Net(softer), torch.randn(2, 4)
    model = ep.export(module, x)
    assert model.report
    assert [run.provider for run in model.report.runs if run.ok and run.label == "sample"] == ["cpu", "onnxruntime"]
    assert [(node.domain, node.op_type) for node in model.ir.graph][1:] == [("test.torch", "Softer"), ("", "Relu")]
    assert isinstance(model.inputs[0].shape[0], str)
    model.save(tmp_path / "net.onnx")
    (found,) = ep.Session(tmp_path / "net.onnx").run({"x": x.numpy()}).values()
    torch.testing.assert_close(torch.from_numpy(found), module(x))


def test_its_body_makes_the_file_run_anywhere(tmp_path: Path) -> None:
    import onnxruntime

    operator = ep.op("test.torch", "Softer", body=BODY)(soft)
    module, x = Net(operator), torch.randn(2, 4)
    model = ep.export(module, x)
    operator.remove()
    assert model.report
    model.save(tmp_path / "net.onnx")
    (found,) = onnxruntime.InferenceSession(tmp_path / "net.onnx").run(None, {"x": x.numpy()})
    np.testing.assert_allclose(found, ep.Session(tmp_path / "net.onnx").run({"x": x.numpy()})["output"], rtol=1e-6)


def test_a_body_that_computes_something_else_is_found() -> None:
    operator = ep.op("test.torch", "Softer", body=BODY.replace("Tanh", "Sin"))(soft)
    with pytest.raises(VerificationError):
        ep.export(Net(operator), torch.randn(2, 4))
    operator.remove()


def test_several_outputs_and_other_types() -> None:
    @ep.op(
        "test.torch",
        "Peak",
        outputs=2,
        shape=lambda x: (x.like(shape=x.shape[:-1]), x.like(shape=x.shape[:-1], dtype="int64")),
    )
    def peak(x):
        """The largest of each row, and where it is."""
        return x.max(-1), x.argmax(-1)

    class Peaks(nn.Module):
        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            value, place = peak(x.exp())
            return value.log(), place + 1

    model = ep.export(Peaks(), torch.randn(5, 4))
    assert model.report
    assert [(spec.dtype, len(spec.shape)) for spec in model.outputs] == [("float32", 1), ("int64", 1)]
    assert model.outputs[0].shape == model.inputs[0].shape[:1]
    peak.remove()


def test_it_can_take_the_place_of_an_operator_of_torch(softer: Operator) -> None:
    class Plain(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.tanh(x) + 1

    with ep.register_translation(torch.tanh, softer):
        model = ep.export(Plain(), torch.randn(2, 3))
    assert [node.op_type for node in model.ir.graph] == ["Softer", "Add"]


def test_a_wrong_shape_function_is_told_from_the_sample() -> None:
    operator = ep.op("test.torch", "Softer", shape=lambda x, *, alpha: x.like(shape=x.shape[:1]))(soft)
    with pytest.raises(ep.EntrepotError, match=r"test\.torch::Softer returned float32\(2, 3\).*float32\(2,\)"):
        ep.export(Net(operator), torch.randn(2, 4))
    operator.remove()
    with pytest.raises(InputError, match=r"shape function of test\.torch::Softer returned"):
        ep.export(Net(ep.op("test.torch", "Softer", shape=lambda x, *, alpha: x.shape)(soft)), torch.randn(2, 4))
