"""One session used from several Python threads at once: runs per second, as a multiple of one thread's.

    python -m benchmarks.callers [--callers 1 2 4 8] [--rounds 5]

A small convolutional network, whose kernels take microseconds: the interpreter's lock is what threads wait for.
onnxruntime holds that lock only between runs; it is measured beside us, with one thread inside an operator.
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

RUNS = 1600


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--callers", type=int, nargs="+", default=[1, 2, 4, 8])
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args(arguments)
    ways = _ways()
    print(f"{'callers':10}" + "".join(f"{name:>14}{'':>8}" for name in ways))
    first: dict[str, float] = {}
    for callers in options.callers:
        best = dict.fromkeys(ways, 0.0)
        for _ in range(options.rounds):  # interleaved
            for name, run in ways.items():
                best[name] = max(best[name], _runs_per_second(run, callers))
        for name, rate in best.items():
            first.setdefault(name, rate)
        cells = "".join(f"{rate:14.0f}{f'x {rate / first[name]:.2f}':>8}" for name, rate in best.items())
        print(f"{callers:<10}{cells}", flush=True)
    return 0


def _ways() -> dict[str, Callable[[], Any]]:
    import onnxruntime
    import torch

    import entrepot as ep

    torch.manual_seed(0)
    net = torch.nn.Sequential(
        torch.nn.Conv2d(3, 16, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
        torch.nn.Conv2d(16, 32, 3, padding=1), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
        torch.nn.Flatten(), torch.nn.Linear(32 * 8 * 8, 10),
    )  # fmt: skip
    model = ep.export(net, torch.randn(1, 3, 32, 32), verify=False, dynamic=False, progress=False)
    session = ep.Session(model)
    feeds = {session.inputs[0].name: np.random.default_rng(0).random((1, 3, 32, 32), np.float32)}
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    theirs = onnxruntime.InferenceSession(
        model.to_proto().SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return {"entrepot": lambda: session.run(feeds), "onnxruntime": lambda: theirs.run(None, feeds)}


def _runs_per_second(run: Callable[[], Any], callers: int) -> float:
    def work() -> None:
        for _ in range(RUNS // callers):
            run()

    threads = [threading.Thread(target=work) for _ in range(callers)]
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return RUNS / (time.perf_counter() - start)


if __name__ == "__main__":
    sys.exit(main())
