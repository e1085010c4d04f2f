"""What imported modules cost, beside the modules that the files came from: CPU time on one thread, side by side.

    python -m benchmarks.imported [MODEL ...] [--repeat 7] [--json FILE]

Each model of the zoo is exported, imported and run in turn with its original on the sample's largest batch. The figure
is imported / original, the median of ratios of neighbouring runs; the last line has the geometric mean.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import torch

import entrepot as ep
from entrepot import models_zoo
from entrepot.exporters.sample import Sample
from entrepot.exporters.structure import flatten_call
from entrepot.exporters.torch.arrays import TORCH


def main() -> int:
    """Measure, print, and write the figures if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", metavar="MODEL")
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    found = {}
    for name in arguments.models or models_zoo.names():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found[name] = ratio(name, arguments.repeat)
        print(f"{name:24}{found[name]:6.2f}", flush=True)
    mean = math.exp(statistics.fmean(map(math.log, found.values())))
    print(f"{'geometric mean':24}{mean:6.2f}  (imported / original, n = {len(found)})")
    if arguments.json is not None:
        arguments.json.write_text(json.dumps({**found, "geometric mean": mean}, indent=1) + "\n")
    return 0


def ratio(name: str, repeat: int) -> float:
    """Imported / original for one model of the zoo."""
    zoo = models_zoo.build(name)
    sample = zoo.samples[-1]
    net = ep.to_torch(ep.export(zoo.module, zoo.sample, verify=False), verify=False)
    given = flatten_call(Sample.of(sample), zoo.module.forward, TORCH).tensors
    call = (lambda: zoo.module(**sample)) if isinstance(sample, dict) else (lambda: zoo.module(*sample))
    with torch.inference_mode():
        count = max(1, int(0.1 / (seconds(call, 1) + 1e-9)))
        pairs = [(seconds(call, count), seconds(lambda: net(*given), count)) for _ in range(repeat + 1)]
    return statistics.median(mine / theirs for theirs, mine in pairs[1:])


def seconds(call: Any, count: int) -> float:
    """CPU time of some calls."""
    start = time.process_time()
    for _ in range(count):
        call()
    return time.process_time() - start


if __name__ == "__main__":
    sys.exit(main())
