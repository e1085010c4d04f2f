"""What is missing for a device, told without importing torch."""

from __future__ import annotations

import ctypes
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

_HOW = "install a build of torch for your driver, as https://pytorch.org/get-started says"


def for_torch() -> str:
    """Empty, or why torch itself cannot be used."""
    return "" if find_spec("torch") else "needs the library torch: pip install torch"


def for_cuda() -> str:
    """Empty, or why no device of CUDA or ROCm can be used."""
    if reason := for_torch():
        return reason
    try:
        build = version("torch")
    except PackageNotFoundError:
        build = ""
    if build.endswith("+cpu") or sys.platform == "darwin":
        return f"needs a build of torch with CUDA or ROCm, and torch {build} is for processors alone: {_HOW}"
    if "+rocm" in build:
        return ""
    count = _devices()
    return "" if count else "needs a device of CUDA, and the driver (libcuda) finds none on this machine"


def _devices() -> int:
    """Devices that CUDA's driver finds."""
    try:
        driver = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    except OSError:
        return 0
    count = ctypes.c_int(0)
    if driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count)):
        return 0
    return count.value


def for_mps() -> str:
    """Empty, or why Apple's devices cannot be used."""
    if reason := for_torch():
        return reason
    if sys.platform != "darwin" or platform.machine() != "arm64":
        return f"needs a Mac with Apple silicon, and this is {platform.system()} on {platform.machine()}"
    return ""
