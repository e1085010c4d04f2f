from __future__ import annotations

import numpy as np
import onnx
import pytest

import entrepot as ep
from tests.judges.graphs import assert_computes
from tests.op_cases.normal import normal as f32

HEAD = '<ir_version: 10, opset_import: ["": 22]>\n'


def conv(product: str, *, norm: str = "BatchNormalization<epsilon = 0.01>(c, s, t, m, v)", outputs: str = "") -> str:
    return f"g (float[2, 4, 7, 7] x, float[6] u) => (float[?, ?, ?, ?] y{outputs}) {{ c = {product}  y = {norm} }}"


def gemm(product: str) -> str:
    return (
        f"g (float[5, 4] x, float[6] u) => (float[?, ?] y) {{ c = {product}  y = BatchNormalization(c, s, t, m, v) }}"
    )


BATCH = "BatchNormalization(c, s, t, m, v)"

ABSORBS = {
    "a convolution": (conv("Conv(x, w, b)"), (6, 4, 3, 3)),
    "one without bias": (conv("Conv(x, w)"), (6, 4, 3, 3)),
    "one in groups": (conv("Conv<group = 2, strides = [2, 2]>(x, w, b)"), (6, 2, 3, 3)),
    "a transposed one": (conv("ConvTranspose<strides = [2, 2]>(x, w, b)"), (4, 6, 3, 3)),
    "a transposed one in groups": (conv("ConvTranspose<group = 2>(x, w)"), (4, 3, 3, 3)),
    "a product": (gemm("Gemm(x, w, b)"), (4, 6)),
    "a transposed product": (gemm("Gemm<transB = 1, alpha = 0.5, beta = 3.0>(x, w, b)"), (6, 4)),
    "a product and one number": (gemm("Gemm(x, w, one)"), (4, 6)),
    "an activation after it": (
        conv("Conv(x, w, b)", norm="Relu(n)").replace("y = R", f"n = {BATCH} y = R"),
        (6, 4, 3, 3),
    ),
}

LEAVES = {
    "a result that is read twice": (conv("Conv(x, w, b)", norm="Add(c, n)").replace("y = A", f"n = {BATCH} y = A"), 4),
    "a result that goes out": (conv("Conv(x, w, b)", outputs=", float[?, ?, ?, ?] c"), 4),
    "a bias that is fed": (conv("Conv(x, w, u)"), 4),
    "statistics that are fed": (conv("Conv(x, w, b)", norm="BatchNormalization(c, s, t, u, v)"), 4),
    "an addend of many rows": (gemm("Gemm(x, w, rows)"), 2),
    "weights that would overflow": (
        conv("Conv(d, big, b)", norm="BatchNormalization(c, huge, t, m, v)").replace("{ c", "{ d = Mul(x, small) c"),
        4,
    ),
}


def built(text: str, weight: tuple[int, ...]) -> onnx.ModelProto:
    weights = {"w": f32(*weight), **{name: f32(6, of=name) for name in "bstm"}, "v": np.abs(f32(6, of="v")) + 0.1}
    weights |= {"one": f32(1), "rows": f32(5, 6), "huge": np.full(6, 1e36, np.float32)}
    weights |= {"big": np.float32(4096) * weights["w"], "small": np.array(1 / 4096, np.float32)}
    proto = onnx.parser.parse_model(HEAD + text)
    proto.graph.initializer.extend(onnx.numpy_helper.from_array(value, name) for name, value in weights.items())
    return proto


def check(model: onnx.ModelProto, *, rank: int) -> str:
    x = f32(5, 4) if rank == 2 else f32(2, 4, 7, 7)
    given = {"x": x, "u": np.abs(f32(6)) + np.float32(0.1)}
    session = ep.Session(ep.load(model))
    assert_computes(model, given, session.run(given))
    return session.source()


@pytest.mark.parametrize(("text", "weight"), ABSORBS.values(), ids=ABSORBS)
def test_a_normalisation_goes_into_the_weights_before_it(text: str, weight: tuple[int, ...]) -> None:
    source = check(built(text, weight), rank=len(weight))
    assert "first(" not in source, source  # only a normalisation has further results


@pytest.mark.parametrize(("text", "rank"), LEAVES.values(), ids=LEAVES)
def test_what_is_not_by_constants_alone_stays(text: str, rank: int) -> None:
    source = check(built(text, (4, 6) if rank == 2 else (6, 4, 3, 3)), rank=rank)
    assert "first(" in source, source


def test_the_reference_keeps_every_node() -> None:
    text, weight = ABSORBS["a convolution"]
    seen: list[str] = []
    session = ep.Session(ep.load(built(text, weight)), providers=["reference"])
    session.run({"x": f32(2, 4, 7, 7), "u": f32(6)}, observe=lambda name, value: seen.append(name))
    assert {"c", "y"} <= set(seen)
