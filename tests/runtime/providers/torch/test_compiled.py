"""A part by torch's compiler: all of it but the kernels that a C++ compiler would make."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
import torch

import entrepot as ep
from entrepot.runtime.providers.torch import compiled
from entrepot.runtime.providers.torch.provider import CompiledTorchProvider


@pytest.fixture(autouse=True)
def seen(monkeypatch: pytest.MonkeyPatch) -> list[torch.fx.GraphModule]:
    """The graphs that were compiled."""
    graphs: list[torch.fx.GraphModule] = []

    def note(graph: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> torch.fx.GraphModule:
        graphs.append(graph)
        return graph

    monkeypatch.setattr(CompiledTorchProvider, "backend", staticmethod(note))
    torch._dynamo.reset()
    return graphs


def model(text: str) -> ep.Model:
    proto = onnx.parser.parse_model('<ir_version: 10, opset_import: ["": 18]>\n' + text)
    return ep.load(proto.SerializeToString())  # the memory of constants is read only, as that of a file is


def x(*shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


def same(made: ep.Model, session: ep.Session, feeds: dict[str, np.ndarray]) -> None:
    wanted = ep.Session(made, providers=["cpu"]).run(feeds)
    for name, got in session.run(feeds).items():
        assert got.dtype == wanted[name].dtype
        np.testing.assert_allclose(got, wanted[name], rtol=1e-5, atol=1e-6)


SIZED = """g (float[N, M] x) => (float[N, 1, M] y, int64[2] s, float[N, M] same)
<int64[1] axis = {1}, int64[1] last = {-1}, float[1] w = {2}> {
    s = Shape(x)  n = Gather(s, axis)  f = Cast<to = 1>(n)  a = Unsqueeze(x, axis)  m = ReduceMean(a, last)
    b = Sub(a, m)  c = Mul(b, f)  y = Mul(c, w)  same = Identity(x) }"""


def test_one_graph_for_each_choice_of_shapes(seen: list[torch.fx.GraphModule]) -> None:
    made = model(SIZED)
    session = ep.Session(made, providers=["torch:compile"])
    for _ in range(2):
        for shape in ((2, 3), (4, 3), (1, 1), (0, 3)):
            same(made, session, {"x": x(*shape)})
    assert len(seen) == 4  # and no part of any was left to Python
    assert session.providers == ("torch:compile",)
    assert "not compiled" not in str(session.plan())


def test_what_an_array_of_one_row_was_cut_from_makes_no_difference(seen: list[torch.fx.GraphModule]) -> None:
    made = model("g (float[1, M] x) => (float[M, 1] y) { t = Transpose(x)  y = Neg(t) }")
    session = ep.Session(made, providers=["torch:compile"])
    for length in (2, 3, 4):
        same(made, session, {"x": x(1, 8)[:, :length][:, -2:]})
    assert len(seen) == 1


def test_more_shapes_than_are_compiled_run_step_by_step(
    seen: list[torch.fx.GraphModule], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiled, "_MOST", 2)
    made = model(SIZED)
    session = ep.Session(made, providers=["torch:compile"])
    for rows in (1, 2, 3, 4, 1):
        same(made, session, {"x": x(rows, 3)})
    assert len(seen) == 2
    assert "compiled for the first 2 choices of shapes" in str(session.plan())


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("g (float[A, B] x) => (int64[2, N] y) { y = NonZero(x) }", "depends on the data"),
        (
            "g (float[A, B] x) => (float[A, B] y) { r = RandomNormalLike(x)  z = Sub(r, r)  y = Add(x, z) }",
            "draws other",
        ),
        ("g (float[A, B] x) => (seq(float[A, B]) y) { y = SequenceConstruct(x) }", "sequence"),
        (
            """g (float[A, B] x) => (float[A, B] y) {
            s = ReduceSum<keepdims = 0>(x)  c = Greater(s, s)
            y = If(c) <then_branch = t () => (float[A, B] p) { p = Neg(x) },
                       else_branch = e () => (float[A, B] q) { q = Abs(x) }> }""",
            "not compiled",
        ),
    ],
)
def test_the_plan_says_why_a_part_is_not_compiled(seen: list[torch.fx.GraphModule], text: str, reason: str) -> None:
    made = model(text)
    session = ep.Session(made, providers=["torch:compile"])
    got, wanted = session.run({"x": x(2, 3)})["y"], ep.Session(made).run({"x": x(2, 3)})["y"]
    np.testing.assert_array_equal(got, wanted)
    assert not seen
    assert reason in str(session.plan())
    assert "not compiled" in str(session.plan())


def test_weights_are_not_packed_and_attention_looks_at_no_element(seen: list[torch.fx.GraphModule]) -> None:
    made = model(
        """g (float[B, 2, 4, 8] q, float[B, 2, 4, 8] k) => (float[B, 2, 4, 4] y) <float[8, 4] w = {WEIGHTS}> {
        t = Transpose<perm = [0, 1, 3, 2]>(k)  s = MatMul(q, t)  p = Softmax<axis = -1>(s)  v = MatMul(k, w)
        a = MatMul(p, v)  y = Relu(a) }""".replace("WEIGHTS", ", ".join(map(str, x(8, 4).reshape(-1).tolist())))
    )
    session = ep.Session(made, providers=["torch:compile"])
    for rows in (1, 3):
        same(made, session, {"q": x(rows, 2, 4, 8), "k": x(rows, 2, 4, 8)[::-1]})
    assert len(seen) == 2
