"""Kernels that are chosen by measurement."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch

import entrepot as ep
from entrepot.runtime.node_view import InputView, NodeView
from entrepot.runtime.providers.torch import private
from entrepot.runtime.providers.torch.attention import attended
from entrepot.runtime.providers.torch.convolutions.convolution import conv_with
from entrepot.runtime.providers.torch.epilogues import Activation
from entrepot.runtime.providers.torch.measuring import chooser as measuring
from entrepot.runtime.providers.torch.measuring.choices import Choices
from entrepot.runtime.providers.torch.measuring.chooser import Chooser, Ways, measured
from entrepot.runtime.providers.torch.measuring.products import by_measurement
from tests.op_cases.normal import normal as f32


class Clock:
    """Time goes on only where a way says so."""

    def __init__(self) -> None:
        self.now = 0.0

    def perf_counter(self) -> float:
        return self.now

    def way(self, *seconds: float) -> Callable[[], object]:
        """It takes these times in turn."""
        left: Iterator[float] = iter(seconds * 1000)

        def run() -> None:
            self.now += next(left)

        return run


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(measuring, "time", made)
    return made


class Always(Chooser):
    """Takes the way of one name where there is one, and keeps what it was offered."""

    def __init__(self, name: str) -> None:
        super().__init__(Choices(None, {}))
        self.name = name
        self.offered: list[str] = []

    def fastest(self, computation: str, ways: Ways, usual: str) -> str:
        self.offered += ways
        return self.name if self.name in ways else usual


def test_the_fastest_is_taken(clock: Clock) -> None:
    ways = {"usual": clock.way(2.0), "other": clock.way(1.0), "third": clock.way(3.0)}
    assert measured(ways, "usual") == "other"


def test_what_is_hardly_faster_is_not(clock: Clock) -> None:
    assert measured({"other": clock.way(0.99), "usual": clock.way(1.0)}, "usual") == "usual"


def test_the_first_run_does_not_count_and_the_least_time_does(clock: Clock) -> None:
    ways = {"usual": clock.way(1.0), "other": clock.way(9.0, 5.0, 0.5, 5.0)}
    assert measured(ways, "usual") == "other"


def test_a_single_way_is_not_run() -> None:
    assert measured({"usual": lambda: pytest.fail("it was run")}, "usual") == "usual"


def test_each_computation_is_measured_once_on_a_machine(clock: Clock, tmp_path: Path) -> None:
    ways = {"usual": clock.way(2.0), "other": clock.way(1.0)}
    assert Chooser(Choices(tmp_path, {})).fastest("a", ways, "usual") == "other"
    slower = {"usual": clock.way(1.0), "other": clock.way(2.0)}
    again = Chooser(Choices(tmp_path, {}))
    assert again.fastest("a", slower, "usual") == "other"
    assert again.fastest("b", slower, "usual") == "usual"
    assert again.fastest("a", {"usual": clock.way(1.0), "third": clock.way(2.0)}, "usual") == "usual"  # no such way now


PRODUCTS = ("packed by oneDNN", "packed by oneDNN with more rows", "packed by MKL", "in order of memory", "as given")


@pytest.mark.parametrize("biased", [True, False])
@pytest.mark.parametrize("rows", [0, 3, 40], ids=["any rows", "few rows", "known rows"])
@pytest.mark.parametrize("name", PRODUCTS)
def test_every_way_to_a_product_is_right(name: str, rows: int, biased: bool) -> None:
    weights, bias, taken = f32(30, 20).T, f32(30) if biased else None, Always(name)
    function = by_measurement(taken, weights, bias, rows, Activation(torch.relu_))
    added = np.float32(0) if bias is None else bias
    for shape in ((40,), (3,), (), (1,), (2, 2, 10), (0,), (5, 0)):
        x = f32(*shape, 20)
        with torch.inference_mode():
            y = function(torch.from_numpy(x)).numpy()
        exact = x.astype(np.float64) @ weights + added
        bound = (np.abs(x).astype(np.float64) @ np.abs(weights) + np.abs(added)) * 22 * 2.0**-24
        assert y.shape == exact.shape
        assert (np.abs(y - np.maximum(exact, 0)) <= bound).all()
    present = {"MKL": private.linear_of_rows() is not None, "oneDNN": private.linear() is not None}
    if all(there for library, there in present.items() if library in name):
        assert name in taken.offered or (name == "packed by MKL" and not rows)


def test_a_product_that_does_not_fit_is_refused() -> None:
    function = by_measurement(Always("packed by oneDNN"), f32(20, 30), None)
    with pytest.raises(RuntimeError, match="shape"):
        function(torch.ones(4, 21))


@pytest.mark.parametrize("kernel", [1, 3])
@pytest.mark.parametrize("name", ["packed", "product", "Winograd"])
def test_every_way_to_a_convolution_is_right(name: str, kernel: int) -> None:
    weights, bias, taken = f32(6, 5, kernel, kernel), f32(6), Always(name)
    node = NodeView(
        "Conv", (InputView("x"), InputView("w", weights), InputView("b", bias)), attributes={"pads": [kernel // 2] * 4}
    )
    function = conv_with(node, None, chooser=taken)
    assert function is not None
    x = f32(2, 5, 9, 8)
    y = function(torch.from_numpy(x), None, None).numpy()
    double = torch.conv2d(*(torch.from_numpy(each).double() for each in (x, weights, bias)), padding=kernel // 2)
    np.testing.assert_allclose(y, double.numpy(), rtol=1e-4, atol=1e-4)
    assert set(taken.offered) == {"packed", "product" if kernel == 1 else "Winograd"}


@pytest.mark.parametrize("name", ["torch", "blocks"])
def test_every_way_to_attention_is_right(name: str) -> None:
    taken = Always(name)
    q, k, v, mask = f32(2, 2, 70, 16), f32(2, 2, 600, 16), f32(2, 2, 600, 16), f32(1, 1, 70, 600)
    y = attended(0.25, transposed=False, guarded=True, chooser=taken)(*map(torch.from_numpy, (q, k, v, mask))).numpy()
    scores = q.astype(np.float64) @ k.swapaxes(2, 3) * 0.25 + mask
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    np.testing.assert_allclose(y, weights / weights.sum(-1, keepdims=True) @ v, rtol=1e-4, atol=1e-4)
    assert taken.offered == ["torch", "blocks"]


NETWORK = """<ir_version: 10, opset_import: ["" : 20]>
g (float[2, 16, 20, 20] x) => (float[2, N] y) {
    c = Conv<pads = [1, 1, 1, 1]>(x, w)
    r = Relu(c)
    p = GlobalAveragePool(r)
    f = Flatten(p)
    y = MatMul(f, v)
}"""


def network() -> onnx.ModelProto:
    model = onnx.parser.parse_model(NETWORK)
    weights = {"w": f32(40, 16, 3, 3), "v": f32(40, 48)}
    model.graph.initializer.extend(onnx.numpy_helper.from_array(value, name) for name, value in weights.items())
    return model


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ENTREPOT_CACHE", str(tmp_path))
    monkeypatch.setattr("entrepot.runtime.providers.torch.provider.is_small", lambda *_: False)
    return tmp_path


def test_a_session_measures_and_the_next_one_knows(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, feeds = network(), {"x": f32(2, 16, 20, 20)}
    session = ep.Session(model, providers=["torch:autotune"])
    first = session.run(feeds)["y"]
    expected = ep.Session(model, providers=["cpu"]).run(feeds)["y"]
    np.testing.assert_allclose(first, expected, rtol=1e-4, atol=1e-4)
    assert f"kept in '{kept}" in str(session.plan())
    monkeypatch.setattr(measuring, "measured", lambda *_: pytest.fail("it was measured again"))
    again = ep.Session(model, providers=["torch:autotune"]).run(feeds)["y"]
    np.testing.assert_array_equal(again, first)


def test_declared_sizes_are_measured_when_the_session_is_made(kept: Path) -> None:
    ep.Session(network(), providers=["torch:autotune"])
    (file,) = kept.glob("choices/*.json")
    assert "convolution (2, 16, 20, 20)" in file.read_text()
    assert "product 2 x 40 x 48" in file.read_text()


def test_a_convolution_that_is_declared_wrong_fails_in_the_run() -> None:
    inputs = (InputView("x", shape=(1, 7, 9, 9)), InputView("w", f32(6, 5, 3, 3)))
    function = conv_with(NodeView("Conv", inputs), None, chooser=Always("Winograd"))
    assert function is not None
    with pytest.raises(ep.InputError, match="does not fit"):
        function(torch.ones(1, 7, 9, 9))


def test_a_session_that_can_keep_nothing_says_so(kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ENTREPOT_CACHE", str(tmp_path / "file"))
    session = ep.Session(network(), providers=["torch:autotune"])
    session.run({"x": f32(2, 16, 20, 20)})
    assert "known to this session alone" in str(session.plan())
