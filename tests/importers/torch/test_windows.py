"""Windows whose padding differs from side to side, or depends on the size, are torch's own layers and functions."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest
import torch

import entrepot as ep
from tests.op_cases.normal import normal as f32

POOLS = [
    'auto_pad = "SAME_UPPER", strides = [2, 2]',
    'auto_pad = "SAME_LOWER", strides = [2, 3]',
    "pads = [0, 1, 1, 0]",
    "pads = [1, 0, 2, 1], strides = [2, 1]",
]
CONVS = [*POOLS, 'auto_pad = "SAME_UPPER", strides = [3, 2], dilations = [2, 1]', 'auto_pad = "SAME_LOWER"']
TRANSPOSED = [
    "pads = [0, 0, 1, 1], strides = [2, 2]",
    "pads = [2, 1, 0, 1], strides = [3, 2]",
    "pads = [0, 1, 1, 0], strides = [2, 2], output_padding = [1, 0]",
    "pads = [1, 0, 1, 2], dilations = [2, 1]",
]


def module_of(node: str, weights: dict[str, np.ndarray]) -> tuple[torch.nn.Module, ep.Model]:
    """The module, which has text of its own only, and the model."""
    proto = onnx.parser.parse_model(
        f"""<ir_version: 10, opset_import: ["": 22]>
        g (float[N, 3, H, W] x) => (float[N, C, I, J] y) {{ y = {node} }}"""
    )
    proto.graph.initializer.extend(onnx.numpy_helper.from_array(value, name) for name, value in weights.items())
    model = ep.load(proto)
    module = ep.to_torch(model)
    assert "class TorchBackend" not in module.source()
    return module, model


def check(node: str, weights: dict[str, np.ndarray], layer: type[torch.nn.Module] | None) -> None:
    module, model = module_of(node, weights)
    if layer is not None:
        assert any(isinstance(each, layer) for each in module.modules())
    for height, width in ((9, 8), (7, 11), (4, 5)):
        x = f32(2, 3, height, width)
        expected = ep.Session(model, providers=["reference"]).run({"x": x})["y"]
        found = module(torch.from_numpy(x)).detach().numpy()
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("attributes", CONVS)
def test_convolutions(attributes: str) -> None:
    check(f"Conv<{attributes}>(x, w, b)", {"w": f32(5, 3, 3, 4), "b": f32(5)}, torch.nn.Conv2d)


@pytest.mark.parametrize("attributes", TRANSPOSED)
def test_transposed_convolutions(attributes: str) -> None:
    check(f"ConvTranspose<{attributes}>(x, w, b)", {"w": f32(3, 5, 3, 4), "b": f32(5)}, torch.nn.ConvTranspose2d)


@pytest.mark.parametrize("attributes", POOLS)
def test_maxima(attributes: str) -> None:
    check(f"MaxPool<kernel_shape = [3, 2], {attributes}>(x)", {}, None)


@pytest.mark.parametrize("attributes", ["", "noop_with_empty_axes = 1", "keepdims = 1, noop_with_empty_axes = 1"])
def test_reductions_along_axes_that_are_named(attributes: str) -> None:
    check(f"ReduceMean<{attributes or 'keepdims = 1'}>(x, axes)", {"axes": np.array([2, -1])}, None)


def test_lengths_stay_free_in_a_captured_graph() -> None:
    module, model = module_of('Conv<auto_pad = "SAME_UPPER", strides = [2, 2]>(x, w)', {"w": f32(5, 3, 3, 3)})
    shape = dict.fromkeys((0, 2, 3), torch.export.Dim.AUTO)
    program = torch.export.export(module, (torch.ones(2, 3, 9, 8),), dynamic_shapes=(shape,))
    x = f32(3, 3, 12, 7)
    expected = ep.Session(model, providers=["reference"]).run({"x": x})["y"]
    found = program.module()(torch.from_numpy(x)).detach().numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_sizes_of_which_some_are_constant_are_numbers_in_the_text() -> None:
    proto = onnx.parser.parse_model(
        """<ir_version: 10, opset_import: ["": 22]>
        g (float[N, 3, H, W] x) => (float[N, 3, 6, 4] y) <int64[2] plane = {6, 4}> {
            both = Shape<end = 2>(x)
            sizes = Concat<axis = 0>(both, plane)
            y = Resize<mode = "linear">(x, , , sizes)
        }"""
    )
    module = ep.to_torch(proto)
    assert "size=(6, 4)" in module.source()
    assert not list(module.buffers())


@pytest.mark.parametrize("pool", ["MaxPool", "LpPool"])
def test_windows_of_more_axes_than_torch_has_compile(pool: str) -> None:
    """As JAX's, which slide over the axes of batches and channels, too."""
    shapes = "(float[1, 1, 2, 3, 4, 6] x) => (float[1, 1, 2, 3, 2, 3] y)"
    node = f"y = {pool}<kernel_shape = [1, 1, 2, 2], strides = [1, 1, 2, 2]>(x)"
    proto = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 22]> g {shapes} {{ {node} }}')
    x = f32(1, 1, 2, 3, 4, 6)
    torch._dynamo.reset()
    compiled = torch.compile(ep.to_torch(proto, verify=False), fullgraph=True, backend="eager")
    windows = np.lib.stride_tricks.sliding_window_view(x, (2, 2), (4, 5))[..., ::2, ::2, :, :]
    reduce = {
        "MaxPool": np.max,
        "LpPool": lambda w, axis: np.sqrt((w.astype(np.float64) ** 2).sum(axis)),
    }
    np.testing.assert_allclose(
        compiled(torch.from_numpy(x)), reduce[pool](windows, axis=(-2, -1)), rtol=1e-6, atol=1e-7
    )
