"""Operators whose results have sizes that somebody feeds: one operator each in a graph that is captured."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch

import entrepot as ep
from entrepot.importers.torch.beside import support
from tests.op_cases.normal import normal as f32

_BOXES = np.concatenate([f32(1, 6, 2), f32(1, 6, 2) + 2], 2)
_SCORES = np.abs(f32(1, 2, 6))
_RNN = "float[5, n, 3] x, float[1, {0}, 3] w, float[1, {0}, 4] r, int32[n] lengths"
_IMAGE = f32(2, 2, 4, 5)


def _ints(*numbers: int) -> np.ndarray[Any, Any]:
    return np.array(numbers, np.int64)


Case = tuple[str, list[np.ndarray[Any, Any]], list[np.ndarray[Any, Any]]]
"""A graph, what it is given when it is captured, and what it is given then."""

CASES: dict[str, Case] = {
    "NonMaxSuppression": (
        """(float[1, n, 4] b, float[1, 2, n] s, int64[1] most) => (int64[k, 3] y)
        <float[1] overlap = {0.3}, float[1] least = {0.1}> { y = NonMaxSuppression(b, s, most, overlap, least) }""",
        [_BOXES, _SCORES, _ints(4)],
        [_BOXES, _SCORES, _ints(1)],
    ),
    "Resize to sizes": (
        """(float[n, 2, 4, 5] x, int64[4] s) => (float[a, b, c, d] y) { y = Resize<mode = "linear">(x, , , s) }""",
        [_IMAGE, _ints(2, 2, 7, 9)],
        [_IMAGE, _ints(2, 2, 3, 11)],
    ),
    "Resize by factors": (
        """(float[n, 2, 4, 5] x, float[4] s) => (float[a, b, c, d] y) { y = Resize<mode = "nearest">(x, , s) }""",
        [_IMAGE, np.float32([1, 1, 2, 1.5])],
        [_IMAGE, np.float32([1, 1, 0.5, 3])],
    ),
    "Slice": (
        "(float[n, 6] x, int64[2] a, int64[2] b) => (float[p, q] y) { y = Slice(x, a, b) }",
        [f32(5, 6), _ints(1, -5), _ints(4, 100)],
        [f32(5, 6), _ints(-2, 0), _ints(7, -3)],
    ),
    "Slice up to a size": (
        """(float[n, 6] x, int64[1] a) => (float[p, 6] y) <int64[1] zero = {0}, int64[1] two = {2}> {
            s = Shape<end = 1>(x)  m = Mul(s, two)  y = Slice(x, a, m, zero) }""",
        [f32(5, 6), _ints(1)],
        [f32(5, 6), _ints(-2)],
    ),
    "Slice backwards": (
        """(float[n, 6] x, int64[1] a, int64[1] b, int64[1] c, int64[1] d) => (float[p, q] y)
        { y = Slice(x, a, b, c, d) }""",
        [f32(5, 6), _ints(-1), _ints(-100), _ints(1), _ints(-1)],
        [f32(5, 6), _ints(0), _ints(3), _ints(0), _ints(2)],
    ),
    "Pad": (
        """(float[n, 6] x, int64[4] p) => (float[a, b] y) { y = Pad<mode = "reflect">(x, p) }""",
        [f32(5, 6), _ints(1, 0, 2, 3)],
        [f32(5, 6), _ints(0, 4, 0, 0)],
    ),
    "Expand": (
        "(float[n, 1] x, int64[3] s) => (float[a, b, c] y) { y = Expand(x, s) }",
        [f32(5, 1), _ints(2, 5, 4)],
        [f32(5, 1), _ints(3, 1, 1)],
    ),
    "Reshape": (
        "(float[n, 6] x, int64[3] s) => (float[a, b, c] y) { y = Reshape(x, s) }",
        [f32(4, 6), _ints(2, -1, 3)],
        [f32(4, 6), _ints(0, 2, 3)],
    ),
    "OneHot": (
        "(int64[n] x, int64 depth) => (float[n, k] y) <float[2] v = {0.5, 2}> { y = OneHot(x, depth, v) }",
        [_ints(0, 2, -1), np.array(4)],
        [_ints(0, 2, -1), np.array(3)],
    ),
    "LSTM": (
        f"""({_RNN.format(16)}) => (float[5, 1, n, 4] y, float[1, n, 4] h) {{
            y, h = LSTM<hidden_size = 4>(x, w, r, , lengths) }}""",
        [f32(5, 2, 3), f32(1, 16, 3), f32(1, 16, 4), np.int32([5, 3])],
        [f32(5, 2, 3), f32(1, 16, 3), f32(1, 16, 4), np.int32([2, 4])],
    ),
    "GRU, its state alone": (
        f"({_RNN.format(12)}) => (float[1, n, 4] h) {{ y, h = GRU<hidden_size = 4>(x, w, r, , lengths) }}",
        [f32(5, 2, 3), f32(1, 12, 3), f32(1, 12, 4), np.int32([5, 3])],
        [f32(5, 2, 3), f32(1, 12, 3), f32(1, 12, 4), np.int32([1, 5])],
    ),
    "ReduceSum": (
        "(float[n, 6] x, int64[1] a) => (float[p, q] y) { y = ReduceSum(x, a) }",
        [f32(5, 6), _ints(1)],
        [f32(5, 6), _ints(0)],
    ),
    "CumSum": (
        "(float[n, 6] x, int64 a) => (float[n, 6] y) { y = CumSum(x, a) }",
        [f32(5, 6), np.array(1)],
        [f32(5, 6), np.array(0)],
    ),
    "ReverseSequence": (
        "(float[4, n, 3] x, int64[n] lengths) => (float[4, n, 3] y) { y = ReverseSequence(x, lengths) }",
        [f32(4, 2, 3), _ints(3, 4)],
        [f32(4, 2, 3), _ints(1, 2)],
    ),
}


def _imported(name: str) -> tuple[onnx.ModelProto, Any]:
    text, sample, _ = CASES[name]
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 22]> g {text}')
    names = [value.name for value in model.graph.input]
    return model, ep.to_torch(model, sample=dict(zip(names, sample, strict=True)))


def _agree(found: Any, model: onnx.ModelProto, given: list[np.ndarray[Any, Any]]) -> None:
    names = [value.name for value in model.graph.input]
    session = onnxruntime.InferenceSession(model.SerializeToString())
    expected = session.run(None, dict(zip(names, given, strict=True)))
    results = [found] if isinstance(found, torch.Tensor) else list(found)
    for result, wanted in zip(results, expected, strict=True):
        np.testing.assert_allclose(result.detach().numpy(), wanted, rtol=1e-5, atol=1e-6)


def _tensors(given: list[np.ndarray[Any, Any]]) -> tuple[torch.Tensor, ...]:
    return tuple(torch.from_numpy(np.array(each)) for each in given)


@pytest.mark.parametrize("name", CASES)
def test_they_are_exported_with_sizes_that_stay_open(name: str) -> None:
    model, net = _imported(name)
    _, sample, other = CASES[name]
    dynamic = tuple(
        {axis: torch.export.Dim.DYNAMIC for axis, dim in enumerate(value.type.tensor_type.shape.dim) if dim.dim_param}
        for value in model.graph.input
    )
    for shapes in (None, dynamic):
        program = torch.export.export(net, _tensors(sample), dynamic_shapes=shapes, strict=False).module()
        _agree(program(*_tensors(sample)), model, sample)
        _agree(program(*_tensors(other)), model, other)


@pytest.mark.parametrize("name", CASES)
def test_they_compile_as_one_graph(name: str) -> None:
    model, net = _imported(name)
    torch._dynamo.reset()
    compiled = torch.compile(net, fullgraph=True, backend="aot_eager")
    for given in CASES[name][1:]:
        _agree(compiled(*_tensors(given)), model, given)


@pytest.mark.parametrize("name", ["Resize to sizes", "Slice", "Pad", "OneHot", "LSTM", "ReduceSum"])
def test_their_gradients_are_the_same_where_they_are_captured(name: str) -> None:
    _, net = _imported(name)
    found = []
    torch._dynamo.reset()
    for call in (net, torch.compile(net, fullgraph=True, backend="aot_eager")):
        given = [each.requires_grad_(each.is_floating_point()) for each in _tensors(CASES[name][2])]
        net.zero_grad()
        results = call(*given)
        results = [results] if isinstance(results, torch.Tensor) else results
        sum((y * torch.arange(float(y.numel())).reshape(y.shape)).sum() for y in results).backward()
        found.append([each.grad for each in (*given, *net.parameters()) if each.requires_grad])
    for plain, captured in zip(*found, strict=True):
        assert plain is not None
        torch.testing.assert_close(captured, plain)


def test_half_precision_is_the_module_s_own() -> None:
    _, net = _imported("Resize to sizes")
    image, sizes = _tensors(CASES["Resize to sizes"][1])
    half = copy.deepcopy(net).half()
    program = torch.export.export(half, (image.half(), sizes), strict=False).module()
    assert program(image.half(), sizes).dtype == half(image.half(), sizes).dtype == torch.float16


def test_results_of_an_operator_share_no_memory() -> None:
    """Torch takes it for granted, and would write over one of them."""

    def fixed(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x[:2], x, x.sum(0), x.sum(1)

    fixed.__name__ = "fixed_for_a_test"
    support.opaque([(0, (2, 3)), (0, (4, 3)), (0, (3,)), None])(fixed)
    x = torch.ones(4, 3)
    places = {
        each.untyped_storage().data_ptr() for each in torch.ops.entrepot_imported.fixed_for_a_test(x) if len(each)
    }
    assert len(places) == 3
    assert x.untyped_storage().data_ptr() not in places
