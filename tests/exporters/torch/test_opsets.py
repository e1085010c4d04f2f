"""``export(..., opset=n)`` gives opset n, or refuses; never another one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from torch import nn

import entrepot as ep
from entrepot.exporters.pipeline import at_opset

OPSETS = range(7, 29)
ONNXRUNTIME_KNOWS = 26


class Encoder(nn.Module):
    """What torch.onnx.export gives at opset 18 whichever of 12 to 17 it is asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.lift, self.norm, self.head = nn.Linear(6, 8), nn.LayerNorm(8), nn.Linear(8, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(nn.functional.gelu(self.norm(self.lift(x)))).softmax(-1)


class Upscaler(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.interpolate(self.norm(self.conv(x)).relu(), scale_factor=2.0, mode="nearest")


class Tagger(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.head = nn.LSTM(5, 6, batch_first=True, bidirectional=True), nn.Linear(12, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.lstm(x)[0])


SAMPLES = {Encoder: (2, 5, 6), Upscaler: (2, 3, 6, 6), Tagger: (2, 4, 5)}


def _module(kind: type[nn.Module]) -> tuple[nn.Module, torch.Tensor]:
    torch.manual_seed(0)
    return kind().eval(), torch.randn(SAMPLES[kind])


def _run(path: Path, x: torch.Tensor, opset: int) -> np.ndarray[Any, Any]:
    if opset > ONNXRUNTIME_KNOWS:
        return next(iter(ep.Session(path).run({"x": x.numpy()}).values()))
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.log_severity_level = 4
    result: np.ndarray[Any, Any] = ort.InferenceSession(path, options).run(None, {"x": x.numpy()})[0]
    return result


def _assert_is_at(path: Path, opset: int, expected: torch.Tensor, x: torch.Tensor) -> None:
    stored = onnx.load(path)
    assert {item.domain: item.version for item in stored.opset_import} == {"": opset}
    assert stored.ir_version <= onnx.helper.OP_SET_ID_VERSION_MAP["ai.onnx", opset]
    onnx.checker.check_model(path, full_check=True)
    np.testing.assert_allclose(_run(path, x, opset), expected.numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("opset", [7, 12, 17, 26, 28])
def test_the_file_is_at_the_opset_asked_for(opset: int, tmp_path: Path) -> None:
    module, x = _module(Encoder)
    path = tmp_path / "model.onnx"
    model = ep.export(module, x, path, opset=opset, dynamic={"x": {0: "batch"}}, verify=False)
    assert model.opset == opset
    with torch.no_grad():
        _assert_is_at(path, opset, module(x), x)
        _assert_is_at(path, opset, module(x[:1]), x[:1])


@pytest.mark.parametrize("kind", SAMPLES)
def test_every_opset_from_7_on_is_reached(kind: type[nn.Module], tmp_path: Path) -> None:
    module, x = _module(kind)
    exported = ep.export(module, x, opset=18, dynamic=False, verify=False)
    with torch.no_grad():
        expected = module(x)
    for opset in OPSETS:  # one capture for all: this is the step that export ends with
        path = tmp_path / f"{opset}.onnx"
        at_opset(exported.ir, _options(opset)).save(path)
        _assert_is_at(path, opset, expected, x)


def _options(opset: int) -> Any:
    from entrepot.exporters.options import Options

    return Options(opset, "auto", False, None, None, None, print)


@pytest.mark.parametrize("opset", [29, 0])
def test_an_opset_that_does_not_exist_is_refused(opset: int) -> None:
    with pytest.raises(ep.ConversionError, match=f"{opset} is out of range"):
        ep.export(nn.ReLU(), torch.randn(2, 3), opset=opset, verify=False)


def test_what_an_opset_cannot_say_is_refused_by_name() -> None:
    class Unique(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.nonzero(x)

    with pytest.raises(ep.ConversionError, match="NonZero"):
        ep.export(Unique(), torch.ones(2, 3), opset=8, verify=False)
