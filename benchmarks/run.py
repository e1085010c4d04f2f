"""``make bench``: every benchmark in turn, each in a process of its own, one thread each.

Each script compares entrepot with a named peer side by side in one run and prints ratios; absolute times are shown for
orientation only. ``python -m benchmarks.<name>`` runs one.
"""

from __future__ import annotations

import os
import pkgutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def main() -> int:
    """Run them all; the exit code is the number that failed."""
    failed = 0
    for module in pkgutil.iter_modules([str(HERE)]):
        if module.name == "run":
            continue
        print(f"== benchmarks.{module.name}", flush=True)
        command = [sys.executable, "-m", f"benchmarks.{module.name}"]
        failed += (
            subprocess.run(command, cwd=HERE.parent, env={**os.environ, **ONE_THREAD}, check=False).returncode != 0
        )
    return failed


if __name__ == "__main__":
    sys.exit(main())
