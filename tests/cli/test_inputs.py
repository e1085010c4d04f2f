from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx_ir
import pytest

from entrepot.cli.inputs import read_inputs
from entrepot.ir.errors import InputError, MissingFileError, StorageError
from entrepot.ir.model import Model

TEXT = """<ir_version: 10, opset_import: ["": 20]>
net (float[batch, 3] x, int64[batch] ids, string[1] word, bfloat16[2] h) => (float[batch, 3] y) { y = Identity(x) }"""


@pytest.fixture(scope="module")
def model():
    return Model(onnx_ir.from_onnx_text(TEXT))


def read(model, *inputs, dims=(), seed=0):
    return read_inputs(model, inputs, dims, seed)[0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("zeros[2,3]", np.zeros((2, 3), np.float32)),
        ("ones[1, 3]", np.ones((1, 3), np.float32)),
        ("arange[2,3]", np.arange(6, dtype=np.float32).reshape(2, 3)),
        ("[[1,2,3]]", np.array([[1, 2, 3]], np.float32)),
        ("zeros[0,3]", np.zeros((0, 3), np.float32)),
    ],
)
def test_spellings_make_arrays_of_the_declared_dtype(model, text, expected):
    x = read(model, f"x={text}")["x"]
    assert x.dtype == np.float32
    np.testing.assert_array_equal(x, expected)


def test_rand_is_seeded(model):
    one, same, other = (read(model, "x=rand[4,3]", seed=seed)["x"] for seed in (1, 1, 2))
    assert one.shape == (4, 3)
    np.testing.assert_array_equal(one, same)
    assert not np.array_equal(one, other)


def test_rand_of_integers_stays_in_any_table(model):
    ids = read(model, "ids=rand[50]")["ids"]
    assert ids.dtype == np.int64
    assert set(ids) == {0, 1}


def test_inputs_left_out_are_random_and_fit_the_given_ones(model):
    feeds, made_up = read_inputs(model, ["x=zeros[7,3]"], [], 0)
    assert feeds["ids"].shape == (7,)
    assert made_up == ("ids", "word", "h")


def test_sizes_of_symbols_can_be_given(model):
    assert read(model, dims=["batch=5"])["x"].shape == (5, 3)


def test_a_word_is_a_literal_where_strings_are_taken(model):
    assert read(model, "word=hello")["word"].item() == "hello"
    assert read(model, 'word=["a b"]')["word"].tolist() == ["a b"]


def test_files_are_read(model, tmp_path):
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.save(tmp_path / "x.npy", x)
    np.savez(tmp_path / "all.npz", x=x, other=x + 1)
    np.testing.assert_array_equal(read(model, f"x=@{tmp_path / 'x.npy'}")["x"], x)
    np.testing.assert_array_equal(read(model, f"x=@{tmp_path / 'all.npz'}")["x"], x)
    np.testing.assert_array_equal(read(model, f"x=@{tmp_path / 'all.npz'}:other")["x"], x + 1)


def test_a_file_of_a_dtype_numpy_cannot_name_gets_it_back(model, tmp_path):
    np.save(tmp_path / "h.npy", np.array([1.5, 2.5], ml_dtypes.bfloat16))
    h = read(model, f"h=@{tmp_path / 'h.npy'}")["h"]
    assert h.dtype == ml_dtypes.bfloat16
    assert h.tolist() == [1.5, 2.5]


@pytest.mark.parametrize("save", [np.save, np.savez])
def test_python_objects_are_not_read_and_nobody_is_told_to_unpickle_them(model, tmp_path, save):
    path = tmp_path / ("x.npy" if save is np.save else "x.npz")
    objects = np.array([{"a": 1}], object)
    save(path, objects, allow_pickle=True) if save is np.save else save(path, x=objects)
    with pytest.raises(InputError, match=r"Python objects.*input 'x'") as caught:
        read(model, f"x=@{path}")
    assert "pickle" not in str(caught.value)


@pytest.mark.parametrize(
    ("inputs", "dims", "message"),
    [
        (["x"], [], "NAME=VALUE"),
        (["z=1"], [], "no input 'z'.*x, ids, word, h"),
        (["x=rand[1,2"], [], "not a value"),
        (["x=[[1],[2,3]]"], [], "not float32"),
        (["word=zeros[1]"], [], "strings"),
        (["x=rand[4]"], [], "rank 2"),
        (["x=zeros[2,3]", "ids=zeros[5]"], [], "'batch' is 2"),
        ([], ["batch"], "SYMBOL=SIZE"),
        ([], ["batch=-1"], "whole number"),
        ([], ["bach=1"], "no input has an axis 'bach'"),
    ],
)
def test_what_does_not_fit_is_refused(model, inputs, dims, message):
    with pytest.raises(InputError, match=message):
        read_inputs(model, inputs, dims, 0)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not an array file"),
        (b"\x08\x0a\x12 a model", "not an array file, but input 'x'.*npy and .npz"),
        (b"\x80\x04\x95 a pickle", "not an array file"),
        (b"PK\x03\x04 nonsense", "damaged"),
        (b"\x93NUMPY\x01\x00 nonsense", "damaged"),
    ],
)
def test_a_file_that_is_no_array_is_refused_in_our_words(model, tmp_path, content, message):
    (tmp_path / "x.npy").write_bytes(content)
    with pytest.raises(InputError, match=message) as caught:
        read(model, f"x=@{tmp_path / 'x.npy'}")
    assert "pickle" not in str(caught.value)
    assert str(tmp_path / "x.npy") in str(caught.value)


def test_an_archive_without_the_array_names_those_it_has(model, tmp_path):
    np.savez(tmp_path / "all.npz", other=np.zeros(1), more=np.zeros(1))
    with pytest.raises(InputError, match=r"no array 'x'.*other, more"):
        read(model, f"x=@{tmp_path / 'all.npz'}")


def test_a_file_that_is_missing_or_a_folder_is_named_with_its_input(model, tmp_path):
    with pytest.raises(MissingFileError, match=r"missing.npy'.*input 'x'"):
        read(model, f"x=@{tmp_path / 'missing.npy'}")
    with pytest.raises(StorageError, match=r"input 'x'.*directory"):
        read(model, f"x=@{tmp_path}")
