"""How much memory a process may still take, where the system says so."""

from __future__ import annotations

import sys
from pathlib import Path

_ROOT = Path("/")
_PLENTY = sys.maxsize


def free_bytes(root: Path = _ROOT) -> int:
    """What the machine, the control group and the process's own limit leave; very much where nothing is said.

    Args:
        root: The folder that ``proc`` and ``sys`` lie in.
    """
    return max(min(_free_of_machine(root), _free_of_group(root), _free_of_process(root)), 0)


def _free_of_machine(root: Path) -> int:
    known = _numbers(root / "proc/meminfo", ":")
    if "MemAvailable" not in known:
        return _PLENTY
    return (known["MemAvailable"] + known.get("SwapFree", 0)) * 1024


def _free_of_group(root: Path) -> int:
    folder = root / "sys/fs/cgroup"
    for limit, used in (
        ("memory.max", "memory.current"),
        ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
    ):
        try:
            allowed = int((folder / limit).read_text("ascii"))
            taken = int((folder / used).read_text("ascii"))
        except (OSError, ValueError):  # another version of control groups, or "max"
            continue
        # files that are only cached count as used, and are given up when memory is asked for
        cached = _numbers(folder / limit.replace(limit.rpartition("/")[2], "memory.stat"), " ")
        return allowed - taken + cached.get("inactive_file", cached.get("total_inactive_file", 0))
    return _PLENTY


def _free_of_process(root: Path) -> int:
    try:
        import resource
    except ImportError:  # Windows
        return _PLENTY
    allowed, _ = resource.getrlimit(resource.RLIMIT_AS)
    taken = _numbers(root / "proc/self/status", ":").get("VmSize")
    return _PLENTY if allowed == resource.RLIM_INFINITY or taken is None else allowed - taken * 1024


def _numbers(file: Path, separator: str) -> dict[str, int]:
    """Lines such as ``MemFree:   12 kB`` as a dictionary; empty where there is no such file."""
    try:
        lines = file.read_text("ascii", "replace").splitlines()
    except OSError:
        return {}
    pairs = (line.partition(separator)[::2] for line in lines)
    return {name: int(words.split()[0]) for name, words in pairs if words.split() and words.split()[0].isdecimal()}
