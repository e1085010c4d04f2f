"""What runs in one kernel on a device, on the host's memory: it is found, and computes what its steps do."""

from __future__ import annotations

import re
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
import torch

import entrepot as ep
from entrepot.runtime import providers
from entrepot.runtime.providers.torch.accelerator import Accelerator
from entrepot.runtime.providers.torch.convolutions.on_device import ConvRelu
from entrepot.runtime.providers.torch.provider import CudaProvider, TorchProvider


class FarProvider(TorchProvider):
    name = "far"
    leaves_small_parts = False

    def accelerator(self) -> Accelerator:
        return Accelerator(torch.device("cpu"))

    rules, finish = CudaProvider.rules, CudaProvider.finish


@pytest.fixture(autouse=True)
def far(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(providers._HOMES, "far", (__name__, "FarProvider"))


EPS = {"float": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}
NUMPY = {"float": np.float32, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16}


def model(text: str, kind: str, **weights: np.ndarray) -> ep.Model:
    proto = onnx.parser.parse_model('<ir_version: 10, opset_import: ["": 18]>\n' + text.replace("KIND", kind))
    proto.graph.initializer.extend(onnx.numpy_helper.from_array(each, name) for name, each in weights.items())
    return ep.load(proto)


def drawn(kind: str, *shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(NUMPY[kind])


def check(
    made: ep.Model, feeds: dict[str, np.ndarray], kind: str, terms: int, *, fused: str, how: str = "fused"
) -> np.ndarray:
    """The result is what the cpu provider computes, up to roundings of so many terms below one."""
    session = ep.Session(made, providers=["far"])
    got = session.run(feeds)["y"]
    wanted = ep.Session(made).run(feeds)["y"]
    assert got.dtype == wanted.dtype
    np.testing.assert_allclose(got.astype(float), wanted.astype(float), rtol=0, atol=2 * terms * EPS[kind])
    assert how in {row.op_type: row.how for row in session.plan().placements}[fused]
    return got


@pytest.mark.parametrize("kind", EPS)
@pytest.mark.parametrize(
    "rest",
    ["y = Relu(c)", "s = Add(c, z)  y = Relu(s)", "s = Add(z, c)  y = Relu(s)"],
    ids=["relu", "sum", "other sum"],
)
@pytest.mark.parametrize("attributes", ["", "<pads = [1, 1, 1, 1], strides = [2, 2]>", "<pads = [0, 1, 2, 1]>"])
def test_a_convolution_with_what_follows_it(kind: str, rest: str, attributes: str) -> None:
    w = drawn(kind, 4, 3, 3, 3, seed=1)
    size = {"": (4, 5), "<pads = [1, 1, 1, 1], strides = [2, 2]>": (3, 4), "<pads = [0, 1, 2, 1]>": (6, 7)}[attributes]
    shape = f"KIND[2, 4, {size[0]}, {size[1]}]"
    text = f"g (KIND[2, 3, 6, 7] x, {shape} z) => ({shape} y) {{ c = Conv{attributes}(x, w, b)  {rest} }}"
    made = model(text, kind, w=w, b=drawn(kind, 4, seed=2))
    check(made, {"x": drawn(kind, 2, 3, 6, 7), "z": drawn(kind, 2, 4, *size, seed=3)}, kind, 29, fused="Conv")


class Cudnn:
    """Torch's two functions for one device, which note that they were called."""

    def __init__(self) -> None:
        self.called: list[str] = []
        self.has_kernels = True

    def cudnn_convolution_relu(self, x: Any, w: Any, b: Any, *window: Any) -> Any:
        self._note("alone")
        return torch.relu(torch.conv2d(x, w, b, *window))

    def cudnn_convolution_add_relu(self, x: Any, w: Any, z: Any, alpha: float, b: Any, *window: Any) -> Any:
        self._note("added")
        return torch.relu(torch.conv2d(x, w, b, *window) + alpha * z)

    def _note(self, what: str) -> None:
        self.called.append(what)
        if not self.has_kernels:
            raise RuntimeError("no engine")


def test_the_kernels_of_cudnn_run_where_they_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.version, "hip", None)
    library = Cudnn()
    x, w, b, z = (torch.tensor(drawn("float", *shape)) for shape in ((2, 3, 6, 7), (4, 3, 3, 3), (4,), (2, 4, 3, 4)))
    attributes = {"pads": (1, 1, 1, 1), "strides": (2, 2)}
    conv = ConvRelu(attributes, library, "cpu")
    plain = torch.conv2d(x, w, b, 2, 1)
    torch.testing.assert_close(conv(x, w, b), torch.relu(plain))
    torch.testing.assert_close(conv(x, w, b, z), torch.relu(plain + z))
    assert library.called == ["alone", "added"]
    torch.testing.assert_close(conv(x, w, b, z[:, :1]), torch.relu(plain + z[:, :1]))  # not of the declared shape
    assert library.called == ["alone", "added"]
    library.has_kernels = False
    for _ in range(2):
        torch.testing.assert_close(conv(x, w, b), torch.relu(plain))
    assert library.called == ["alone", "added", "alone"]
    ConvRelu({"auto_pad": "SAME_UPPER"}, library, "cpu")(x, w, b)
    ConvRelu({"pads": (0, 1, 2, 1)}, library, "cpu")(x, w, b)
    ConvRelu(attributes, library, "cuda")(x, w, b)
    assert library.called == ["alone", "added", "alone"]


@pytest.mark.parametrize("kind", EPS)
@pytest.mark.parametrize("shape", [(5,), (2, 5), (2, 3, 5), (0, 5), (2, 0, 5), (600, 5)], ids=str)
@pytest.mark.parametrize("bias", [(4,), (1, 4)], ids=str)
def test_a_product_with_its_row(kind: str, shape: tuple[int, ...], bias: tuple[int, ...]) -> None:
    sizes = ", ".join(map(str, shape))
    rank = max(len(shape), len(bias))
    result = f"KIND[{', '.join(f'D{n}' for n in range(rank))}]"
    made = model(
        f"g (KIND[{sizes}] x) => ({result} y) {{ p = MatMul(x, w)  y = Add(p, b) }}", kind,
        w=drawn(kind, 5, 4, seed=1), b=drawn(kind, *bias, seed=2),
    )  # fmt: skip
    how = "fused" if len(bias) <= len(shape) else ""  # a row of two axes makes a matrix of a vector
    got = check(made, {"x": drawn(kind, *shape)}, kind, 6, fused="MatMul", how=how)
    assert got.shape == np.broadcast_shapes((*shape[:-1], 4), bias)


SEVERAL = """g (KIND[SIZES] x) => (KIND[RESULT] y) {
    p = MatMul(x, w0)  P  r = MatMul(x, w1)  Q  f = Relu(R)  n = Neg(f)  t = MatMul(x, w2)  T
    s = Concat<axis = -1>(A, B)  y = Concat<axis = -1>(s, n) }"""


@pytest.mark.parametrize("kind", EPS)
@pytest.mark.parametrize("shape", [(5,), (2, 5), (2, 3, 5), (0, 5), (600, 5)], ids=str)
@pytest.mark.parametrize("rows", [True, False], ids=["rows", "no rows"])
def test_products_of_one_tensor(kind: str, shape: tuple[int, ...], rows: bool) -> None:
    sizes = {"SIZES": ", ".join(map(str, shape)), "RESULT": ", ".join(f"D{n}" for n in range(len(shape)))}
    with_rows = {"P": "a = Add(p, b0)", "Q": "c = Add(r, b1)", "T": "d = Add(b2, t)", "R": "c", "A": "a", "B": "d"}
    text = SEVERAL
    for old, new in {
        **sizes,
        **(with_rows if rows else {**dict.fromkeys("PQT", ""), "R": "r", "A": "p", "B": "t"}),
    }.items():
        text = re.sub(rf"\b{old}\b", new, text)
    weights = {f"w{n}": drawn(kind, 5, width, seed=n) for n, width in enumerate((4, 1, 7))}
    biases = {f"b{n}": drawn(kind, width, seed=n + 3) for n, width in enumerate((4, 1, 7))}
    made = model(text, kind, **weights, **(biases if rows else {}))
    check(made, {"x": drawn(kind, *shape)}, kind, 6, fused="MatMul", how="'p'")


@pytest.mark.parametrize(
    ("body", "together"),
    [
        ("a = MatMul(x, w)  p = MatMul(x, v)  c = Add(p, b)  y = Sum(a, c)", 1),
        ("a = MatMul(x, w)  c = MatMul(x, v)  y = Sum(a, c, x)", 2),
        ("a = MatMul(x, w)  c = MatMul(w, x)  y = Sum(a, c)", 0),
        ("a = MatMul(x, w)  c = MatMul(z, v)  y = Sum(a, c)", 0),
        ("i = MatMul(x, w)  j = MatMul(x, v)  k = MatMul(x, w1)  l = MatMul(x, w2)  m = MatMul(x, w3)"
         "  y = Sum(i, j, k, l, m)", 4),
    ],
    ids=["row of one alone", "of other readers too", "from the left", "of another tensor", "of many"],
)  # fmt: skip
def test_which_products_are_made_together(body: str, together: int) -> None:
    names = ("w", "v", "w1", "w2", "w3")
    weights = {name: drawn("float", 5, 5, seed=n) for n, name in enumerate(names)}
    made = model(f"g (float[5, 5] x, float[5, 5] z) => (float[5, 5] y) {{ {body} }}", "float", **weights,
                 b=drawn("float", 5, seed=9))  # fmt: skip
    feeds = {"x": drawn("float", 5, 5, seed=7), "z": drawn("float", 5, 5, seed=8)}
    session = ep.Session(made, providers=["far"])
    np.testing.assert_allclose(
        session.run(feeds)["y"], ep.Session(made).run(feeds)["y"], rtol=0, atol=30 * EPS["float"]
    )
    hows = [row.how for row in session.plan().placements if row.op_type == "MatMul"]
    assert sum("fused" in how for how in hows) == together, hows


MASKS = {"none": "s = MatMul(a, t)", "added": "c = MatMul(a, t)  s = Add(c, m)"}
ENDS = {"plain": "y = MatMul(p, v)", "guarded": "n = IsNaN(p)  z = Where(n, zero, p)  y = MatMul(z, v)"}
ATTENTION = """g (KIND[2, 3, 4, 8] q, KIND[2, 3, 5, 8] k, KIND[2, 3, 5, 6] v, KIND[2, 1, 4, 5] m)
=> (KIND[2, 3, 4, 6] y) {
    t = Transpose<perm = [0, 1, 3, 2]>(k)  a = Mul(q, half)  MASK  p = Softmax<axis = -1>(s)  END }"""


@pytest.mark.parametrize("kind", EPS)
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("mask", MASKS)
def test_attention_with_rows_that_see_no_key(kind: str, mask: str, end: str) -> None:
    numbers = {"half": np.array(0.5, NUMPY[kind]), "zero": np.array(0, NUMPY[kind])}
    made = model(ATTENTION.replace("MASK", MASKS[mask]).replace("END", ENDS[end]), kind, **numbers)
    shapes = {"q": (2, 3, 4, 8), "k": (2, 3, 5, 8), "v": (2, 3, 5, 6), "m": (2, 1, 4, 5)}
    feeds = {name: drawn(kind, *shape, seed=len(name)) for name, shape in shapes.items()}
    feeds["m"][0, 0, 1, 2:] = -np.inf
    feeds["m"][1, 0, 3] = -np.inf
    got = check(made, feeds, kind, 16, fused="Softmax")
    hidden = got[1, :, 3].astype(float)
    assert mask == "none" or (np.isnan(hidden).all() if end == "plain" else not hidden.any())


@pytest.mark.parametrize("kind", EPS)
def test_attention_of_numbers_that_are_not_finite(kind: str) -> None:
    """Weights that are NaN count as zero, and zero times a value that is not finite is NaN."""
    numbers = {"half": np.array(0.5, NUMPY[kind]), "zero": np.array(0, NUMPY[kind])}
    made = model(ATTENTION.replace("MASK", MASKS["added"]).replace("END", ENDS["guarded"]), kind, **numbers)
    shapes = {"q": (2, 3, 4, 8), "k": (2, 3, 5, 8), "v": (2, 3, 5, 6), "m": (2, 1, 4, 5)}
    feeds = {name: drawn(kind, *shape, seed=len(name)) for name, shape in shapes.items()}
    feeds["m"][0, 0, 2] = -np.inf
    feeds["q"][0, :, 1, 3] = np.nan
    feeds["v"][0, 0, 2, :3] = np.nan, np.inf, -np.inf
    feeds["v"][0, 1, :, :2] = np.nan, np.finfo(NUMPY[kind]).max / 4 if kind == "float16" else 1
    got = check(made, feeds, kind, 16 if kind != "float16" else 1 << 17, fused="Softmax")
    assert np.isnan(got[0, 0, 1:3, :3].astype(float)).all()
    assert not got[0, 0, 1:3, 3:].any()
    assert not got[0, 1, 1:3, 1].any()


@pytest.mark.parametrize("kind", EPS)
def test_gelu_in_narrow_types_too_whose_constants_are_rounded(kind: str) -> None:
    text = """g (KIND[N, 4] x) => (KIND[N, 4] y) {
        d = Div(x, r)  e = Erf(d)  p = Add(e, one)  h = Mul(x, p)  y = Mul(h, half) }"""
    numbers = {"r": 2**0.5, "one": 1.0, "half": 0.5}
    made = model(text, kind, **{name: np.array(number, NUMPY[kind]) for name, number in numbers.items()})
    check(made, {"x": drawn(kind, 3, 4)}, kind, 5, fused="Erf", how="with 'd', 'p', 'h', 'y'")


def test_other_types_and_constants_are_left_as_they_are() -> None:
    made = model("g (KIND[2, 5] x) => (KIND[2, 4] y) { p = MatMul(x, w)  y = Add(p, b) }", "double",
                 w=np.ones((5, 4)), b=np.ones((2, 4)))  # fmt: skip
    session = ep.Session(made, providers=["far"])
    assert all("fused" not in row.how for row in session.plan().placements)
    np.testing.assert_array_equal(session.run({"x": np.ones((2, 5))})["y"], np.full((2, 4), 6.0))
