"""Weights of a few bits are unpacked once, when a session is made, as long as there is room for them."""

from __future__ import annotations

import numpy as np
import pytest

import entrepot as ep
from entrepot.runtime.planning.fold import Growth
from tests.judges.oracle import run_onnxruntime
from tests.op_cases.case import Case, f32
from tests.op_cases.contributed import ms

K, N, BLOCK = 2048, 2048, 32


def product(bits: int) -> Case:
    """A product with a matrix that takes 16 MiB once it is unpacked."""
    rng = np.random.default_rng(0)
    packed = rng.integers(0, 256, (N, K // BLOCK, BLOCK * bits // 8), np.uint8)
    scales = rng.uniform(0.1, 0.2, N * K // BLOCK).astype(np.float32)
    return ms("MatMulNBits", f32(2, K), packed, scales, K=K, N=N, block_size=BLOCK, bits=bits).storing(1, 2)


def is_right(session: ep.Session, case: Case, bits: int) -> bool:
    """Whether a session computes what onnxruntime does, as closely as sums allow."""
    found, expected = next(iter(session.run(case.feeds()).values())), run_onnxruntime(case.model(), case.feeds())[0]
    (x,) = case.feeds().values()
    return bool((np.abs(found - expected) <= K * np.finfo(np.float32).eps * 0.2 * 2**bits * np.abs(x).sum()).all())


@pytest.mark.parametrize("provider", ["cpu", "torch"])
@pytest.mark.parametrize("bits", [2, 4, 8])
def test_nothing_is_unpacked_in_a_run(bits: int, provider: str) -> None:
    case = product(bits)
    session = ep.Session(ep.load(case.model()), providers=[provider])
    assert "Cast" not in session.source()
    assert is_right(session, case, bits)


@pytest.mark.parametrize("provider", ["cpu", "torch"])
def test_what_there_is_no_room_for_is_unpacked_in_each_run(provider: str, monkeypatch: pytest.MonkeyPatch) -> None:
    case = product(4)
    monkeypatch.setattr(Growth, "MOST", 12 << 20)
    session = ep.Session(ep.load(case.model()), providers=[provider])
    assert "Cast" in session.source()
    assert is_right(session, case, 4)


def test_room_is_shared_by_all_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    one = product(4)
    monkeypatch.setattr(Growth, "MOST", 16 << 20)
    assert "Cast" not in ep.Session(ep.load(one.model()), providers=["cpu"]).source()
    model = one.model()
    second = model.graph.node.add()
    second.CopyFrom(model.graph.node[0])
    second.input[0], second.output[0] = model.graph.node[0].output[0], "second"
    model.graph.output[0].name = "second"
    model.graph.initializer.add().CopyFrom(model.graph.initializer[0])
    other = model.graph.initializer[-1]
    other.name = second.input[1] = "other"
    other.raw_data = other.raw_data[::-1]
    assert "Cast" in ep.Session(ep.load(model), providers=["cpu"]).source()
