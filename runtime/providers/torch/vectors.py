"""What the processor is to the libraries that torch multiplies with.

Decided by its name, and never by measurement: two sessions of one model have to round alike.
"""

from __future__ import annotations

import platform
from functools import cache
from pathlib import Path

import torch

_INTEL = "GenuineIntel"
_TOLD = Path("/proc/cpuinfo")


@cache
def is_mkl_narrow() -> bool:
    """Whether MKL leaves half of the processor's vectors unused, as it does with AVX-512 of others than Intel.

    OneDNN goes by what a processor can do: there it is more than twice as fast (torch 2.13, an EPYC of AMD's).
    """
    is_wide = torch.backends.mkl.is_available() and torch.backends.cpu.get_cpu_capability() == "AVX512"
    return is_wide and vendor() not in ("", _INTEL)


def vendor(file: Path = _TOLD) -> str:
    """Who made the processor, in its own words; empty where nobody says.

    Args:
        file: In which Linux describes processors.
    """
    if not file.exists():
        return platform.processor().partition(", ")[2]  # "AMD64 Family 25 Model 17 Stepping 1, AuthenticAMD"
    return told("vendor_id", file)


def told(field: str, file: Path = _TOLD) -> str:
    """What Linux says of the first processor under a name; empty where it says nothing."""
    if not file.exists():
        return ""
    fields = (line.partition(":") for line in file.read_text("utf-8", "replace").splitlines())
    return next((value.strip() for name, _, value in fields if name.strip() == field), "")
