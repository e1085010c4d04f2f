"""Rows of their own lengths: exported from packed sequences, or as a file says them."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from onnx import numpy_helper
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

import entrepot as ep
from tests.judges.oracle import run_onnxruntime
from tests.op_cases.normal import normal as f32


class Reader(nn.Module):
    """Reads rows of words as far as they go."""

    def __init__(self, kind: str, **options: Any) -> None:
        super().__init__()
        self.words = nn.Embedding(20, 6)
        self.rnn = getattr(nn, kind)(6, 5, batch_first=True, **options)
        self.head = nn.Linear(self.rnn.hidden_size * (1 + self.rnn.bidirectional), 3)

    def forward(self, ids: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        packed = pack_padded_sequence(self.words(ids), lengths, batch_first=True, enforce_sorted=False)
        steps, last = self.rnn(packed)
        made, _ = pad_packed_sequence(steps, batch_first=True)
        return self.head(made), last[0] if isinstance(last, tuple) else last


def _ids(rows: int, length: int) -> Tensor:
    return torch.randint(1, 20, (rows, length), generator=torch.Generator().manual_seed(rows))


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("options", [{}, {"num_layers": 2, "bidirectional": True}], ids=str)
def test_the_layer_comes_back_with_its_names_and_gradients(kind: str, options: dict[str, Any]) -> None:
    torch.manual_seed(0)
    original, given = Reader(kind, **options).eval(), (_ids(3, 7), torch.tensor([5, 7, 2]))
    net = ep.to_torch(ep.export(original, given, verify=False))
    assert net.source().count(f"nn.{kind}(") == 1
    net.load_state_dict(original.state_dict())
    for each in (original, net):
        sum(made.square().sum() for made in each(*given)).backward()
    for (name, mine), (same, theirs) in zip(
        sorted(net.named_parameters()), sorted(original.named_parameters()), strict=True
    ):
        assert name == same
        torch.testing.assert_close(mine.grad, theirs.grad)
    for mine, theirs in zip(
        net(_ids(2, 9), torch.tensor([4, 9])), original(_ids(2, 9), torch.tensor([4, 9])), strict=True
    ):
        torch.testing.assert_close(mine, theirs)


def _file(kind: str, direction: str, *, states: int) -> onnx.ModelProto:
    """A recurrent operator that is told how long each row is."""
    gates, count = {"LSTM": 4, "GRU": 3, "RNN": 1}[kind], 2 if direction == "bidirectional" else 1
    names = ["h", "c"][:states]
    given = "".join(f", float[{count}, N, 5] {name}" for name in names)
    made = ["y", "z", "k"][: 3 if kind == "LSTM" else 2]
    results = ", ".join(
        f"float[T, {count}, N, 5] y" if name == "y" else f"float[{count}, N, 5] {name}" for name in made
    )
    more = ", linear_before_reset = 1" if kind == "GRU" else ""
    proto = onnx.parser.parse_model(
        f"""<ir_version: 9, opset_import: ["": 17]> g (float[T, N, 4] x, int32[N] lengths{given}) => ({results}) {{
            {", ".join(made)} = {kind}<hidden_size = 5, direction = "{direction}"{more}>(
                {", ".join(["x", "w", "r", "b", "lengths", *names])}) }}"""
    )
    weights = {"w": f32(count, gates * 5, 4), "r": f32(count, gates * 5, 5), "b": f32(count, gates * 10)}
    proto.graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in weights.items())
    return proto


@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("given", [False, True], ids=["zero states", "given states"])
def test_a_layer_reads_each_row_as_far_as_it_goes(kind: str, direction: str, given: bool) -> None:
    """Nothing behind its end counts, be it NaN.

    A row of no length leaves the state as it was, which is zero here: onnxruntime 1.31 forgets a given one.
    """
    states = (2 if kind == "LSTM" else 1) if given else 0
    proto, count = _file(kind, direction, states=states), 2 if direction == "bidirectional" else 1
    net = ep.to_torch(proto)
    assert any(isinstance(each, getattr(nn, kind)) for each in net.modules())
    lengths = np.array([6, 1 if given else 0, 3], np.int32)
    x = f32(6, 3, 4)
    feeds = {"x": x, "lengths": lengths, **{name: f32(count, 3, 5, of=name) for name in ["h", "c"][:states]}}
    expected = run_onnxruntime(proto, feeds)
    behind = x.copy()
    behind[np.arange(6)[:, None] >= lengths] = np.nan
    for seen in (x, behind):
        made = net(*(torch.from_numpy(each) for each in {**feeds, "x": seen}.values()))
        for mine, right in zip(made, expected, strict=True):
            np.testing.assert_allclose(mine.detach(), right, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_a_captured_graph_does_the_same_at_other_sizes(kind: str, direction: str) -> None:
    proto = _file(kind, direction, states=0)
    net = ep.to_torch(proto, verify=False)
    steps, rows = torch.export.Dim("steps"), torch.export.Dim("rows")
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's own loop operators warn of each other
        program = torch.export.export(
            net, (torch.from_numpy(f32(6, 3, 4)), torch.tensor([6, 1, 3], dtype=torch.int32)), strict=False,
            dynamic_shapes=({0: steps, 1: rows}, {0: rows}),
        )  # fmt: skip
    feeds = {"x": f32(7, 4, 4), "lengths": np.array([2, 7, 0, 5], np.int32)}
    with torch.no_grad():
        made = program.module()(*map(torch.from_numpy, feeds.values()))
    for mine, right in zip(made, run_onnxruntime(proto, feeds), strict=True):
        np.testing.assert_allclose(mine, right, rtol=1e-5, atol=1e-6)
