"""Products of 8-bit integers by constant matrices: exact however long sums are, and whatever the zero points."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest
import torch
from onnx import numpy_helper

import entrepot as ep
from entrepot.runtime.exact import exact_rows
from entrepot.runtime.providers.torch.native import quantized

TEXT = """<ir_version: 8, opset_import: ["": 17]>
g ({kind}[{left}] a, {kind}[{zeros}] za) => (int32[{right}] y) {{ y = MatMulInteger(a, b, za, zb) }}"""


def model(a: np.ndarray, b: np.ndarray, zero_a: np.ndarray, zero_b: np.ndarray) -> ep.Model:
    shapes = [", ".join(map(str, shape)) for shape in (a.shape, zero_a.shape, (*a.shape[:-1], b.shape[1]))]
    text = TEXT.format(kind=a.dtype.name, left=shapes[0], zeros=shapes[1], right=shapes[2])
    proto = onnx.parser.parse_model(text)
    proto.graph.initializer.extend([numpy_helper.from_array(b, "b"), numpy_helper.from_array(zero_b, "zb")])
    return ep.load(proto)


def drawn(dtype: type, *shape: int, ends: bool = False) -> np.ndarray:
    """Numbers of 8 bits, or only the smallest and the largest of them."""
    limits, rng = np.iinfo(dtype), np.random.default_rng(sum(shape))
    return (
        rng.choice([limits.min, limits.max], shape) if ends else rng.integers(limits.min, limits.max + 1, shape)
    ).astype(dtype)


CASES = {
    "short": ((3, 40), (40, 5), False),
    "long": ((2, 5000), (5000, 3), True),
    "one row": ((1, 1200), (1200, 70), True),
    "a stack": ((2, 3, 700), (700, 4), False),
    "large": ((33, 600), (600, 300), False),
}


@pytest.mark.parametrize("provider", ["cpu", "torch"])
@pytest.mark.parametrize(
    "kinds", [(np.uint8, np.int8), (np.uint8, np.uint8), (np.int8, np.int8)], ids=["us", "uu", "ss"]
)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_sums_are_exact(
    case: tuple[tuple[int, ...], tuple[int, int], bool], kinds: tuple[type, type], provider: str
) -> None:
    left, right, ends = case
    a, b = drawn(kinds[0], *left, ends=ends), drawn(kinds[1], *right, ends=ends)
    rows = () if len(left) > 2 else (left[0],)
    for zero_a in (np.array(3, kinds[0]), drawn(kinds[0], *rows, ends=ends).reshape(rows)):
        zero_b = drawn(kinds[1], right[1])
        session = ep.Session(model(a, b, zero_a, zero_b), providers=[provider])
        (found,) = session.run({"a": a, "za": zero_a}).values()
        down = zero_a.astype(np.int64).reshape(-1, 1) if zero_a.ndim else zero_a.astype(np.int64)
        wanted = (a.astype(np.int64) - down) @ (b.astype(np.int64) - zero_b.astype(np.int64))
        assert found.dtype == np.int32
        np.testing.assert_array_equal(found, wanted)


def test_torch_is_not_asked_for_float32_where_it_may_round_the_operands(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = drawn(np.uint8, 8, 900, ends=True), drawn(np.int8, 900, 64, ends=True)
    zero = np.array(0, np.uint8), np.array(0, np.int8)
    session = ep.Session(model(a, b, *zero), providers=["torch"])
    plain, calls = quantized.matmul_integer, list[int]()
    monkeypatch.setattr(quantized, "matmul_integer", lambda *given: (calls.append(1), plain(*given))[1])
    before = torch.get_float32_matmul_precision()
    for precision, count in (("highest", 0), ("medium", 1)):
        torch.set_float32_matmul_precision(precision)
        try:
            (found,) = session.run({"a": a, "za": zero[0]}).values()
        finally:
            torch.set_float32_matmul_precision(before)
        np.testing.assert_array_equal(found, a.astype(np.int64) @ b.astype(np.int64))
        assert len(calls) == count


@pytest.mark.parametrize("length", [1, 127, 128, 129, 256, 259, 1000])
def test_no_piece_sums_to_more_than_float32_holds(length: int) -> None:
    matrix = np.full((length, 2), 255, np.float32)
    found = exact_rows(matrix)
    assert [some.start for some in found] == [0, *(some.stop for some in found)][:-1]
    assert found[-1].stop == length
    assert all(matrix[some].sum(0).max() * 255 <= 1 << 24 for some in found)
    assert len(found) == -(-length // 256)


def test_usual_weights_are_one_piece() -> None:
    assert exact_rows(np.full((2048, 2), 32, np.float32)) == [slice(0, 2048)]
