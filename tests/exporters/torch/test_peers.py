"""Files of other exporters are a measure only where they are right, and in what they do in each run."""

from __future__ import annotations

import numpy as np
import onnx.parser
import onnx_ir
import pytest
import torch

from tests.export_cases.case import Built, Case
from tests.sweeps.nodes import operators, operators_of_inputs
from tests.sweeps.peers import failures, is_near


class Scaled(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x / (x.norm(dim=-1, keepdim=True) + 1e-8)


CASE = Case("scaled", "modules", lambda: Built(Scaled(), ((torch.ones(2, 3),), (torch.ones(4, 3),))))


def scaled(x: np.ndarray, small: float = 1e-8) -> np.ndarray:
    return x / (np.sqrt((x * x).sum(-1, keepdims=True)) + np.float32(small))


FILES = {
    "right": (scaled, set()),
    "without the small number": (lambda x: scaled(x, 0.0), {"zeros"}),
    "for the sample alone": (lambda x: scaled(x[:2]), {"call 1", "longer"}),
    "for a few rows": (lambda x: scaled(x[:5]), {"longer"}),
    "without NaN": (lambda x: np.nan_to_num(scaled(x)), {"no number", "ruled out"}),
    "without infinity": (lambda x: scaled(np.where(np.isinf(x), np.float32(0), x)), {"ruled out"}),
    "without large numbers": (
        lambda x: scaled(np.where(x > 50, np.float32(np.inf), x)),
        {"a hundredfold", "ten thousandfold"},
    ),
    "rounded": (lambda x: scaled(x).astype(np.float16), set()),
}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.filterwarnings("ignore:invalid value")
def test_the_runs_in_which_a_file_is_wrong_are_named(name):
    function, wrong = FILES[name]
    assert failures(CASE, lambda feeds: [function(*feeds)]) == wrong


def test_a_file_that_does_not_run_is_wrong_everywhere():
    def run(feeds):
        raise RuntimeError("no kernel")

    assert failures(CASE, run) == {
        *("call 0", "call 1", "zeros", "a hundredfold", "ten thousandfold", "no number", "ruled out", "longer")
    }


def test_axes_that_differ_alike_grow_together_and_others_apart():
    shapes = []

    class Read(torch.nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            shapes.append((*x.shape, *y.shape))
            return x.sum() + y.sum()

    calls = [(torch.rand(a, b, 3), torch.ones(b, a)) for a, b in ((2, 4), (3, 4 + 1))]
    assert not failures(Case("read", "modules", lambda: Built(Read(), calls)), lambda feeds: [sum(map(np.sum, feeds))])
    assert shapes[-2:] == [(6, 12, 3, 12, 6), (4, 12, 3, 12, 4)]


def test_results_are_near_where_shapes_agree():
    assert is_near([np.ones(3)], [np.ones(3)])
    assert is_near([np.ones(3)], [np.ones(3), np.int64(3)])  # a number in Python, which a file may leave out
    assert not is_near([np.ones(3)], [np.ones((3, 1))])
    assert not is_near([np.array([1])], [np.array([2])])


def test_what_is_computed_from_weights_is_told_apart():
    text = """<ir_version: 10, opset_import: ["": 20]>
        net (float[3] x, bool c) => (float[3] y) <float[3] w = {1, 2, 3}> {
        a = Neg(w) r = RandomNormalLike(w) b = Add(x, a) d = Exp(a)
        e = If(c)<then_branch = t () => (p) { f = Abs(w) p = Mul(f, b) }, else_branch = g () => (q) { q = Neg(w) }>
        h = Sum(b, d, e) y = Add(h, r) }"""
    model = onnx_ir.from_proto(onnx.parser.parse_model(text))
    assert operators(model) - operators_of_inputs(model) == {"Neg": 2, "Exp": 1, "Abs": 1}
