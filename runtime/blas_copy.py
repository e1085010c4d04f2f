"""A second instance of NumPy's OpenBLAS in the same process, with other kernels and one thread."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = np.ndarray[Any, Any]

CORE_VARIABLE = "OPENBLAS_CORETYPE"

_IN_ROWS, _PLAIN, _TURNED = 101, 111, 112
"""CBLAS' words for matrices in rows, as they are and transposed."""


class Copy:
    """NumPy's OpenBLAS opened a second time.

    Raises:
        OSError: The library cannot be opened like this, or lacks what is needed.
    """

    def __init__(self, path: str, core: str) -> None:
        with _environment({CORE_VARIABLE: core, "OPENBLAS_NUM_THREADS": "1"}):
            self._library = _opened(path)
        name, suffix = _name(self._library, "cblas_sgemm")
        prefix = name.removesuffix(f"cblas_sgemm{suffix}")
        self._integer = ctypes.c_int64 if "64" in suffix else ctypes.c_int
        self._products = {
            np.dtype(kind): self._product(f"{prefix}cblas_{letter}gemm{suffix}", real)
            for kind, letter, real in ((np.float32, "s", ctypes.c_float), (np.float64, "d", ctypes.c_double))
        }
        told = self._library[_name(self._library, "openblas_get_corename")[0]]
        told.restype = ctypes.c_char_p
        self.core = told().decode("ascii")

    def _product(self, name: str, real: type[ctypes.c_float | ctypes.c_double]) -> Any:
        function = self._library[name]
        size, pointer = self._integer, ctypes.c_void_p
        function.argtypes = [ctypes.c_int] * 3 + [size] * 3 + [real, pointer, size, pointer, size, real, pointer, size]
        function.restype = None
        return function

    def multiply(self, A: Array, B: Array, out: Array) -> bool:
        """``A @ B`` into ``out``, all matrices; False, and nothing done, where BLAS does not take them as they lie."""
        function = self._products.get(out.dtype)
        if function is None or not A.dtype == B.dtype == out.dtype:
            return False
        left, right, result = _layout(A), _layout(B), _layout(out)
        if left is None or right is None or result is None or result[0] != _PLAIN:
            return False
        sizes = (*out.shape, A.shape[1])
        operands = (_address(A), left[1], _address(B), right[1])
        function(_IN_ROWS, left[0], right[0], *sizes, 1.0, *operands, 0.0, _address(out), result[1])
        return True


def _layout(x: Array) -> tuple[int, int] | None:
    item, (down, right) = x.itemsize, x.strides
    if right == item and down % item == 0 and down >= x.shape[1] * item:
        return _PLAIN, down // item
    if down == item and right % item == 0 and right >= x.shape[0] * item:
        return _TURNED, right // item
    return None


def _address(x: Array) -> int:
    return int(x.__array_interface__["data"][0])


def _name(library: ctypes.CDLL, plain: str) -> tuple[str, str]:
    """A function's name as NumPy's builds of OpenBLAS spell it, and its suffix."""
    for prefix in ("scipy_", ""):
        for suffix in ("64_", "_64", ""):
            if hasattr(library, f"{prefix}{plain}{suffix}"):
                return f"{prefix}{plain}{suffix}", suffix
    raise OSError(f"the library has no {plain}")


def _opened(path: str) -> ctypes.CDLL:
    """A second instance: the loader knows files by their inode, and a file in memory has one of its own."""
    handle = os.memfd_create("entrepot-blas", os.MFD_CLOEXEC)
    try:
        with open(path, "rb") as source:
            size, done = os.fstat(source.fileno()).st_size, 0
            while done < size:
                done += os.sendfile(handle, source.fileno(), done, size - done)
        # symbols are found in the copy before anything that somebody has made global
        library = ctypes.CDLL(f"/proc/self/fd/{handle}", mode=os.RTLD_NOW | os.RTLD_LOCAL | os.RTLD_DEEPBIND)
    except OSError:
        os.close(handle)
        raise
    return library  # the file stays open: the loader also knows it by this path, which must not come to mean another


_opening = threading.Lock()
if hasattr(os, "register_at_fork"):  # a child must find neither the lock taken nor the variables set
    os.register_at_fork(before=_opening.acquire, after_in_parent=_opening.release, after_in_child=_opening.release)


@contextmanager
def _environment(settings: Mapping[str, str]) -> Iterator[None]:
    with _opening:
        before = {name: os.environ.get(name) for name in settings}
        os.environ.update(settings)
        try:
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value
