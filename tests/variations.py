"""Runs the tests under one of several conditions, chosen by date or by name; results must be the same under all.

    python -m tests.variations [NAME] [PYTEST ARGUMENT ...]     make test VARIATION=haswell
    python -m tests.variations --list

Processors sum in different orders, threads share work differently, tests run in other orders and processes. One
variation a day, as in CI, tries all of them within two weeks.
"""

from __future__ import annotations

import datetime as dt
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

AS_USUAL = ("-n", "2", "--dist", "loadfile")
SPREAD = ("--dist", "worksteal")
"""The tests of a file run in either process, which leaves none idle; one process alone would take twice as long."""
ALONE = tuple(f"tests/exporters/{name}" for name in ("sklearn", "jax", "tensorflow", "keras"))
"""Tests of frameworks that fight with torch over threads in one process: each folder has processes of its own."""


class Variation(NamedTuple):
    """What is set in the environment, and the arguments for pytest after those that it always gets."""

    environment: Mapping[str, str] = {}
    options: tuple[str, ...] = ()


def variations() -> dict[str, Variation]:
    """Those that this machine can run: OpenBLAS and NumPy cannot use kernels that the processor lacks."""
    found = np.show_config(mode="dicts")["SIMD Extensions"]["found"]
    newest = [name for name in found if name.startswith(("X86_V4", "AVX512", "AVX10"))]
    usable = {"plain": Variation()}
    if newest or {"X86_V3", "AVX2"} & set(found):
        usable["haswell"] = Variation({"OPENBLAS_CORETYPE": "Haswell"})
    if newest:
        usable["skylakex"] = Variation({"OPENBLAS_CORETYPE": "SkylakeX"})
        usable["no-avx512"] = Variation({"NPY_DISABLE_CPU_FEATURES": " ".join(newest)})
    if sys.platform == "linux":
        usable["blas-copy"] = Variation({"ENTREPOT_BLAS": "copy"})
    for count, word in ((1, "one-thread"), (2, "two-threads")):
        usable[word] = Variation(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(count)))
    usable |= {f"seed-{n}": Variation(options=(f"--randomly-seed={n}",)) for n in range(1, 6)}
    usable |= {"any-process": Variation(options=SPREAD), "four-processes": Variation(options=("-n", "4"))}
    return usable


def name_for(day: dt.date, names: list[str]) -> str:
    """The variation of a day: each in turn."""
    return names[day.toordinal() % len(names)]


def main(arguments: list[str]) -> int:
    """Say what runs and how to repeat it, and run all of it, whatever fails."""
    known = variations()
    if arguments == ["--list"]:
        print("\n".join(known))
        return 0
    chosen = arguments.pop(0) if arguments and arguments[0] in known else ""
    if arguments and not chosen and not arguments[0].startswith(("-", "tests")):
        print(f"no variation {arguments[0]!r} here; this machine has {', '.join(known)}", file=sys.stderr)
        return 2
    name = chosen or name_for(dt.datetime.now(dt.UTC).date(), list(known))
    environment, options = known[name]
    told = " ".join([*(f'{key}="{value}"' for key, value in environment.items()), *options]) or "nothing special"
    print(f"[test] variation {name}: {told}; again by: make test VARIATION={name}", flush=True)
    codes = [
        subprocess.run(
            [sys.executable, "-m", "pytest", *AS_USUAL, *options, *part], env={**os.environ, **environment}, check=False
        ).returncode
        for part in parts(arguments)
    ]
    return next(filter(None, codes), 0)


def parts(arguments: Sequence[str]) -> Iterator[Sequence[str]]:
    """The arguments of each run of pytest: one for what the arguments name, else one for each part of the tests."""
    if any(argument.startswith("tests") for argument in arguments):
        yield arguments
        return
    alone = [folder for folder in ALONE if Path(folder).exists()]
    yield [*arguments, *(f"--ignore={folder}" for folder in alone)]
    for folder in alone:
        yield [*arguments, *SPREAD, folder]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
