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
    made = [torch.ones(1 << 21) for _ in range(5)]  # 8 MiB each, 2048 pages
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

def faults():
    return min(faults_of_a_round() for _ in range(6))

keep()
print(faults())
"""


def test_the_system_does_not_clear_the_same_pages_for_every_round() -> None:
    """In a process of its own, whose memory nothing else has touched."""
    told = subprocess.run([sys.executable, "-c", ROUNDS], capture_output=True, text=True, check=True).stdout
    assert platform.libc_ver()[0] != "glibc" or int(told) < 2048
