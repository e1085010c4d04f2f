"""Every model of the zoo exported at several opsets: how many of each source and task are proved, and which are not.

    python -m benchmarks.matrix [--source jax tensorflow] [--opset 13 17 20]

``make matrix`` runs all of it. A source runs in a process of its own, since frameworks contend for threads.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import textwrap
from collections import Counter, defaultdict
from collections.abc import Sequence

from entrepot import models_zoo
from entrepot.models_zoo.registry import FRAMEWORKS

OPSETS = (13, 17, 20)


def main(arguments: Sequence[str] | None = None) -> int:
    """Export and print; the exit code is 1 when a model is refused or not proved."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", nargs="*", default=FRAMEWORKS, choices=FRAMEWORKS)
    parser.add_argument("--opset", nargs="*", type=int, default=OPSETS)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.worker:
        _measure(options.source[0], options.opset)
        return 0
    print(f"{'source':12}{'task':24}{'models':>8}" + "".join(f"{f'opset {opset}':>10}" for opset in options.opset))
    failures = [failure for source in options.source for failure in _rows(source, options.opset)]
    print("\n".join(failures))
    return int(bool(failures))


def _rows(source: str, opsets: Sequence[int]) -> list[str]:
    """Print the rows of a source; returns what was not proved."""
    command = [sys.executable, "-m", "benchmarks.matrix", "--worker", "--source", source, "--opset", *map(str, opsets)]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environment)
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    proved: dict[str, Counter[int]] = defaultdict(Counter)
    for each in found:
        proved[each["task"]][each["opset"]] += not each["why"]
    for task, counts in sorted(proved.items()):
        total = len(models_zoo.names(source, task))
        print(f"{source:12}{task:24}{total:>8}" + "".join(f"{counts[opset]:>10}" for opset in opsets), flush=True)
    return [f"{source} {each['name']} at opset {each['opset']}: {each['why']}" for each in found if each["why"]]


def _measure(source: str, opsets: Sequence[int]) -> None:
    """Write a line for each model and opset."""
    for name in models_zoo.names(source):
        for opset in opsets:
            zoo = models_zoo.build(name, source)
            line = {"name": name, "task": zoo.task, "opset": opset, "why": _why(zoo, opset)}
            print(json.dumps(line), flush=True)


def _why(zoo: models_zoo.ZooModel, opset: int) -> str:
    """Why a model is not proved at an opset; empty if it is."""
    import entrepot as ep

    try:
        model = ep.export(zoo.module, zoo.sample, opset=opset, progress=False)
    except ep.EntrepotError as error:
        return textwrap.shorten(str(error), 200)
    return "" if model.report is not None and model.report.ok else "not proved"


if __name__ == "__main__":
    sys.exit(main())
