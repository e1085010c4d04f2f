"""Weights are kept once, as they were, in memory or in a file without a name."""

import gc
import mmap
import shutil
import subprocess
import sys
import textwrap
import weakref
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from entrepot.exporters import weight_store
from entrepot.exporters.weight_store import WeightStore

LARGE = 300_000
"""Elements of float32 that take more than a mebibyte."""
KINDS = [np.float32, np.float64, np.int8, np.bool_, np.complex64, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn]


@pytest.fixture(autouse=True)
def however_little(monkeypatch):
    monkeypatch.setattr(weight_store, "_MOST_IN_MEMORY", 0)


@pytest.fixture(params=["memory", "file"])
def store(request, tmp_path):
    return WeightStore(tmp_path if request.param == "file" else None)


def drawn(*shape, dtype=np.float32, seed=0):
    return np.random.default_rng(seed).normal(0, 9, shape).astype(dtype)


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("shape", [(), (0, 3), (5,), (LARGE * 4,), (3, LARGE)])
def test_what_is_kept_has_the_same_bytes(store, dtype, shape):
    array = np.asarray(drawn(*shape)).astype(dtype)
    kept = store.kept(array)
    assert (kept.dtype, kept.shape, kept.tobytes()) == (array.dtype, shape, array.tobytes())


def test_what_is_kept_stays_as_it_was(store):
    given = drawn(2, LARGE)
    kept = store.kept(given[:, 1:])
    before = kept.copy()
    given[:] = 0
    assert np.array_equal(kept, before)


def test_equal_arrays_are_one(store):
    array = drawn(2, LARGE)
    first = store.kept(array[:, ::-1])
    assert store.kept(array[:, ::-1].copy()) is first
    assert store.kept(array) is not first


@pytest.mark.parametrize("changed", [0.5, np.nan, -0.0])
def test_arrays_that_differ_in_one_place_are_two(store, changed):
    array = np.zeros(LARGE, np.float32)
    other = array.copy()
    other[12_345] = changed
    first, second = store.kept(array), store.kept(other)
    assert (first.tobytes(), second.tobytes()) == (array.tobytes(), other.tobytes())


def test_shapes_and_types_tell_arrays_apart(store):
    kept = [store.kept(np.zeros(shape, dtype)) for shape in [(LARGE,), (1, LARGE)] for dtype in "fi"]
    assert [(each.shape, each.dtype.char) for each in kept] == [(s, d) for s in [(LARGE,), (1, LARGE)] for d in "fi"]


def test_what_nobody_has_any_more_is_not_held(store):
    kept = store.kept(drawn(2, LARGE)[:])
    watched = weakref.ref(kept)
    del kept
    gc.collect()
    assert watched() is None
    assert np.array_equal(store.kept(drawn(2, LARGE)[:]), drawn(2, LARGE))


def test_a_file_has_no_name_and_outlives_the_store(tmp_path):
    array = drawn(2, LARGE)
    kept = WeightStore(tmp_path).kept(array)
    gc.collect()
    assert list(tmp_path.iterdir()) == []
    assert np.array_equal(kept, array)
    assert not kept.flags.writeable


def test_small_arrays_need_no_file(tmp_path):
    assert WeightStore(tmp_path / "missing").kept(drawn(9)).shape == (9,)


def lies_in_memory(array):
    return array.flags.owndata and array.flags.writeable


def test_what_cannot_lie_in_the_folder_lies_in_memory(tmp_path):
    array = drawn(2, LARGE)
    kept = WeightStore(tmp_path / "missing").kept(array[:])
    assert lies_in_memory(kept)
    assert np.array_equal(kept, array)


def test_room_is_left_to_save_what_lies_there(tmp_path, monkeypatch):
    array, other = drawn(LARGE), drawn(LARGE, seed=1)
    free = shutil.disk_usage(tmp_path)._replace(free=3 * array.nbytes + mmap.ALLOCATIONGRANULARITY)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: free)
    store = WeightStore(tmp_path)
    assert [lies_in_memory(store.kept(each[:])) for each in (array, other)] == [False, False]
    monkeypatch.setattr(shutil, "disk_usage", lambda _: free._replace(free=3 * array.nbytes - 1))
    store = WeightStore(tmp_path)
    assert [lies_in_memory(store.kept(each[:])) for each in (array, other)] == [False, True]


def test_a_file_that_cannot_be_as_long_ends_before(tmp_path):
    script = f"""
        import resource, signal
        import numpy as np
        from entrepot.exporters import weight_store
        weight_store._MOST_IN_MEMORY, weight_store._STRETCH = 0, 1 << 20
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (3 << 20, 3 << 20))
        given = [np.arange({LARGE}, dtype=np.float32) + each for each in range(4)]
        store = weight_store.WeightStore({str(tmp_path)!r})
        kept = [store.kept(each[:]) for each in given]
        assert all(map(np.array_equal, kept, given))
        print([each.flags.writeable for each in kept])
    """
    ran = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=True)
    assert (ran.stdout.strip(), ran.stderr) == ("[False, False, True, True]", "")
    assert list(tmp_path.iterdir()) == []


def test_little_is_not_worth_a_file(tmp_path, monkeypatch):
    given = [drawn(LARGE, seed=each) for each in range(3)]
    monkeypatch.setattr(weight_store, "_MOST_IN_MEMORY", 2 * given[0].nbytes)
    store = WeightStore(tmp_path)
    assert [lies_in_memory(store.kept(each[:])) for each in given] == [True, True, False]


def test_files_are_opened_for_stretches_and_not_for_arrays(tmp_path, monkeypatch):
    monkeypatch.setattr(weight_store, "_STRETCH", 5 << 20)
    given = [drawn(LARGE, seed=each) for each in range(12)] + [drawn(6, LARGE)]
    store = WeightStore(tmp_path)
    gc.collect()
    before = len(list(Path("/proc/self/fd").iterdir()))
    kept = [store.kept(each[:]) for each in given]
    assert len(list(Path("/proc/self/fd").iterdir())) - before == 1 + 3 + 1  # the file; four arrays each; a large one
    assert all(map(np.array_equal, kept, given))
