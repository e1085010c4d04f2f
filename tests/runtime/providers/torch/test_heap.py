"""Memory of one run is there for the next."""

from __future__ import annotations

import platform
import subprocess
import sys

ROUNDS = """
import resource, torch
from entrepot.runtime.providers.torch.heap import keep

def faults_of_a_round():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    torch.ones(10 << 20)  # 40 MiB: more than the C library keeps by itself
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

def faults():
    return min(faults_of_a_round() for _ in range(6))

print(faults())
print(keep(), faults())
"""


def test_the_system_does_not_clear_the_same_pages_for_every_round() -> None:
    """In a process of its own, whose memory nothing else has touched; a page has 4 KiB, or 2 MiB."""
    told = subprocess.run([sys.executable, "-c", ROUNDS], capture_output=True, text=True, check=True).stdout
    before, kept, after = told.split()
    if platform.libc_ver()[0] == "glibc":
        assert int(before) >= 20
        assert (kept, int(after)) == ("True", 0)
