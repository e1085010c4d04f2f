"""Saving: the old pair or the new pair, weights written once or not at all, nothing left behind."""

from __future__ import annotations

import errno
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import onnx_ir
import onnxruntime
import pytest

import entrepot as ep
from entrepot.ir.io import atomic, weights
from entrepot.ir.io.external import MappedTensor
from tests.ir.io.models import sum_model, write

SIZE = 4000


def version(number: float, size: int = SIZE, names: tuple[str, ...] = ()) -> ep.Model:
    """A model whose two weights hold its version."""
    return ep.load(sum_model(*(np.full(size, number, np.float32) for _ in range(2)), names=names))


def value_in(path: Path) -> float:
    """The version that a saved model holds, by our reader and by onnx's."""
    tensors = [value.const_value.numpy() for value in ep.load(path).ir.graph.initializers.values()]
    theirs = [onnx.numpy_helper.to_array(tensor) for tensor in onnx.load(path).graph.initializer]
    found = {float(item) for tensor in [*tensors, *theirs] for item in set(tensor.tolist())}
    assert len(found) == 1
    return found.pop()


def names_in(folder: Path) -> set[str]:
    return set(os.listdir(folder))


def locations(path: Path) -> set[str]:
    tensors = onnx.load(path, load_external_data=False).graph.initializer
    return {entry.value for tensor in tensors for entry in tensor.external_data if entry.key == "location"}


@pytest.mark.parametrize("external_data", ["auto", None, "weights.bin"])
@pytest.mark.parametrize("size", [1, SIZE, 100_000])
def test_what_is_saved_is_what_is_loaded(tmp_path: Path, external_data: str | None, size: int) -> None:
    path = tmp_path / "net.onnx"
    model = version(3, size)
    model.save(path, external_data=external_data)
    assert ep.load(path).to_proto() == model.to_proto()
    assert value_in(path) == 3
    onnx.checker.check_model(path, full_check=True)
    expected = {"net.onnx", "weights.bin"} if external_data == "weights.bin" and size > 1 else {"net.onnx"}
    assert names_in(tmp_path) == expected


def test_onnxruntime_runs_what_is_saved(tmp_path: Path) -> None:
    for external_data in (None, "weights.bin"):
        version(2, 50_000).save(tmp_path / "net.onnx", external_data=external_data)
        session = onnxruntime.InferenceSession(tmp_path / "net.onnx", providers=["CPUExecutionProvider"])
        (result,) = session.run(None, {"x": np.ones(50_000, np.float32)})
        assert set(result.tolist()) == {5.0}


def test_saving_again_replaces_the_pair_and_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    for number in range(5):
        version(number).save(path, external_data="weights.bin")
        assert value_in(path) == number
        (location,) = locations(path)
        assert names_in(tmp_path) == {"net.onnx", location}
        assert re.fullmatch(r"weights\.([0-9a-f]{8}\.)?bin", location)
        assert (location == "weights.bin") == (number % 2 == 0)


def test_a_file_that_nobody_refers_to_is_not_replaced_by_data(tmp_path: Path) -> None:
    (tmp_path / "weights.bin").write_bytes(b"precious")
    version(1).save(tmp_path / "net.onnx", external_data="weights.bin")
    assert (tmp_path / "weights.bin").read_bytes() == b"precious"
    assert value_in(tmp_path / "net.onnx") == 1


def test_a_model_loaded_before_keeps_its_weights_when_its_files_are_replaced(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    version(1).save(path, external_data="weights.bin")
    old = ep.load(path)
    version(2).save(path, external_data="weights.bin")
    assert value_in(path) == 2
    old.save(tmp_path / "net.onnx", external_data="weights.bin")
    assert value_in(path) == 1


def weights_written(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The size of every data file written from now on."""
    written: list[int] = []
    genuine = weights.write_data

    def spy(layout: weights.Layout, file: Any) -> None:
        genuine(layout, file)
        written.append(file.tell())

    monkeypatch.setattr("entrepot.ir.io.write.write_data", spy)
    return written


@pytest.mark.parametrize("external_data", ["auto", "weights.bin"])
@pytest.mark.parametrize("name", ["net.onnx", "other.onnx"])
def test_a_changed_graph_beside_its_weights_writes_no_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, external_data: str, name: str
) -> None:
    version(1).save(tmp_path / "net.onnx", external_data="weights.bin")
    before = (tmp_path / "weights.bin").stat()
    model = ep.load(tmp_path / "net.onnx")
    model.ir.graph[0].name = "renamed"
    written = weights_written(monkeypatch)
    model.save(tmp_path / name, external_data=external_data)
    assert written == []
    after = (tmp_path / "weights.bin").stat()  # its time of access may differ
    assert (after.st_ino, after.st_mtime_ns, after.st_size) == (before.st_ino, before.st_mtime_ns, before.st_size)
    assert (tmp_path / name).stat().st_size < 1024
    assert value_in(tmp_path / name) == 1
    assert ep.load(tmp_path / name).ir.graph[0].name == "renamed"


def test_only_what_is_new_is_written_beside_weights_that_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "net.onnx"
    version(1).save(path, external_data="weights.bin")
    model = ep.load(path)
    model.ir.graph.initializers["w1"].const_value = onnx_ir.tensor(np.full(SIZE, 7, np.float32))
    written = weights_written(monkeypatch)
    monkeypatch.setattr(weights, "INLINE_LIMIT", 100)
    model.save(path)
    assert written == [SIZE * 4]
    tensors = {name: value.const_value for name, value in ep.load(path).ir.graph.initializers.items()}
    assert (tensors["w0"].numpy() == 1).all()
    assert (tensors["w1"].numpy() == 7).all()
    assert names_in(tmp_path) == {"net.onnx", "weights.bin", "net.onnx.data"}


def test_weights_past_the_limit_go_external_by_themselves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights, "INLINE_LIMIT", SIZE * 8 - 1)
    version(1).save(tmp_path / "net.onnx")
    assert names_in(tmp_path) == {"net.onnx", "net.onnx.data"}
    version(2).save(tmp_path / "net.onnx")
    assert names_in(tmp_path) == {"net.onnx", *locations(tmp_path / "net.onnx")}
    assert value_in(tmp_path / "net.onnx") == 2


def test_too_much_for_one_file_is_refused_before_anything_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "net.onnx"
    version(1).save(path)
    monkeypatch.setattr(weights, "PROTOBUF_LIMIT", 1000)
    with pytest.raises(ep.ModelFormatError, match="external_data='auto'"):
        version(2).save(path, external_data=None)
    assert value_in(path) == 1
    assert names_in(tmp_path) == {"net.onnx"}


def test_the_default_data_file_goes_when_the_model_needs_it_no_more(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    version(1).save(path, external_data="net.onnx.data")
    version(2).save(path)
    assert names_in(tmp_path) == {"net.onnx"}
    assert value_in(path) == 2


def test_a_data_file_that_another_model_uses_is_left_alone(tmp_path: Path) -> None:
    version(1).save(tmp_path / "net.onnx", external_data="weights.bin")
    ep.load(tmp_path / "net.onnx").save(tmp_path / "other.onnx")
    version(2).save(tmp_path / "net.onnx", external_data="weights.bin")
    assert value_in(tmp_path / "other.onnx") == 1
    assert value_in(tmp_path / "net.onnx") == 2
    version(3).save(tmp_path / "net.onnx", external_data="weights.bin")
    assert value_in(tmp_path / "other.onnx") == 1
    assert value_in(tmp_path / "net.onnx") == 3
    assert len(names_in(tmp_path)) == 4


def test_a_link_under_the_name_of_the_data_is_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "precious").write_bytes(b"precious")
    (tmp_path / "weights.bin").symlink_to("precious")
    version(1).save(tmp_path / "net.onnx", external_data="weights.bin")
    assert (tmp_path / "precious").read_bytes() == b"precious"
    assert value_in(tmp_path / "net.onnx") == 1


def test_tensors_shared_by_two_names_are_written_once(tmp_path: Path) -> None:
    model = version(1)
    values = list(model.ir.graph.initializers.values())
    values[1].const_value = values[0].const_value
    model.save(tmp_path / "net.onnx", external_data="weights.bin")
    assert (tmp_path / "weights.bin").stat().st_size == SIZE * 4
    (tmp_path / "copy").mkdir()
    ep.load(tmp_path / "net.onnx").save(tmp_path / "copy" / "net.onnx", external_data="weights.bin")
    assert (tmp_path / "copy" / "weights.bin").stat().st_size == SIZE * 4
    assert value_in(tmp_path / "copy" / "net.onnx") == 1


def test_large_tensors_lie_on_pages_and_small_ones_inside_the_model(tmp_path: Path) -> None:
    arrays = [np.ones(size, np.float32) for size in (5000, 300, 5000, 10)]
    source = sum_model(arrays[0])
    source.graph.initializer.extend(onnx.numpy_helper.from_array(array, f"v{i}") for i, array in enumerate(arrays))
    model = ep.load(source)
    model.save(tmp_path / "net.onnx", external_data="weights.bin")
    tensors = {name: value.const_value for name, value in ep.load(tmp_path / "net.onnx").ir.graph.initializers.items()}
    assert [name for name, tensor in tensors.items() if not isinstance(tensor, MappedTensor)] == ["v3"]
    for tensor in tensors.values():
        if isinstance(tensor, MappedTensor):
            assert tensor.offset % (4096 if tensor.nbytes >= 4096 else 64) == 0
    assert ep.load(tmp_path / "net.onnx").to_proto() == model.to_proto()


def test_torch_tensors_are_streamed_and_bfloat16_survives(tmp_path: Path) -> None:
    import torch
    from onnx_ir.tensor_adapters import TorchTensor

    model = version(1, 40_000)
    values = list(model.ir.graph.initializers.values())
    for value in values:
        value.const_value = TorchTensor(torch.full((40_000,), 2.5, dtype=torch.bfloat16)[::1])
    for external_data in (None, "weights.bin"):
        model.save(tmp_path / "net.onnx", external_data=external_data)
        tensor = ep.load(tmp_path / "net.onnx").ir.graph.initializers["w0"].const_value
        assert tensor.dtype == onnx_ir.DataType.BFLOAT16
        assert (tensor.numpy() == 2.5).all()


def test_arrays_that_do_not_lie_in_order_are_written_in_order(tmp_path: Path) -> None:
    array = np.arange(40_000, dtype=np.float32).reshape(200, 200)
    model = version(1)
    model.ir.graph.initializers["w0"].const_value = onnx_ir.tensor(array.T)
    for external_data in (None, "weights.bin"):
        model.save(tmp_path / "net.onnx", external_data=external_data)
        tensor = ep.load(tmp_path / "net.onnx").ir.graph.initializers["w0"].const_value
        np.testing.assert_array_equal(tensor.numpy(), array.T)


class ShortTensor(onnx_ir.Tensor):
    """A tensor that gives less than it promises."""

    def tofile(self, file: Any) -> None:
        file.write(b"short")


@pytest.mark.parametrize("external_data", [None, "weights.bin"])
def test_a_tensor_that_gives_less_than_it_promises_is_refused(tmp_path: Path, external_data: str | None) -> None:
    version(1).save(tmp_path / "net.onnx", external_data=external_data)
    before = names_in(tmp_path)
    model = version(2, 100_000)
    model.ir.graph.initializers["w0"].const_value = ShortTensor(np.ones(100_000, np.float32), name="w0")
    with pytest.raises(ep.ModelFormatError, match="5 bytes"):
        model.save(tmp_path / "net.onnx", external_data=external_data)
    assert value_in(tmp_path / "net.onnx") == 1
    assert names_in(tmp_path) == before


def test_trailing_empty_inputs_are_stripped_but_not_from_the_caller(tmp_path: Path) -> None:
    model = ep.load(trailing_model())
    before = [len(node.inputs) for node in model.ir.graph]
    model.save(tmp_path / "net.onnx")
    nodes = onnx.load(tmp_path / "net.onnx").graph.node
    assert [list(node.input) for node in nodes] == [["x", "w"], ["x"], ["", "", "x"], ["", ""]]
    assert [list(node.input) for node in nodes[2].attribute[0].g.node][1] == ["s"]
    assert [len(node.inputs) for node in model.ir.graph] == before == [3, 3, 3, 2]
    assert [len(node.inputs) for node in ep.load(tmp_path / "net.onnx").ir.graph] == [2, 1, 3, 2]


def test_absent_inputs_that_an_operator_counts_are_written_even_if_a_pass_left_them_out(tmp_path: Path) -> None:
    model = ep.load(trailing_model())
    node = list(model.ir.graph)[3]
    node.resize_inputs(1)
    model.save(tmp_path / "net.onnx")
    assert list(onnx.load(tmp_path / "net.onnx").graph.node[3].input) == ["", ""]
    normalised = next(iter(model.ir.graph))
    normalised.resize_inputs(1)  # nothing stands for what is not optional
    assert list(model.to_proto().graph.node[0].input) == ["x"]


def trailing_model() -> onnx.ModelProto:
    model = onnx.parser.parse_model("""
        <ir_version: 10, opset_import: ["": 20]>
        net (float[2, 3] x, float[3] w) => (float[2, 3] y, float[2, 3] z, float[2, 3] k)
        {
            y = LayerNormalization<axis = -1>(x, w)
            z = Clip(x)
            k = Loop<body = b (int64 i, bool p, float[2, 3] s) => (bool q, float[2, 3] t) { q = Not(p) t = Clip(s) }>
                (x, x, x)
            m = Loop<body = b2 (int64 i2, bool p2) => (bool q2, float[2, 3] u) { q2 = Not(p2) u = Identity(x) }>(x, x)
        }
    """)
    for node in model.graph.node[2:]:
        node.input[0] = node.input[1] = ""
    model.graph.node[0].input.append("")
    model.graph.node[1].input.extend(["", ""])
    model.graph.node[2].attribute[0].g.node[1].input.extend(["", ""])
    return model


@pytest.mark.parametrize("name", ["", ".", "..", "sub/w.bin", "../w.bin", "/tmp/w.bin", "net.onnx", "w\0", "a\\b"])
def test_a_data_name_that_is_no_plain_file_name_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ep.InputError, match="external_data"):
        version(1).save(tmp_path / "net.onnx", external_data=name)
    assert names_in(tmp_path) == set()


def test_a_missing_folder_is_a_typed_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="does not exist") as caught:
        version(1).save(tmp_path / "none" / "net.onnx")
    assert isinstance(caught.value, ep.EntrepotError)


def test_a_folder_under_the_name_of_the_model_is_a_typed_error(tmp_path: Path) -> None:
    (tmp_path / "net.onnx").mkdir()
    with pytest.raises(OSError, match="cannot be written") as caught:
        version(1).save(tmp_path / "net.onnx")
    assert isinstance(caught.value, ep.EntrepotError)
    assert caught.value.errno == errno.EISDIR
    assert names_in(tmp_path) == {"net.onnx"}


def test_a_folder_without_rights_is_a_typed_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(atomic.os, "open", refuse)  # not by real rights: root has them all
    with pytest.raises(OSError, match="Permission denied") as caught:
        version(1).save(tmp_path / "net.onnx")
    assert isinstance(caught.value, ep.EntrepotError)
    assert caught.value.errno == errno.EACCES


def error_of(action: Callable[[], object]) -> ep.EntrepotError | None:
    try:
        action()
    except ep.EntrepotError as error:
        return error
    return None


def fail_at(monkeypatch: pytest.MonkeyPatch, call: int, function: str) -> None:
    """Make the n-th call of a function of ``os`` fail like a full disk."""
    genuine, calls = getattr(os, function), iter(range(1000))

    def failing(*args: Any, **kwargs: Any) -> Any:
        if next(calls) == call:
            raise OSError(errno.ENOSPC, "No space left on device")
        return genuine(*args, **kwargs)

    monkeypatch.setattr(atomic.os, function, failing)


@pytest.mark.parametrize("function", ["fsync", "replace", "rename", "open"])
@pytest.mark.parametrize("call", range(5))
@pytest.mark.parametrize("external_data", [None, "weights.bin"])
def test_a_failure_at_any_step_leaves_a_whole_pair(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, function: str, call: int, external_data: str | None
) -> None:
    path = tmp_path / "net.onnx"
    version(1).save(path, external_data=external_data)
    with monkeypatch.context() as patch:
        fail_at(patch, call, function)
        error = error_of(lambda: version(2).save(path, external_data=external_data))
    if error is not None:
        assert isinstance(error, OSError)
        assert error.errno == errno.ENOSPC
        assert "No space left" in str(error)
    assert value_in(path) in (1, 2)
    assert not [name for name in names_in(tmp_path) if name.endswith(".tmp")]
    version(3).save(path, external_data=external_data)
    assert value_in(path) == 3
    assert names_in(tmp_path) == {"net.onnx", *locations(path)}


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no RLIMIT_FSIZE")
def test_a_disk_that_is_really_full_leaves_the_old_file(tmp_path: Path) -> None:
    version(1).save(tmp_path / "net.onnx")
    write(tmp_path, sum_model(np.zeros(1_000_000, np.float32)), "big.onnx")
    script = """
import resource, signal, sys
import entrepot as ep
model = ep.load("big.onnx")
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
for external_data in (None, "w.bin"):
    try:
        model.save("net.onnx", external_data=external_data)
    except ep.EntrepotError as error:
        assert isinstance(error, OSError)
        print(error)
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.count("cannot be written") == 2, done.stdout + done.stderr
    assert value_in(tmp_path / "net.onnx") == 1
    assert names_in(tmp_path) == {"net.onnx", "big.onnx"}


def test_what_a_killed_save_left_goes_with_the_next_and_nothing_else_does(tmp_path: Path) -> None:
    mine = [".net.onnx.0123abcd.tmp", "net.onnx.0123abcd.data", "weights.0123abcd.bin"]
    others = [".other.onnx.0123abcd.tmp", "other.onnx.0123abcd.data", ".net.onnx.tmp", "net.onnx.backup.data", "a.tmp"]
    for name in [*mine, *others]:
        (tmp_path / name).write_bytes(b"left")
    version(1).save(tmp_path / "net.onnx", external_data="weights.bin")
    assert names_in(tmp_path) == {"net.onnx", "weights.bin", *others}


def test_the_rights_of_the_old_file_are_kept_and_new_files_follow_the_mask(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    version(1).save(path)
    mask = os.umask(0)
    os.umask(mask)
    assert path.stat().st_mode & 0o777 == 0o666 & ~mask
    path.chmod(0o640)
    version(2).save(path)
    assert path.stat().st_mode & 0o777 == 0o640


def test_saving_from_two_processes_at_once_gives_one_of_both(tmp_path: Path) -> None:
    script = """
import sys
sys.path.insert(0, sys.argv[1])
from tests.ir.io.test_write import version
from pathlib import Path
for number in range(8):
    version(float(sys.argv[2]) + number).save(Path("net.onnx"), external_data="weights.bin")
"""
    root = str(Path(__file__).parents[3])
    children = [subprocess.Popen([sys.executable, "-c", script, root, str(n)], cwd=tmp_path) for n in (0, 100)]
    assert [child.wait(timeout=120) for child in children] == [0, 0]
    assert value_in(tmp_path / "net.onnx") in (7, 107)
    assert names_in(tmp_path) == {"net.onnx", *locations(tmp_path / "net.onnx")}


def test_killing_a_save_at_random_moments_breaks_no_pair() -> None:
    script = Path(__file__).parents[3] / "benchmarks" / "kill_during_save.py"
    command = [sys.executable, str(script), "--kills", "3", "--mib", "2"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=200)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("0 of 3 broken") == 3


def edit(change: Callable[[onnx_ir.Model], object]) -> ep.Model:
    model = version(1)
    change(model.ir)
    return model


@pytest.mark.parametrize(
    "change",
    [
        lambda model: setattr(model.graph.inputs[0], "name", None),
        lambda model: setattr(model.graph.initializers["w0"], "const_value", None),
    ],
)
def test_an_incomplete_model_is_not_written(tmp_path: Path, change: Callable[[onnx_ir.Model], object]) -> None:
    with pytest.raises(ep.ModelFormatError):
        edit(change).save(tmp_path / "net.onnx")
    assert names_in(tmp_path) == set()


def test_writing_changes_nothing_in_the_model(tmp_path: Path) -> None:
    model = version(1)
    tensor = model.ir.graph.initializers["w0"].const_value
    model.ir.graph.initializers["w0"].name = "renamed"
    model.ir.graph.initializers["renamed"].const_value = tensor
    tensor.name = "its own name"
    before = repr(model.ir)
    for external_data in (None, "weights.bin"):
        model.save(tmp_path / "net.onnx", external_data=external_data)
        assert [tensor.name for tensor in onnx.load(tmp_path / "net.onnx").graph.initializer][-2:].count("renamed") == 1
    assert repr(model.ir) == before
    assert tensor.name == "its own name"
