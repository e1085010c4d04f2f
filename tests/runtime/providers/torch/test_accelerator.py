"""Devices that are not there: what the provider asks of them, in which order, and what it does with what it gets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from torch.multiprocessing.reductions import StorageWeakRef

import entrepot as ep
from entrepot.runtime import providers
from entrepot.runtime.providers.torch import accelerator, missing
from entrepot.runtime.providers.torch.accelerator import Accelerator, Cuda, Metal
from entrepot.runtime.providers.torch.provider import CudaProvider, TorchProvider

CPU = torch.device("cpu")


def model(text: str) -> ep.Model:
    return ep.load(onnx.parser.parse_model('<ir_version: 10, opset_import: ["": 18]>\n' + text))


def f32(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


class Recorder(Accelerator):
    """A device in the host's memory: work is captured by keeping it, and what happens is noted."""

    captures = True
    happened: list[str]

    def __init__(self) -> None:
        super().__init__(CPU)
        self.happened = []

    def upload(self, tensor: torch.Tensor) -> torch.Tensor:
        self.happened.append("upload")
        return super().upload(tensor)

    def capture(self, work: Callable[[], tuple[Any, ...]]) -> tuple[Callable[[], None], tuple[Any, ...]]:
        self.happened.append("capture")
        results = work()

        def replay() -> None:
            self.happened.append("replay")
            for kept, made in zip(results, work(), strict=True):
                kept.copy_(made)

        return replay, results

    def seconds(self, work: Callable[[], Any]) -> float:
        self.happened.append("time")
        return float(self.happened.count("time"))  # what is measured first is faster

    def trim(self) -> None:
        self.happened.append("trim")


class FarProvider(TorchProvider):
    name = "far"
    leaves_small_parts = False
    device_of_test = Recorder()

    def accelerator(self) -> Accelerator:
        return self.device_of_test

    rules, finish = CudaProvider.rules, CudaProvider.finish


@pytest.fixture
def happened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setattr(FarProvider, "device_of_test", Recorder())
    monkeypatch.setitem(providers._HOMES, "far", (__name__, "FarProvider"))
    return FarProvider.device_of_test.happened


ADDED = "g (float[N, 3] x, float[3] z) => (float[N, 3] y) <float[3] w = {1, 2, 3}> { a = Mul(x, w)  y = Add(a, z) }"


def test_work_is_captured_after_two_runs_and_replayed_with_other_values(happened: list[str]) -> None:
    session = ep.Session(model(ADDED), providers=["far"])
    kept = []
    for seed in range(5):
        feeds = {"x": f32(2, 3, seed=seed), "z": f32(3, seed=seed)}
        kept.append((session.run(feeds)["y"], feeds["x"] * np.array([1, 2, 3], np.float32) + feeds["z"]))
    for got, wanted in kept:  # no run wrote to what another had handed over
        np.testing.assert_array_equal(got, wanted)
    seen = [each for each in happened if each != "upload"]
    assert seen == ["capture", "time", "time", "replay", "replay", "replay"]


def test_every_choice_of_shapes_is_captured_by_itself(happened: list[str]) -> None:
    session = ep.Session(model(ADDED), providers=["far"])
    for _ in range(4):
        for rows in (1, 2):
            feeds = {"x": f32(rows, 3), "z": f32(3)}
            expected = feeds["x"] * np.array([1, 2, 3], np.float32) + feeds["z"]
            np.testing.assert_array_equal(session.run(feeds)["y"], expected)
    assert happened.count("capture") == 2


def test_what_an_array_of_one_row_was_cut_from_makes_no_difference(happened: list[str]) -> None:
    session = ep.Session(
        model("g (float[N, M] x, float[N, K] z) => (float[N, 3] y) { y = MatMul(x, z) }"), providers=["far"]
    )
    whole = f32(1, 8)
    for length in (1, 2, 3, 4, 5):
        feeds = {"x": whole[:, :length][:, -1:], "z": f32(1, 3, seed=length)}
        np.testing.assert_array_equal(session.run(feeds)["y"], feeds["x"].T @ feeds["z"])
    assert happened.count("replay") == 3


def test_what_was_fed_is_let_go(happened: list[str]) -> None:
    session = ep.Session(model(ADDED), providers=["far"])
    z = torch.ones(3)
    for _ in range(2):
        x = torch.ones(2, 3)
        session.run({"x": x, "z": z})
        fed = StorageWeakRef(x.untyped_storage())
        del x
        assert fed.expired()


@pytest.mark.parametrize(
    ("text", "feeds", "reason"),
    [
        ("g (float[4] x) => (int64[1, N] y) { y = NonZero(x) }", {"x": f32(4)}, "depends on the data"),
        ("g (float[4] x) => (float[4] y) { y = RandomNormalLike(x) }", {"x": f32(4)}, "other numbers in each run"),
        (
            "g (float[4] x) => (float[N] y) { i = Cast<to = 7>(x)  y = ConstantOfShape(i) }",
            {"x": np.ones(4, np.float32)},
            "the host reads",
        ),
    ],
)
def test_the_plan_says_why_work_is_not_captured(
    happened: list[str], text: str, feeds: dict[str, np.ndarray], reason: str
) -> None:
    session = ep.Session(model(text), providers=["far"])
    for _ in range(4):
        session.run(feeds)
    assert "capture" not in happened
    assert reason in str(session.plan())
    assert "not captured" in str(session.plan())


SIZED = """g (float[N, 3] x) => (float[N, 3] y) <int64 first = {0}> {
    s = Shape(x)  n = Gather(s, first)  f = Cast<to = 1>(n)  y = Mul(x, f) }"""


def test_sizes_that_the_device_reads_belong_to_what_is_captured(happened: list[str]) -> None:
    session = ep.Session(model(SIZED), providers=["far"])
    happened.clear()
    for seed in range(5):
        for rows in (2, 3):
            x = f32(rows, 3, seed=seed)
            np.testing.assert_array_equal(session.run({"x": x})["y"], x * np.float32(rows))
    assert happened.count("capture") == 2
    assert happened.count("upload") == 2 * 5  # of what is fed alone
    assert "not captured" not in str(session.plan())


FUSED = """g (float[1, 2, 4, 4] x) => (float[1, 3, 4, 4] y) <float[3, 2, 1, 1] w = {1, 2, 3, 4, 5, 6}> {
    c = Conv(x, w)  y = Relu(c) }"""


def test_what_runs_in_one_kernel_is_captured_too(happened: list[str]) -> None:
    session = ep.Session(model(FUSED), providers=["far"])
    for _ in range(4):
        session.run({"x": f32(1, 2, 4, 4)})
    assert "replay" in happened
    assert "fused" in str(session.plan())


def test_work_that_is_faster_step_by_step_is_not_replayed(happened: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = iter([2.0, 1.0])
    monkeypatch.setattr(Recorder, "seconds", lambda self, work: next(seconds))
    session = ep.Session(model(ADDED), providers=["far"])
    feeds = {"x": f32(2, 3), "z": f32(3)}
    for _ in range(5):
        session.run(feeds)
    assert happened.count("capture") == 1
    assert "replay" not in happened
    assert "copies of what goes in and out take longer" in str(session.plan())


def test_work_that_cannot_be_captured_after_all_runs_step_by_step(
    happened: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: Recorder, work: Any) -> Any:
        raise RuntimeError("operation not permitted when stream is capturing\nand more")

    monkeypatch.setattr(Recorder, "capture", refuse)
    session = ep.Session(model(ADDED), providers=["far"])
    feeds = {"x": f32(2, 3), "z": f32(3)}
    for _ in range(4):
        y = session.run(feeds)["y"]
    np.testing.assert_array_equal(y, feeds["x"] * np.array([1, 2, 3], np.float32) + feeds["z"])
    assert "not captured as a graph: operation not permitted when stream is capturing\n" in str(session.plan()) + "\n"


def test_feeds_that_stay_in_their_memory_are_read_there_and_others_copied(happened: list[str]) -> None:
    session = ep.Session(model(ADDED), providers=["far"])
    scale = torch.tensor([1.0, 2.0, 3.0])
    x, z = torch.tensor(f32(2, 3)), torch.tensor(f32(3))
    for turn in range(5):
        x += turn  # in place: seen, wherever the work was captured
        moving = torch.full((3,), float(turn))
        torch.testing.assert_close(session.run({"x": x, "z": moving})["y"], x * scale + moving, rtol=0, atol=0)
    assert happened.count("capture") == 1
    other = x + 1
    for _ in range(2):  # x was steady, and is elsewhere now
        torch.testing.assert_close(session.run({"x": other, "z": z})["y"], other * scale + z, rtol=0, atol=0)
    assert happened.count("capture") == 2
    torch.testing.assert_close(session.run({"x": x, "z": z})["y"], x * scale + z, rtol=0, atol=0)
    assert happened.count("capture") == 2


def test_weights_go_there_once_and_feeds_in_each_run(happened: list[str]) -> None:
    session = ep.Session(model(ADDED), providers=["far"])
    assert happened == ["upload"]
    for _ in range(2):
        happened.clear()
        session.run({"x": f32(2, 3), "z": f32(3)})
        assert happened == ["upload"] * 2


def test_memory_that_is_kept_is_given_back(happened: list[str]) -> None:
    session = ep.Session(model(ADDED), providers=["far"])
    feeds = {"x": f32(2, 3), "z": f32(3)}
    for _ in range(4):
        session.run(feeds)
    session.trim()
    assert happened[-1] == "trim"
    before = happened.count("capture")
    session.run(feeds)
    assert happened.count("capture") == before  # the first run after it is a warm one again
    assert session.memory() == {"far": 0}


def test_the_host_says_what_its_weights_take() -> None:
    text = "g (float[N, 3] x) => (float[N, 3] y) <float[3] w = {1, 2, 3}> { y = Mul(x, w) }"
    session = ep.Session(model(text), providers=["torch"])
    assert session.memory() == {"torch": 12}
    session.trim()
    assert ep.Session(model(ADDED)).memory() == {}


class Shared:
    """An array of another library."""

    def __init__(self, array: np.ndarray) -> None:
        self._array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self._array.__dlpack_device__()


def test_arrays_of_other_libraries_come_by_dlpack(happened: list[str]) -> None:
    session = ep.Session(model(ADDED), providers=["far"])
    feeds = {"x": Shared(f32(2, 3)), "z": Shared(f32(3))}
    expected = f32(2, 3) * np.array([1, 2, 3], np.float32) + f32(3)
    y = session.run(feeds)["y"]
    np.testing.assert_array_equal(y, expected)
    assert isinstance(y, torch.Tensor)  # as what was fed lies on the device, so does the result


class Library:
    """``torch.cuda`` and ``torch.mps`` as far as they are used, which note what they are asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def Stream(self, device: Any) -> Any:  # noqa: N802
        return self._stream("copies")

    def _stream(self, name: str) -> Any:
        noted = self.asked

        class Stream:
            def wait_stream(self, other: Any) -> None:
                noted.append(f"{name} waits for {other.name}")

        made = Stream()
        made.name = name
        return made

    def current_stream(self, device: Any) -> Any:
        return self._stream("work")

    @contextmanager
    def stream(self, stream: Any) -> Iterator[None]:
        self.asked.append(f"on {stream.name}")
        yield

    def CUDAGraph(self) -> Any:  # noqa: N802
        asked = self.asked

        class Graph:
            def replay(self) -> None:
                asked.append("replay")

        return Graph()

    @contextmanager
    def graph(self, graph: Any, capture_error_mode: str) -> Iterator[None]:
        self.asked.append(f"capture {capture_error_mode}")
        yield

    def memory_allocated(self, device: Any) -> int:
        return 5

    def current_allocated_memory(self) -> int:
        return 7

    def synchronize(self, *device: Any) -> None:
        self.asked.append("synchronize")

    def empty_cache(self) -> None:
        self.asked.append("empty cache")


def test_feeds_go_to_cuda_by_pinned_memory_on_a_stream_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    library = Library()
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda self: library.asked.append("pin") or self.clone())
    monkeypatch.setattr(
        torch.Tensor, "record_stream", lambda self, stream: library.asked.append(f"kept for {stream.name}")
    )
    cuda = Cuda(CPU, library)
    x = torch.arange(3)
    there = cuda.upload(x)
    x += 1
    assert there.tolist() == [0, 1, 2]
    assert library.asked == ["pin", "on copies", "work waits for copies", "kept for work"]
    library.asked.clear()
    monkeypatch.setattr(accelerator, "_LARGEST_PINNED", 4)
    assert cuda.upload(x).data_ptr() != x.data_ptr()
    assert library.asked == []


def test_an_index_out_of_range_on_the_device_is_told_as_such() -> None:
    cuda = Cuda(CPU, Library())
    with pytest.raises(ep.ExecutionError, match="an index is out of range") as found, cuda.telling():
        raise RuntimeError("CUDA error: device-side assert triggered")
    assert "providers=['cpu']" in str(found.value)
    with pytest.raises(RuntimeError, match="out of memory"), cuda.telling():
        raise RuntimeError("CUDA error: out of memory")


def test_constants_in_another_order_keep_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda self: pytest.fail("what is pinned loses its order"))
    x = torch.arange(24.0).reshape(1, 2, 3, 4).contiguous(memory_format=torch.channels_last)
    there = Cuda(CPU, Library()).upload(x)
    assert there.is_contiguous(memory_format=torch.channels_last)
    assert torch.equal(there, x)


def test_cuda_captures_and_gives_back() -> None:
    library = Library()
    cuda = Cuda(CPU, library)
    replay, results = cuda.capture(lambda: (torch.ones(2),))
    replay()
    cuda.synchronize()
    cuda.trim()
    assert results[0].tolist() == [1, 1]
    assert cuda.in_use() == 5
    assert library.asked == ["capture thread_local", "replay", "synchronize", "empty cache"]


def test_products_on_cuda_are_exact_while_a_part_runs() -> None:
    allowed = torch.backends.cudnn.allow_tf32
    with Cuda(CPU, Library()).exactly():
        assert not torch.backends.cudnn.allow_tf32
    assert torch.backends.cudnn.allow_tf32 == allowed


def test_metal_has_memory_and_no_graphs() -> None:
    library = Library()
    metal = Metal(CPU, library)
    metal.synchronize()
    metal.trim()
    assert metal.in_use() == 7
    assert not metal.captures
    assert library.asked == ["synchronize", "empty cache"]
    with pytest.raises(NotImplementedError, match="nothing can be captured"):
        metal.capture(lambda: ())


@pytest.mark.parametrize("name", ["torch:cuda", "cuda", "torch:cuda:compile"])
@pytest.mark.parametrize(("build", "said"), [("2.13.0+cpu", "a build of torch"), ("2.13.0+cu130", "a device of CUDA")])
def test_a_device_that_is_not_there_is_an_error_that_says_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, name: str, build: str, said: str
) -> None:
    monkeypatch.setattr(missing, "version", lambda _: build)
    monkeypatch.setattr(missing, "_devices", lambda: 0)
    with pytest.raises(ep.MissingDependencyError, match=f"provider '{name}' needs {said}"):
        ep.Session(model(ADDED), providers=[name])


def test_metal_that_is_not_there_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(missing.sys, "platform", "linux")
    with pytest.raises(ep.MissingDependencyError, match="needs a Mac"):
        ep.Session(model(ADDED), providers=["torch:mps"])


@pytest.mark.parametrize(
    ("build", "devices", "platform", "said"),
    [
        ("2.13.0+cpu", 0, "linux", "for processors alone"),
        ("2.13.0+cu130", 0, "linux", "finds none"),
        ("2.13.0+cu130", 1, "linux", ""),
        ("2.13.0+rocm7", 0, "linux", ""),
        ("2.13.0", 1, "darwin", "for processors alone"),
    ],
)
def test_what_is_missing_for_cuda(
    monkeypatch: pytest.MonkeyPatch, build: str, devices: int, platform: str, said: str
) -> None:
    monkeypatch.setattr(missing, "version", lambda _: build)
    monkeypatch.setattr(missing, "_devices", lambda: devices)
    monkeypatch.setattr(missing.sys, "platform", platform)
    reason = missing.for_cuda()
    assert said in reason
    assert bool(reason) == bool(said)


@pytest.mark.parametrize(("status", "count"), [(0, 3), (100, 0)])
def test_the_driver_is_asked_for_devices(monkeypatch: pytest.MonkeyPatch, status: int, count: int) -> None:
    class Driver:
        def cuInit(self, flags: int) -> int:  # noqa: N802
            return status

        def cuDeviceGetCount(self, address: Any) -> int:  # noqa: N802
            address._obj.value = 3
            return 0

    monkeypatch.setattr(missing.ctypes, "CDLL", lambda name: Driver())
    assert missing._devices() == count


def test_a_provider_whose_device_torch_cannot_use_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ep.MissingDependencyError, match="it finds none"):
        CudaProvider.accelerator(object.__new__(CudaProvider))
