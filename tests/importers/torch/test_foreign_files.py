"""Files that other exporters and people wrote: names that no module has, weights used in several ways, odd inputs."""

from __future__ import annotations

import copy
import functools
import pickle

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import nn

import entrepot as ep
from entrepot.importers.torch.proof import ModuleSource, prove
from entrepot.parity.doubled import Doubled
from tests.judges.oracle import run_onnxruntime
from tests.op_cases.normal import normal as f32


def model(body: str, given: str, made: str, **weights: np.ndarray) -> onnx.ModelProto:
    proto = onnx.parser.parse_model(f"""<ir_version: 9, opset_import: ["": 17]> g ({given}) => ({made}) {{ {body} }}""")
    proto.graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in weights.items())
    return proto


def chain_of_convolutions(names: list[str]) -> onnx.ModelProto:
    """Convolutions whose weights lie in modules of these names, one after another."""
    nodes = [helper.make_node("Conv", [f"v{at}", f"{name}.w"], [f"v{at + 1}"]) for at, name in enumerate(names)]
    weights = [numpy_helper.from_array(f32(3, 3, 1, 1, of=name), f"{name}.w") for name in names]
    shape = ["N", 3, 4, 4]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in ("v0", f"v{len(names)}")]
    graph = helper.make_graph(nodes, "chain", ends[:1], ends[1:], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


NAMES = {
    "attributes of a module": [
        "train",
        "forward",
        "_modules",
        "_parameters",
        "_forward_hooks",
        "training",
        "__class__",
    ],
    "keywords": ["class", "lambda", "None", "import", "self", "torch", "nn"],
    "no identifiers": ["1", "a b", "é", "x-y", "__", "日本"],
    "layers in layers": ["a.b", "a.b.c", "a.b.c.d", "a", "a.w"],
}


@pytest.mark.parametrize("names", NAMES.values(), ids=NAMES)
def test_layers_may_have_any_names(names: list[str]) -> None:
    proto, x = chain_of_convolutions(names), f32(2, 3, 4, 4)
    net = ep.to_torch(proto)
    np.testing.assert_allclose(
        net(torch.from_numpy(x)).detach(), run_onnxruntime(proto, {"v0": x})[0], rtol=1e-4, atol=1e-5
    )
    assert sum(isinstance(each, nn.Conv2d) for each in net.modules()) == len(names)
    for again in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        torch.testing.assert_close(again(torch.from_numpy(x)), net(torch.from_numpy(x)))


def test_a_matrix_is_one_parameter_however_it_is_used() -> None:
    """As a layer's, as rows to look up, and carried by a loop, as TensorFlow's loops carry what they only read."""
    body = """a = MatMul(x, w)  b = Tanh(a)  e = Gather(w, i)
        y, last = Loop(turns, going, b, w) <body = turn (int64 t, bool c, float[N, 4] h, float[4, 4] v)
            => (bool d, float[N, 4] o, float[4, 4] u) {
                d = Identity(c)  p = MatMul(h, v)  o = Tanh(p)  u = Identity(v) }>"""
    held = {"w": f32(4, 4), "turns": np.array(3), "going": np.array(True)}
    proto = model(body, "float[N, 4] x, int64[K] i", "float[N, 4] y, float[K, 4] e", **held)
    net = ep.to_torch(proto)
    assert [tuple(each.shape) for each in net.parameters()] == [(4, 4)]
    x, i = f32(2, 4), np.array([3, 0, 1])
    expected = torch.from_numpy(held["w"]).requires_grad_()
    h = torch.tanh(torch.from_numpy(x) @ expected)
    for _ in range(3):
        h = torch.tanh(h @ expected)
    (h.sum() + expected[torch.from_numpy(i)].square().sum()).backward()
    y, e = net(torch.from_numpy(x), torch.from_numpy(i))
    (y.sum() + e.square().sum()).backward()
    (weight,) = net.parameters()
    torch.testing.assert_close(weight.grad.T, expected.grad)


def test_rows_may_be_looked_up_by_numbers_that_were_floats() -> None:
    """Below 0 they count from the end, which ``nn.Embedding`` refuses."""
    proto = model("i = Cast<to = 6>(x)  y = Gather(w, i)", "float[N] x", "float[N, 3] y", w=f32(5, 3))
    net = ep.to_torch(proto)
    assert any(isinstance(each, nn.Embedding) for each in net.modules())
    x = np.array([-5.0, -1.5, -0.2, 0.0, 4.9], np.float32)
    np.testing.assert_array_equal(net(torch.from_numpy(x)).detach(), run_onnxruntime(proto, {"x": x})[0])


def test_a_model_that_takes_nothing_but_empty_inputs_is_proved_on_them() -> None:
    proto = model(
        "a = MatMul(x, w)  y = Concat<axis = 0>(a, z)", "float[0, 4] x, float[N, 4] z", "float[N, 4] y", w=f32(4, 4)
    )
    net = ep.to_torch(proto)
    assert net.report is not None
    assert net.report.ok
    assert {run.provider for run in net.report.runs} == {"cpu"}


def test_sizes_may_be_taken_apart_and_put_together_again() -> None:
    """As tf2onnx writes the padding of a transposed convolution: with it the module exports at any batch."""
    body = """n = Shape(x)  none = Sub(n, n)  a, b, c = Split<axis = 0, num_outputs = 3>(none)
        first, rest = Split<axis = 0>(two, lengths)  q = Div(first, half)  m = Max(q, b)  k = Neg(c)
        pads = Concat<axis = 0>(a, m, k, a, rest, b)  y = Pad(x, pads)"""
    proto = model(
        body, "float[N, 3, 4] x", "float[N, M, K] y",
        two=np.array([5, 2]), lengths=np.array([1, 1]), half=np.array([2]),
    )  # fmt: skip
    proto.opset_import[0].version = 18
    net, x = ep.to_torch(proto), torch.from_numpy(f32(2, 3, 4))
    assert "F.pad(" in net.source()
    expected = run_onnxruntime(proto, {"x": x.numpy()})[0]
    np.testing.assert_array_equal(net(x), expected)
    program = torch.export.export(net, (x,), dynamic_shapes=({0: torch.export.Dim("n")},))
    np.testing.assert_array_equal(program.module()(torch.cat([x, x]))[:2], expected)


UNSURE = """<ir_version: 9, opset_import: ["": 20]> g (int64[N, 64] x) => (float[N, 64] y)
        <float fine = {1e-3}, float one = {1}, int64[1] axis = {1}> {
        given = Cast<to = 1>(x)
        small = Mul(given, fine)
        near = Add(small, one)
        squares = Mul(near, near)
        first = ReduceMean(squares, axis)
        mean = ReduceMean(near, axis)
        second = Mul(mean, mean)
        variance = Sub(first, second)
        deviation = Sqrt(variance)
        centred = Sub(near, mean)
        y = Div(centred, deviation)
    }"""
"""The variance of numbers that are nearly one, as mean squares less squares of the mean, of which little is left."""


def test_a_module_that_is_as_exact_as_the_model_is_let_through(monkeypatch: pytest.MonkeyPatch) -> None:
    model = ep.load(onnx.parser.parse_model(UNSURE))
    sample = {"x": np.arange(128).reshape(2, 64) % 7}
    module = ep.to_torch(model, sample=sample, verify=False)
    exact, session = functools.partial(in_double, model), ep.Session(model)

    def nearer(_: ModuleSource, feeds: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Half as far from float64 as the model is in float32."""
        return {"y": (exact(feeds) + session.run(feeds)["y"]) / np.float32(2)}

    monkeypatch.setattr(ModuleSource, "run", nearer)
    report = prove(module, model, sample, None)
    assert report is not None
    assert report.noted

    monkeypatch.setattr(ModuleSource, "run", lambda _, feeds: {"y": exact(feeds) + np.float32(0.5)})
    with pytest.raises(ep.VerificationError, match="differ"):
        prove(module, model, sample, None)


def in_double(model: ep.Model, feeds: dict[str, np.ndarray]) -> np.ndarray:
    found = Doubled(model).run(feeds)
    assert found is not None
    array: np.ndarray = found["y"].astype(np.float32)
    return array
