"""External data: only what lies where it may lie is opened, and what is opened is mapped and checked."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import TensorProto, helper

import entrepot as ep
from entrepot.ir.io.external import MappedTensor
from tests.ir.io.models import external_model, external_tensor, sum_model, write

DATA = np.arange(8, dtype=np.float32)

posix_only = pytest.mark.skipif(sys.platform == "win32", reason="links and FIFOs need POSIX")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    inside = tmp_path / "model"
    inside.mkdir()
    (inside / "w.bin").write_bytes(DATA.tobytes())
    (tmp_path / "secret.bin").write_bytes(DATA.tobytes())
    return inside


def load_at(folder: Path, location: str, **entries: str) -> ep.Model:
    return ep.load(write(folder, external_model(external_tensor("w", [4], location=location, **entries))))


def tensor_of(model: ep.Model, name: str = "w") -> MappedTensor:
    tensor = model.ir.graph.initializers[name].const_value
    assert isinstance(tensor, MappedTensor)
    return tensor


@pytest.mark.parametrize(
    ("entries", "start"), [({}, 0), ({"offset": "16"}, 4), ({"offset": "8", "length": "16"}, 2), ({"length": "16"}, 0)]
)
def test_a_tensor_is_mapped_at_its_offset(folder: Path, entries: dict[str, str], start: int) -> None:
    tensor = tensor_of(load_at(folder, "w.bin", **entries))
    np.testing.assert_array_equal(tensor.numpy(), DATA[start : start + 4])
    assert tensor.tobytes() == DATA[start : start + 4].tobytes()
    assert not tensor.numpy().flags.writeable
    assert not tensor.numpy().flags.owndata


def test_one_file_is_mapped_once_for_all_its_tensors(folder: Path) -> None:
    names = ("a", "b")
    source = external_model(*(external_tensor(name, [4], location="w.bin") for name in names))
    model = ep.load(write(folder, source))
    assert tensor_of(model, "a").file is tensor_of(model, "b").file


@pytest.mark.parametrize("location", ["sub/w.bin", "./w.bin", "sub/./w.bin"])
def test_folders_inside_are_allowed(folder: Path, location: str) -> None:
    (folder / "sub").mkdir()
    (folder / "sub" / "w.bin").write_bytes(DATA.tobytes())
    np.testing.assert_array_equal(tensor_of(load_at(folder, location)).numpy(), DATA[:4])


@pytest.mark.parametrize(
    ("location", "reason"),
    [
        ("", "is empty"),
        ("../secret.bin", "'..'"),
        ("sub/../../secret.bin", "'..'"),
        ("sub/../w.bin", "'..'"),
        ("..\\secret.bin", "'..'"),
        ("w.bin\0.txt", "NUL"),
        ("/etc/passwd", "not relative"),
        ("\\\\server\\share\\w.bin", "not relative"),
        ("C:\\w.bin", "not relative"),
        ("C:w.bin", "not relative"),
        ("none.bin", "No such file"),
        (".", "not a regular file"),
        ("x" * 5000, "cannot be read"),
    ],
)
@pytest.mark.parametrize("trust", ["untrusted", "trusted"])
def test_a_bad_location_is_refused_with_the_tensor_named(folder: Path, location: str, reason: str, trust: str) -> None:
    path = write(folder, external_model(external_tensor("w", [4], location=location)))
    with pytest.raises(ep.ModelFormatError, match="value 'w'") as caught:
        ep.load(path, trust=trust)  # type: ignore[arg-type]
    assert reason in str(caught.value)


def test_a_location_that_is_missing_is_refused(folder: Path) -> None:
    with pytest.raises(ep.ModelFormatError, match="is empty"):
        ep.load(write(folder, external_model(external_tensor("w", [4]))))


@pytest.mark.parametrize(
    ("entries", "reason"),
    [
        ({"offset": "-4"}, "not an offset"),
        ({"offset": "+4"}, "not an offset"),
        ({"offset": "0x10"}, "not an offset"),
        ({"offset": " 4"}, "not an offset"),
        ({"offset": "1_0"}, "not an offset"),
        ({"offset": "٤"}, "not an offset"),
        ({"offset": "9" * 40}, "not an offset"),
        ({"offset": "4.0"}, "not an offset"),
        ({"length": ""}, "not an offset"),
        ({"offset": str(2**62)}, "outside"),
        ({"offset": "20"}, "outside"),
        ({"length": "15"}, "need 16"),
        ({"length": str(2**62)}, "need 16"),
        ({"checksum": "0" * 40}, "checksum"),
    ],
)
def test_numbers_and_checksums_are_not_believed(folder: Path, entries: dict[str, str], reason: str) -> None:
    with pytest.raises(ep.ModelFormatError, match=reason):
        load_at(folder, "w.bin", **entries)


def test_a_right_checksum_is_accepted_and_kept(folder: Path) -> None:
    checksum = hashlib.sha1(DATA.tobytes()).hexdigest()
    model = load_at(folder, "w.bin", checksum=checksum)
    model.save(folder / "copy.onnx")
    saved = onnx.load(folder / "copy.onnx", load_external_data=False).graph.initializer[0]
    assert {entry.key: entry.value for entry in saved.external_data}["checksum"] == checksum


def test_a_key_given_twice_is_refused(folder: Path) -> None:
    tensor = external_tensor("w", [4], location="w.bin")
    tensor.external_data.add(key="location", value="../secret.bin")
    with pytest.raises(ep.ModelFormatError, match="twice"):
        ep.load(write(folder, external_model(tensor)))


def test_dims_beyond_the_file_are_refused_before_anything_is_allocated(folder: Path) -> None:
    with pytest.raises(ep.ModelFormatError, match="outside"):
        ep.load(write(folder, external_model(external_tensor("w", [2**35], location="w.bin"))))
    with pytest.raises(ep.ResourceLimitError, match="tensor_bytes"):
        ep.load(write(folder, external_model(external_tensor("w", [2**60, 2**60], location="w.bin"))))


def test_strings_cannot_be_external(folder: Path) -> None:
    tensor = external_tensor("w", [4], location="w.bin")
    tensor.data_type = TensorProto.STRING
    with pytest.raises(ep.ModelFormatError, match="outside string_data"):
        ep.load(write(folder, external_model(tensor)))


def test_an_empty_tensor_may_lie_in_an_empty_file(folder: Path) -> None:
    (folder / "empty.bin").write_bytes(b"")
    model = ep.load(write(folder, external_model(external_tensor("w", [0, 3], location="empty.bin"))))
    assert tensor_of(model).numpy().shape == (0, 3)


def test_a_model_without_a_file_has_no_external_data(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    source = external_model(external_tensor("w", [4], location="w.bin"))
    for form in (source, source.SerializeToString()):
        with pytest.raises(ep.ModelFormatError, match="from its path"):
            ep.load(form)


def test_a_bare_file_name_is_held_to_the_same_rules(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    write(folder, external_model(external_tensor("w", [4], location="w.bin")), "good.onnx")
    write(folder, external_model(external_tensor("w", [4], location="../secret.bin")), "bad.onnx")
    model = ep.load("good.onnx")
    monkeypatch.chdir("/")
    np.testing.assert_array_equal(tensor_of(model).numpy(), DATA[:4])
    monkeypatch.chdir(folder)
    with pytest.raises(ep.ModelFormatError, match=r"'\.\.'"):
        ep.load("bad.onnx")


def places(tensor: onnx.TensorProto) -> Iterator[onnx.ModelProto]:
    """The tensor in an attribute, in a subgraph and in the body of a function."""
    constant = helper.make_node("Constant", [], ["k"], value=tensor)
    add = helper.make_node("Add", ["x", "k"], ["y"])
    model = sum_model(np.zeros(4, np.float32))
    del model.graph.initializer[:], model.graph.node[:]
    model.graph.node.extend([constant, add])
    yield model
    text = '<ir_version: 10, opset_import: ["": 20]> g (bool c, float[4] x) => (float[4] y) { y = If(c) <then_branch ='
    text += " t () => (float[4] p) { p = Add(x, w) }, else_branch = e () => (float[4] q) { q = Add(x, w) }> }"
    model = onnx.parser.parse_model(text)
    for attribute in model.graph.node[0].attribute:
        attribute.g.initializer.append(tensor)
    yield model
    text = '<ir_version: 10, opset_import: ["": 20, "f": 1]> g (float[4] x) => (float[4] y) { y = f.F(x) }'
    model = onnx.parser.parse_model(text + '<domain: "f", opset_import: ["": 20]> F (x) => (y) { y = Relu(x) }')
    del model.functions[0].node[:]
    model.functions[0].node.extend([constant, add])
    yield model


@pytest.mark.parametrize("place", [0, 1, 2])
def test_tensors_in_attributes_subgraphs_and_functions_are_held_to_the_same_rules(folder: Path, place: int) -> None:
    good, bad = (
        list(places(external_tensor("w", [4], location=location)))[place] for location in ("w.bin", "../secret.bin")
    )
    path = write(folder, good)
    model = ep.load(path)
    inline = model.to_proto()
    assert b"w.bin" not in inline.SerializeToString()
    assert DATA[:4].tobytes() in inline.SerializeToString()
    model.save(folder / "copy.onnx")
    assert b"w.bin" in (folder / "copy.onnx").read_bytes()
    assert ep.load(folder / "copy.onnx").to_proto() == inline
    with pytest.raises(ep.ModelFormatError, match=r"'\.\.'"):
        ep.load(write(folder, bad))


@posix_only
def test_a_link_that_stays_inside_is_followed(folder: Path) -> None:
    (folder / "link.bin").symlink_to("w.bin")
    np.testing.assert_array_equal(tensor_of(load_at(folder, "link.bin")).numpy(), DATA[:4])


@posix_only
@pytest.mark.parametrize("kind", ["file", "folder", "chain"])
def test_a_link_that_leads_out_is_refused_unless_trusted(folder: Path, kind: str) -> None:
    location = "link.bin"
    if kind == "folder":
        (folder / "sub").symlink_to("..")
        location = "sub/secret.bin"
    elif kind == "chain":
        (folder / "link.bin").symlink_to("second.bin")
        (folder / "second.bin").symlink_to("../secret.bin")
    else:
        (folder / "link.bin").symlink_to(folder.parent / "secret.bin")
    path = write(folder, external_model(external_tensor("w", [4], location=location)))
    with pytest.raises(ep.ModelFormatError, match="leads out of the folder"):
        ep.load(path)
    np.testing.assert_array_equal(tensor_of(ep.load(path, trust="trusted")).numpy(), DATA[:4])


@posix_only
def test_a_loop_of_links_is_refused(folder: Path) -> None:
    (folder / "link.bin").symlink_to("link.bin")
    with pytest.raises(ep.ModelFormatError, match="cannot be read"):
        load_at(folder, "link.bin")


def hub_cache(root: Path) -> Path:
    """The layout of a Hugging Face cache; returns the folder of the snapshot."""
    snapshot = root / "models--x--y" / "snapshots" / "abc" / "onnx"
    blobs = root / "models--x--y" / "blobs"
    snapshot.mkdir(parents=True)
    blobs.mkdir()
    (blobs / "0123").write_bytes(DATA.tobytes())
    (snapshot / "w.bin").symlink_to("../../../blobs/0123")
    (blobs / "4567").write_bytes(external_model(external_tensor("w", [4], location="w.bin")).SerializeToString())
    (snapshot / "net.onnx").symlink_to("../../../blobs/4567")
    return snapshot


@posix_only
def test_the_links_of_a_hugging_face_cache_are_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot = hub_cache(tmp_path)
    np.testing.assert_array_equal(tensor_of(ep.load(snapshot / "net.onnx")).numpy(), DATA[:4])
    monkeypatch.chdir(snapshot)
    np.testing.assert_array_equal(tensor_of(ep.load("net.onnx")).numpy(), DATA[:4])


@posix_only
@pytest.mark.parametrize("trick", ["out of the cache", "to another model", "blobs elsewhere", "blob is a link"])
def test_a_cache_that_is_none_opens_nothing_outside(tmp_path: Path, trick: str) -> None:
    snapshot = hub_cache(tmp_path / "hub")
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "0123").write_bytes(DATA.tobytes())
    (tmp_path / "hub" / "other").write_bytes(DATA.tobytes())
    blobs = tmp_path / "hub" / "models--x--y" / "blobs"
    if trick in ("out of the cache", "to another model"):
        (snapshot / "w.bin").unlink()
        target = secret / "0123" if trick == "out of the cache" else "../../../../other"
        (snapshot / "w.bin").symlink_to(target)
    elif trick == "blobs elsewhere":
        model = (blobs / "4567").read_bytes()
        for blob in blobs.iterdir():
            blob.unlink()
        blobs.rmdir()
        (secret / "4567").write_bytes(model)
        blobs.symlink_to(secret)
    else:
        (blobs / "0123").unlink()
        (blobs / "0123").symlink_to(secret / "0123")
    with pytest.raises(ep.ModelFormatError, match="leads out of the folder"):
        ep.load(snapshot / "net.onnx")


@posix_only
@pytest.mark.parametrize("trust", ["untrusted", "trusted"])
@pytest.mark.timeout(20)
def test_a_fifo_or_device_neither_hangs_nor_is_read(folder: Path, trust: str) -> None:
    os.mkfifo(folder / "fifo.bin")
    path = write(folder, external_model(external_tensor("w", [4], location="fifo.bin")))
    with pytest.raises(ep.ModelFormatError, match="not a regular file"):
        ep.load(path, trust=trust)  # type: ignore[arg-type]
    (folder / "zero.bin").symlink_to("/dev/zero")
    path = write(folder, external_model(external_tensor("w", [4], location="zero.bin")))
    with pytest.raises(ep.ModelFormatError, match=r"leads out|not a regular file"):
        ep.load(path, trust=trust)  # type: ignore[arg-type]


@posix_only
def test_hard_links_are_allowed(folder: Path) -> None:
    os.link(folder / "w.bin", folder / "hard.bin")
    np.testing.assert_array_equal(tensor_of(load_at(folder, "hard.bin")).numpy(), DATA[:4])


def test_a_file_replaced_after_loading_does_not_change_the_weights(folder: Path) -> None:
    model = load_at(folder, "w.bin")
    (folder / "new.bin").write_bytes(bytes(32))
    os.replace(folder / "new.bin", folder / "w.bin")
    np.testing.assert_array_equal(tensor_of(model).numpy(), DATA[:4])


@pytest.mark.parametrize(
    ("elem", "shape", "content", "expected"),
    [
        (TensorProto.INT4, [3], b"\x21\x0f", [1, 2, -1]),
        (TensorProto.UINT2, [5], b"\xe4\x01", [0, 1, 2, 3, 1]),
        (TensorProto.BFLOAT16, [2], b"\x80\x3f\x00\x40", [1.0, 2.0]),
        (TensorProto.BOOL, [2], b"\x00\x01", [False, True]),
        (TensorProto.FLOAT8E4M3FN, [1], b"\x38", [1.0]),
    ],
)
def test_every_element_type_is_mapped(
    folder: Path, elem: int, shape: list[int], content: bytes, expected: list
) -> None:
    (folder / "e.bin").write_bytes(content)
    tensor = external_tensor("w", shape, location="e.bin")
    tensor.data_type = elem
    model = ep.load(write(folder, external_model(tensor)))
    assert tensor_of(model).numpy().tolist() == expected
    assert tensor_of(model).tobytes() == content
    assert model.to_proto().graph.initializer[0].raw_data == content
