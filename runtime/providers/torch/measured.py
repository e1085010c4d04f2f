"""Which of several kernels is the fastest for a node, measured once per machine.

Candidates compute the same, and may round differently. What was found is kept in memory and in a file of the user's
cache, one for each kind of machine and version of torch, so that later sessions choose alike without measuring.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import torch

_ROUNDS = 4
_MARGIN = 0.95
"""A candidate has to beat the first by this factor: what comes first takes the least memory."""

_KNOWN: dict[str, str] = {}


def fastest(key: str, candidates: Mapping[str, Callable[..., Any]], arguments: Sequence[Any]) -> str:
    """The name of the candidate to take.

    Args:
        key: What they do, and for which sizes.
        candidates: By name; the first is taken unless another is clearly faster.
        arguments: What they are measured with.
    """
    if len(candidates) == 1:
        return next(iter(candidates))
    _load()
    if _KNOWN.get(key) not in candidates:
        _KNOWN[key] = _measured(candidates, arguments)
        _save()
    return _KNOWN[key]


def _measured(candidates: Mapping[str, Callable[..., Any]], arguments: Sequence[Any]) -> str:
    times = dict.fromkeys(candidates, float("inf"))
    # where there is one thread, the time of the process is not disturbed by other processes
    now = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    with torch.inference_mode():
        for turn in range(_ROUNDS + 1):
            for name, candidate in candidates.items():
                start = now()
                candidate(*arguments)
                if turn:  # the first one finds kernels, and memory
                    times[name] = min(times[name], now() - start)
    first, *others = candidates
    best = min(others, key=times.__getitem__)
    return best if times[best] < _MARGIN * times[first] else first


def file() -> Path:
    """Where choices are kept: below ``ENTREPOT_CACHE``, or the user's folder for caches."""
    root = os.environ.get("ENTREPOT_CACHE") or os.environ.get("XDG_CACHE_HOME")
    folder = Path(root) if root else Path.home() / ".cache"
    return folder / "entrepot" / f"torch-{_machine()}.json"


@cache
def _machine() -> str:
    kind = (platform.machine(), platform.processor(), _processor(), torch.__version__, torch.get_num_threads())
    return hashlib.sha256(repr((*kind, torch.backends.cpu.get_cpu_capability())).encode()).hexdigest()[:16]


def _processor() -> str:
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text("ascii", "replace").splitlines()
        return next((line for line in lines if line.startswith("model name")), "")
    return ""


@cache
def _load() -> None:
    with suppress(OSError, ValueError):  # none yet, or one that was damaged: it is measured again
        found = json.loads(file().read_text("utf-8"))
        if isinstance(found, dict):
            _KNOWN.update({str(key): str(name) for key, name in found.items()})


def _save() -> None:
    """Write what is known; a folder that cannot be written to only costs the next session its measurements."""
    with suppress(OSError, RuntimeError):
        target = file()
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.with_suffix(f".{os.getpid()}")
        temporary.write_text(json.dumps(_KNOWN, indent=0, sort_keys=True), "utf-8")
        temporary.replace(target)
