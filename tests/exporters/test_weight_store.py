"""Weights are kept once, as they were, in memory or in a file without a name."""

import gc
import subprocess
import sys
import textwrap
import weakref

import ml_dtypes
import numpy as np
import pytest

from entrepot.exporters.weight_store import WeightStore
from entrepot.ir.errors import StorageError

LARGE = 300_000
"""Elements of float32 that take more than a mebibyte."""
KINDS = [np.float32, np.float64, np.int8, np.bool_, np.complex64, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn]


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


def test_a_folder_that_is_gone_is_named(tmp_path):
    with pytest.raises(StorageError, match="missing"):
        WeightStore(tmp_path / "missing").kept(drawn(2, LARGE))


def test_no_room_is_a_typed_error(tmp_path):
    script = f"""
        import resource, signal
        import numpy as np
        from entrepot.exporters.weight_store import WeightStore
        from entrepot.ir.errors import StorageError
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
        try:
            WeightStore({str(tmp_path)!r}).kept(np.ones({LARGE * 9}, np.float32))
        except StorageError as error:
            print(error)
    """
    ran = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=True)
    assert "weights cannot be written" in ran.stdout
    assert list(tmp_path.iterdir()) == []
