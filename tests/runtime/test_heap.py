"""Memory of one run is there for the next."""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path

import torch

from entrepot.runtime import heap

FAULTS = """
import resource
from entrepot.runtime.heap import keep, kept

def faults_of_a_round():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    bytearray(40 << 20)  # more than the C library keeps by itself
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

def faults():
    return min(faults_of_a_round() for _ in range(6))

def held():
    return int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize()
"""

FOR_GOOD = """
print(faults())
print(keep(), faults())
"""

FOR_A_WHILE = """
before = held()
try:
    with kept():
        with kept():
            faults()
        print(faults())
        raise KeyError
except KeyError:
    print(held() - before, faults())
with kept():
    keep()
print(faults())
"""


def test_the_system_does_not_clear_the_same_pages_for_every_round() -> None:
    """In a process of its own, whose memory nothing else has touched; a page has 4 KiB, or 2 MiB."""
    before, kept, after = _told(FOR_GOOD)
    if platform.libc_ver()[0] == "glibc":
        assert int(before) >= 20
        assert (kept, int(after)) == ("True", 0)


def test_memory_is_kept_for_a_while() -> None:
    inside, left, after, for_good = map(int, _told(FOR_A_WHILE))
    if platform.libc_ver()[0] == "glibc":
        assert inside == for_good == 0
        assert left < 20 << 20  # of 40 MiB
        assert after >= 20


def _told(rounds: str) -> list[str]:
    run = subprocess.run([sys.executable, "-c", FAULTS + rounds], capture_output=True, text=True, check=True)
    return run.stdout.split()


def test_memory_is_put_into_large_pages_where_the_system_has_them() -> None:
    size = heap._large_page()
    tensor = torch.arange(float(4 << 20))  # 16 MiB
    before = tensor.clone()
    assert not heap.gather(tensor.data_ptr(), max(size - 1, 0))
    gathered = heap.gather(tensor.data_ptr(), tensor.nbytes)
    assert torch.equal(tensor, before)
    if gathered:  # older kernels than Linux 6.1 refuse, and so does one without free memory in one piece
        assert _in_large_pages(tensor.data_ptr() + size) > 0


def _in_large_pages(address: int) -> int:
    """KiB of the mapping at an address that lie in large pages."""
    inside = False
    for line in Path("/proc/self/smaps").read_text("utf-8").splitlines():
        first = line.partition(" ")[0]
        if "-" in first:
            start, end = (int(each, 16) for each in first.split("-"))
            inside = start <= address < end
        elif inside and first == "AnonHugePages:":
            return int(line.split()[1])
    return 0


def test_what_the_owner_of_the_system_does_not_want_is_not_done(tmp_path: Path) -> None:
    (tmp_path / "hpage_pmd_size").write_text("2097152\n")
    (tmp_path / "enabled").write_text("always [madvise] never\n")
    assert heap._large_page.__wrapped__(tmp_path) == 2 << 20
    (tmp_path / "enabled").write_text("always madvise [never]\n")
    assert heap._large_page.__wrapped__(tmp_path) == 0
    assert heap._large_page.__wrapped__(tmp_path / "missing") == 0
