"""Paths of modules that other frameworks noted, and modules whose loops use layers from elsewhere."""

from __future__ import annotations

import copy
from collections import OrderedDict
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx.parser
import pytest
import torch

import entrepot as ep
from tests.judges.oracle import run_onnxruntime
from tests.op_cases.contributed import ms
from tests.op_cases.normal import normal as f32

SCAN = """<ir_version: 10, opset_import: ["": 22]>
g (float[N, T, 4] x) => (float[T, N, 4] y) {
    rows = Transpose<perm = [1, 0, 2]>(x)
    start = Constant<value = float[1, 4] {0.1, 0.2, 0.3, 0.4}>()
    first = ReduceMean<keepdims = 0>(rows, axis)
    zero = Mul(first, start)
    last, made = Scan<
        num_scan_inputs = 1,
        body = turn (float[N, 4] h, float[N, 4] row) => (float[N, 4] i, float[N, 4] o) {
        p = MatMul(row, v)
        q = MatMul(h, w)
        s = Add(p, q)
        i = Tanh(s)
        o = Identity(i)
        }
    >(zero, rows)
    twice = Add(made, made)
    y = Neg(twice)
}"""


def scan(paths: dict[str, str]) -> onnx.ModelProto:
    """The loop, whose nodes note their modules by the name of their first output."""
    proto = onnx.parser.parse_model(SCAN)
    weights = {"v": f32(4, 4), "w": f32(4, 4), "axis": np.array([0])}
    proto.graph.initializer.extend(onnx.numpy_helper.from_array(value, name) for name, value in weights.items())
    nodes = [*proto.graph.node]
    nodes += [node for each in nodes for attribute in each.attribute for node in attribute.g.node]
    for node in nodes:
        if node.output[0] in paths:
            node.metadata_props.add(key="entrepot.module", value=paths[node.output[0]])
    return proto


PLACES = {
    "below": {"last": "loop", "zero": "loop", "twice": "loop", "p": "loop.given", "q": "loop.state"},
    "elsewhere": {"last": "loop", "zero": "loop", "twice": "loop", "p": "encoder.given", "q": "decoder.state"},
    "one of them": {"last": "loop", "zero": "loop", "twice": "loop", "p": "loop.given", "q": "state"},
    "by slashes": {"last": "in", "zero": "in", "twice": "in", "p": "in/in", "q": "in/state"},
    "by slashes elsewhere": {"last": "in", "zero": "in", "twice": "in", "p": "out/in", "q": "state"},
}


@pytest.mark.parametrize("paths", PLACES.values(), ids=PLACES)
def test_loops_use_layers_wherever_they_are(paths: dict[str, str]) -> None:
    model, x = ep.load(scan(paths)), f32(3, 5, 4)
    module = ep.to_torch(model)
    expected = ep.Session(model, providers=["reference"]).run({"x": x})["y"]
    np.testing.assert_allclose(module(torch.from_numpy(x)).detach().numpy(), expected, rtol=1e-5, atol=1e-6)
    kept = {name for name, each in module.named_modules() if isinstance(each, torch.nn.Linear)}
    assert kept == {paths[each].replace("/", ".").replace("in", "in_") for each in "pq"}


@pytest.mark.parametrize(
    ("node", "module"),
    [
        ("/layer1/layer1.0/conv/Conv", "layer1.0.conv"),
        ("/features/features.0/features.0.0/Conv", "features.0.0"),
        ("/features/features.1/block/block.0/block.0.1/Conv", "features.1.block.0.1"),
        ("/0/0.0/0.0.0/Conv", "0.0.0"),
        ("/stem/Conv", "stem"),
        ("/blocks.0/blocks.0/Conv", "blocks.0.blocks.0"),
    ],
)
def test_names_of_nodes_tell_the_module(node: str, module: str) -> None:
    """As torch.onnx writes them by tracing: an item of a list has the list's name before its own."""
    proto = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["": 17]>
    g (float[1, 2, 4, 4] x) => (float[1, 3, 4, 4] y) { y = Conv<kernel_shape = [1, 1]>(x, w) }""")
    proto.graph.initializer.append(onnx.numpy_helper.from_array(f32(3, 2, 1, 1), "w"))
    proto.graph.node[0].name = node
    assert [*ep.to_torch(proto).state_dict()] == [f"{module}.weight"]


class Odd(torch.nn.Module):
    """Modules under names that are no attributes."""

    def __init__(self) -> None:
        super().__init__()
        names = "block-0", "3x3", "01", "my head", "7000"
        self.trunk = torch.nn.Sequential(OrderedDict((name, torch.nn.Linear(4, 4)) for name in names))
        self.heads = torch.nn.ModuleDict({"5x5-": torch.nn.Linear(4, 2), "none": torch.nn.Linear(4, 3)})

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        x = self.trunk(x)
        return self.heads["5x5-"](x), self.heads["none"](x)


def test_modules_keep_names_that_are_no_attributes(tmp_path: Path) -> None:
    original, x = Odd(), torch.randn(2, 4)
    model = ep.export(original, x, progress=False)
    module = ep.to_torch(model, source=tmp_path / "net")
    assert module.load_state_dict(original.state_dict()) is not None
    expected = original(x)
    compiled = torch.compile(module, fullgraph=True, backend="eager")
    for made in (module, copy.deepcopy(module), torch.export.export(module, (x,)).module(), compiled):
        torch.testing.assert_close(made(x), expected)


@pytest.mark.parametrize("shape", [(1, 1), (1,), (), (1, 1, 1)])
@pytest.mark.parametrize("number", ["nan", "inf", "-0.9999999", "2"])
def test_single_numbers_of_any_rank_are_written_out(shape: tuple[int, ...], number: str) -> None:
    proto = onnx.parser.parse_model(
        """<ir_version: 10, opset_import: ["": 22]>
        g (float[N, 3] x, int64[2] to) => (float[N, 3] y, float[2, 3] z) {
            y = Max(c, x)
            z = Expand(c, to)
        }"""
    )
    constant = np.full(shape, float(number), np.float32)
    proto.graph.initializer.append(onnx.numpy_helper.from_array(constant, "c"))
    proto.graph.output[1].type.tensor_type.shape.Clear()
    model, feeds = ep.load(proto), {"x": f32(4, 3), "to": np.array([2, 3])}
    got = ep.to_torch(model)(*map(torch.from_numpy, feeds.values()))
    expected = ep.Session(model, providers=["reference"]).run(feeds)
    for found, wanted in zip(got, expected.values(), strict=True):
        np.testing.assert_array_equal(found.numpy(), wanted)


ATTENTION = """<ir_version: 8, opset_import: ["": 17]>
g (float[N, 4] x) => (float[N, 4] y) {
    [n1] p = MatMul(x, v)
    [n2] q = Add(p, b)
    [n3] y = Gemm<transB = 1>(q, w, c)
}"""
"""As TorchScript writes an attention: the first matrix is transposed and has no name, the second one has."""


@pytest.mark.parametrize("named", ["outer.attention.out.weight", "outer.attention.first.out.weight"])
def test_a_matrix_without_a_name_leaves_room_for_layers_with_one(named: str) -> None:
    proto, x = onnx.parser.parse_model(ATTENTION), f32(3, 4)
    for node in proto.graph.node:
        node.name = f"/outer/attention/{node.op_type}"
        node.input[:] = [{"v": "onnx::MatMul_5", "w": named}.get(name, name) for name in node.input]
    weights = {"onnx::MatMul_5": f32(4, 4), "b": f32(4), named: f32(4, 4, of="w"), "c": f32(4, of="c")}
    proto.graph.initializer.extend(onnx.numpy_helper.from_array(value, name) for name, value in weights.items())
    module = ep.to_torch(ep.load(proto))
    expected = ep.Session(proto, providers=["reference"]).run({"x": x})["y"]
    torch.testing.assert_close(module(torch.from_numpy(x)), torch.from_numpy(expected), rtol=1e-4, atol=1e-4)
    assert named in module.state_dict()


def test_what_a_node_is_spelled_out_as_is_where_the_node_is() -> None:
    rows, steps = np.arange(5 * 32, dtype=np.uint8).reshape(5, 32), np.full((5, 2), 0.1, np.float32)
    case = ms("GatherBlockQuantized", np.array([[0, 4, 2]]), rows, steps, block_size=32)
    table = replace(case, inputs=(rows, case.inputs[0], steps), stored=(0, 2))
    proto = table.model()
    proto.graph.node[0].name = "/e/Gather_Q4"
    for at, name in ((0, "e.weight_Q4"), (1, "e.weight_scales")):
        proto.graph.initializer[at].name = name
        proto.graph.node[0].input[2 * at] = name
    (expected,) = run_onnxruntime(proto, table.feeds())
    module = ep.to_torch(ep.load(proto))
    np.testing.assert_allclose(module(torch.tensor([[0, 4, 2]])).detach(), expected, rtol=1e-6)
    assert isinstance(module.e, torch.nn.Embedding)
    assert "Gather_Q4" not in dict(module.named_modules())
