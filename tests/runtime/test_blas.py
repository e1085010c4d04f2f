"""Which BLAS multiplies, decided on fake answers of threadpoolctl, and the copy itself where one can be made."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

from entrepot.ir.errors import InputError
from entrepot.runtime.blas import CORE_VARIABLE, SWITCH, choose, libraries
from entrepot.runtime.blas_copy import Copy

WIDE = ["X86_V3", "X86_V4"]


def openblas(core):
    return [{"internal_api": "openblas", "version": "0.3.31", "architecture": core, "filepath": "/nowhere"}]


@pytest.mark.parametrize("core", ["Haswell", "Zen", "SANDYBRIDGE"])
@pytest.mark.parametrize("features", [WIDE, ["AVX2", "AVX512_SKX"]])
def test_narrow_kernels_on_a_wide_processor_are_not_used_for_large_products(core, features):
    assert choose(openblas(core), features, {}, system="linux").wanted == "SkylakeX"


@pytest.mark.parametrize(
    ("found", "features"),
    [
        (openblas("SkylakeX"), WIDE),
        (openblas("cooperlake"), WIDE),
        (openblas("SapphireRapids"), WIDE),
        (openblas("Haswell"), ["X86_V3"]),
        (openblas("neoversen1"), ["NEON"]),
        (openblas(None), WIDE),
        ([{"internal_api": "mkl", "version": "2024.2", "architecture": None}], WIDE),
        ([{"internal_api": "blis", "architecture": "haswell"}], WIDE),
        ([], WIDE),
    ],
)
def test_a_library_that_is_right_or_unknown_is_left_alone_without_a_word(found, features):
    made = choose(found, features, {}, system="linux")
    assert (made.wanted, made.remark) == ("", "")


@pytest.mark.parametrize(
    ("environment", "system", "why"),
    [
        ({SWITCH: "numpy"}, "linux", "ENTREPOT_BLAS=numpy"),
        ({CORE_VARIABLE: "Haswell"}, "linux", "OPENBLAS_CORETYPE=Haswell"),
        ({}, "win32", "set OPENBLAS_CORETYPE=SkylakeX before"),
    ],
)
def test_what_is_at_hand_and_not_used_is_said_with_the_reason(environment, system, why):
    made = choose(openblas("Haswell"), WIDE, environment, system=system)
    assert made.wanted == ""
    assert why in made.remark
    assert why in str(made)


def test_a_copy_can_be_asked_for_anywhere():
    assert choose(openblas("Haswell"), [], {SWITCH: "copy"}, system="linux").wanted == "Haswell"
    assert choose(openblas("Zen"), WIDE, {SWITCH: "copy", CORE_VARIABLE: "Zen"}, system="linux").wanted == "SkylakeX"


def test_an_unknown_value_of_the_switch_is_refused():
    with pytest.raises(InputError, match="ENTREPOT_BLAS is 'auto', 'numpy' or 'copy', not 'fast'"):
        choose(openblas("Haswell"), WIDE, {SWITCH: "fast"}, system="linux")


def copy():
    found = libraries()
    if not (sys.platform == "linux" and found and found[0]["internal_api"] == "openblas"):
        pytest.skip("NumPy's BLAS here is not an OpenBLAS that can be opened twice")
    return Copy(found[0]["filepath"], found[0]["architecture"])


@pytest.fixture(scope="module")
def second():
    return copy()


def bound(A, B):
    wide = np.abs(A.astype(np.float64)) @ np.abs(B.astype(np.float64))
    return 2 * A.shape[1] * np.finfo(A.dtype).eps * wide


def layouts(rows, columns, dtype, rng):
    whole = rng.standard_normal((2 * rows + 3, 2 * columns + 3)).astype(dtype)
    yield whole[:rows, :columns].copy()
    yield whole[:rows, :columns]
    yield np.asfortranarray(whole[:rows, :columns])
    yield whole[:columns, :rows].T


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_of_matrices_however_they_lie_are_those_of_numpy(second, dtype):
    rng = np.random.default_rng(0)
    for A in layouts(17, 33, dtype, rng):
        for B in layouts(33, 29, dtype, rng):
            for out in (np.full((17, 29), np.nan, dtype), np.full((40, 50), np.nan, dtype)[3:20, 7:36]):
                assert second.multiply(A, B, out)
                assert (np.abs(out - A.astype(np.float64) @ B.astype(np.float64)) <= bound(A, B)).all()


@pytest.mark.parametrize(
    ("A", "B", "out"),
    [
        (np.ones((4, 6), np.float32)[:, ::2], np.ones((3, 5), np.float32), np.zeros((4, 5), np.float32)),
        (np.ones((4, 3), np.float32)[::-1], np.ones((3, 5), np.float32), np.zeros((4, 5), np.float32)),
        (np.broadcast_to(np.float32(1), (4, 3)), np.ones((3, 5), np.float32), np.zeros((4, 5), np.float32)),
        (np.ones((4, 3), np.float32), np.ones((3, 5), np.float32), np.zeros((5, 4), np.float32).T),
        (np.ones((4, 3), np.float64), np.ones((3, 5), np.float32), np.zeros((4, 5), np.float32)),
        (np.ones((4, 3), np.int32), np.ones((3, 5), np.int32), np.zeros((4, 5), np.int32)),
    ],
)
def test_what_blas_does_not_take_is_left_untouched(second, A, B, out):
    assert not second.multiply(A, B, out)
    assert not out.any()


def test_a_copy_leaves_the_environment_as_it_was(monkeypatch):
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "3")
    monkeypatch.delenv(CORE_VARIABLE, raising=False)
    copy()
    assert os.environ["OPENBLAS_NUM_THREADS"] == "3"
    assert CORE_VARIABLE not in os.environ


def test_threads_may_multiply_at_once(second):
    rng = np.random.default_rng(1)
    A, B = rng.random((64, 64), np.float32), rng.random((64, 64), np.float32)
    results = [np.empty((64, 64), np.float32) for _ in range(8)]

    def work(out):
        for _ in range(200):
            second.multiply(A, B, out)

    threads = [threading.Thread(target=work, args=(out,)) for out in results]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all((np.abs(out - A.astype(np.float64) @ B) <= bound(A, B)).all() for out in results)


CHILD = """
import os
import numpy as np
import entrepot as ep
from entrepot.runtime.blas import choice, product
A, B = np.ones((200, 300), np.float32), np.ones((300, 100), np.float32)
y = np.empty((200, 100), np.float32)
product(A, B, y)
assert (y == 300).all()
child = os.fork()
if child == 0:
    product(A, B, y)
    os._exit(0 if (y == 300).all() else 1)
assert os.waitpid(child, 0)[1] == 0
assert os.environ.get("OPENBLAS_CORETYPE") is None
print("by a copy" in str(choice()))
"""


def test_a_process_that_asks_for_a_copy_uses_it_and_may_fork():
    copy()
    environment = {k: v for k, v in os.environ.items() if k != CORE_VARIABLE} | {SWITCH: "copy"}
    told = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", CHILD],
        env=environment, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert told.stdout.strip() == "True", told.stderr


def test_a_library_that_cannot_be_opened_twice_says_so(tmp_path):
    path = tmp_path / "libnothing.so"
    path.write_bytes(b"no library")
    with pytest.raises(OSError, match="file too short"):
        Copy(str(path), "Haswell")
