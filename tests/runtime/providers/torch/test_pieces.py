"""Elementwise steps that go through memory together."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
import torch

import entrepot as ep
from entrepot.runtime.providers.torch import pieces
from tests.op_cases.normal import normal as f32

HEAD = '<ir_version: 10, opset_import: ["": 22]>\n'
LARGE = (3, 2, 250, 251)
"""More elements than one piece, and not a multiple of it."""


def model(body: str, shape: str = "N, 2, H, 251") -> onnx.ModelProto:
    sizes = f"float[{shape}]"
    constants = "<float half = {0.5}, float two = {2.0}, float[1] one = {1.0}>"
    return onnx.parser.parse_model(f"{HEAD}g ({sizes} x, {sizes} z) => ({sizes} y) {constants} {{ {body} }}")


def session(proto: onnx.ModelProto) -> ep.Session:
    return ep.Session(ep.load(proto), providers=["torch"])


def expected(proto: onnx.ModelProto, given: dict[str, np.ndarray]) -> np.ndarray:
    return ep.Session(ep.load(proto), providers=["reference"]).run(given)["y"]


CHAINS = {
    "two": ("a = Mul(x, half)  y = Relu(a)", "mul_relu("),
    "constants on either side": ("a = Sub(two, x)  b = Div(a, half)  y = Max(b, one)", "sub_div_max("),
    "two tensors": ("a = Add(x, z)  b = Tanh(a)  y = Mul(b, z)", "add_tanh_mul("),
    "a tensor that is read twice": ("a = Mul(x, x)  b = Add(a, x)  y = Mul(a, b)", "add_mul("),
    "one tensor on both sides": ("a = Mul(x, x)  y = Sqrt(a)", "mul_sqrt("),
    "clipped": ("a = Neg(x)  b = Clip(a, half, two)  y = Reciprocal(b)", "neg_clip_reciprocal("),
    "many": ("a = Abs(x)  b = Add(a, one)  c = Log(b)  d = Exp(c)  e = Floor(d)  y = Mul(e, z)", "elementwise("),
    "a power": ("a = Abs(x)  b = Pow(a, two)  y = Sub(b, z)", "abs_pow_sub("),
}

NO_CHAINS = {
    "one step": "y = Relu(x)",
    "read twice": "a = Relu(x)  b = Neg(a)  y = Softmax(b)  c = Add(a, b)",
    "other types in between": "a = Mul(x, half)  b = Cast<to = 11>(a)  y = Cast<to = 1>(b)",
    "a condition": "a = Mul(x, half)  c = Greater(a, z)  y = Where(c, x, z)",
}


@pytest.mark.parametrize("name", CHAINS)
@pytest.mark.parametrize("shape", [LARGE, (1, 2, 3, 251), (0, 2, 3, 251)], ids=["large", "small", "empty"])
def test_a_chain_is_one_step_and_computes_the_same(name: str, shape: tuple[int, ...]) -> None:
    body, kernel = CHAINS[name]
    proto, given = model(body), {"x": f32(*shape), "z": f32(*shape, of="z")}
    before = {key: value.copy() for key, value in given.items()}
    it = session(proto)
    assert kernel in it.source()
    for _ in range(2):
        np.testing.assert_allclose(it.run(given)["y"], expected(proto, given), rtol=2e-6, atol=1e-6)
    for key, value in given.items():
        np.testing.assert_array_equal(value, before[key])


@pytest.mark.parametrize("body", NO_CHAINS.values(), ids=NO_CHAINS)
def test_what_is_no_chain_is_left_alone(body: str) -> None:
    proto = model(body)
    given = {"x": f32(*LARGE), "z": f32(*LARGE, of="z")}
    assert all(f"{kernel}" not in session(proto).source() for _, kernel in CHAINS.values())
    np.testing.assert_allclose(session(proto).run(given)["y"], expected(proto, given), rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("name", ["two", "clipped", "constants on either side"])
def test_what_is_not_finite_stays_so(name: str) -> None:
    proto = model(CHAINS[name][0])
    x = np.resize(np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 1.0], np.float32), LARGE)
    given = {"x": x, "z": f32(*LARGE)}
    got, wanted = session(proto).run(given)["y"], expected(proto, given)
    np.testing.assert_array_equal(got, wanted)
    np.testing.assert_array_equal(np.signbit(got[got == 0]), np.signbit(wanted[wanted == 0]))


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (0, 2, 3, 1), (3, 2, 1, 0), (2, 3, 0, 1)], ids=str)
@pytest.mark.parametrize("both", [True, False])
def test_tensors_may_lie_in_memory_in_any_way(order: tuple[int, ...], both: bool) -> None:
    def arranged(value: np.ndarray) -> torch.Tensor:
        back = np.argsort(order)
        return torch.from_numpy(np.ascontiguousarray(value.transpose(order))).permute(*back.tolist())

    proto = model(CHAINS["two tensors"][0])
    given = {"x": f32(*LARGE), "z": f32(*LARGE, of="z")}
    placed = {"x": arranged(given["x"]), "z": arranged(given["z"]) if both else torch.from_numpy(given["z"])}
    got = session(proto).run(placed)["y"]
    np.testing.assert_allclose(got.numpy(), expected(proto, given), rtol=2e-6, atol=1e-6)


def test_symbols_that_name_other_sizes_are_no_harm() -> None:
    """Sizes are looked at in each run: a file may say that two are the same, and mean that they broadcast."""
    proto = model(CHAINS["two tensors"][0], "?, ?, ?, ?")
    given = {"x": f32(*LARGE), "z": f32(3, 1, 250, 1)}
    np.testing.assert_allclose(session(proto).run(given)["y"], expected(proto, given), rtol=2e-6, atol=1e-6)


def test_pieces_do_not_depend_on_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    proto, given = model(CHAINS["two tensors"][0]), {"x": f32(*LARGE), "z": f32(*LARGE, of="z")}
    whole = session(proto).run(given)["y"]
    monkeypatch.setattr(pieces, "PIECE", 1 << 10)
    np.testing.assert_allclose(session(proto).run(given)["y"], whole, rtol=1e-6)


def test_a_chain_in_a_branch_reads_from_outside() -> None:
    text = (
        HEAD
        + """g (bool c, float[N, 500, 600] x) => (float[N, 500, 600] y) <float half = {0.5}> {
        y = If (c) <
            then_branch = t () => (float[N, 500, 600] a) { p = Mul(x, half)  a = Relu(p) },
            else_branch = e () => (float[N, 500, 600] b) { q = Neg(x)  b = Tanh(q) }>
    }"""
    )
    proto, x = onnx.parser.parse_model(text), f32(2, 500, 600)
    it = session(proto)
    assert "mul_relu(" in it.source()
    for condition in (True, False):
        given = {"c": np.array(condition), "x": x}
        np.testing.assert_allclose(it.run(given)["y"], expected(proto, given), rtol=1e-6)
