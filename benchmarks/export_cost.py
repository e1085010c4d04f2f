"""What ``ep.export`` costs compared with ``torch.onnx.export`` on the same module with the same dynamic axes.

    python benchmarks/export_cost.py [--models mlp resnet18 bert large] [--rounds 3]

Each export runs in a process of its own, so that its peak memory is its own. Time is CPU time of the export alone, best
of the rounds, after an export of a small model has paid for imports; verification is off: torch.onnx.export has none.
Memory is the peak of the whole process: ``large`` is a stack of linear layers of 512 MiB, ``floor`` the same stack with
layers of almost nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

MIB = 2**20
WIDTHS = {"large": 4096, "floor": 16}
LAYERS = 8


def build(name: str) -> tuple[Any, tuple[Any, ...] | dict[str, Any], Any]:
    """A module, its sample, and the dynamic shapes that ``ep.export`` finds for it, in torch's form."""
    import torch

    from entrepot.models_zoo import registry

    batch = torch.export.Dim("batch", min=2)
    if name in WIDTHS:
        width = WIDTHS[name]
        layers = [torch.nn.Linear(width, width) for _ in range(LAYERS)]
        return torch.nn.Sequential(*layers).eval(), (torch.randn(2, width),), ({0: batch},)
    model = registry.build(name)
    sample = model.samples[-1]
    names = sample if isinstance(sample, dict) else range(len(sample))
    auto = {key: dict.fromkeys(range(sample[key].dim()), torch.export.Dim.AUTO) for key in names}
    return model.module, sample, auto if isinstance(sample, dict) else tuple(auto.values())


def export_ours(module: Any, sample: Any, _shapes: Any) -> Any:
    """The call that is measured."""
    import entrepot as ep

    return ep.export(module, sample, verify=False, progress=False)


def export_torch(module: Any, sample: Any, shapes: Any) -> Any:
    """The peer."""
    import torch

    kwargs = sample if isinstance(sample, dict) else {}
    args = () if isinstance(sample, dict) else sample
    return torch.onnx.export(module, args, kwargs=kwargs, dynamo=True, verbose=False, dynamic_shapes=shapes)


EXPORTS: dict[str, Callable[..., Any]] = {"ours": export_ours, "torch": export_torch}


def child(who: str, name: str) -> None:
    """Export once and print the figures as JSON."""
    import warnings

    import torch

    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    EXPORTS[who](*build("mlp"))  # what torch imports and caches at its first export counts for neither
    built = build(name)
    start = time.process_time()
    result = EXPORTS[who](*built)
    seconds = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    weights = sum(parameter.nbytes for parameter in built[0].parameters())
    graph = result.ir.graph if who == "ours" else result.model.graph
    stored = sum(value.const_value.nbytes for value in graph.initializers.values())
    print(json.dumps({"seconds": seconds, "peak": peak, "weights": weights, "stored": stored}))


def measure(who: str, name: str, rounds: int) -> dict[str, float]:
    """The best time of some processes, and their largest peak."""
    command = [sys.executable, __file__, "--child", who, name]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    runs = [
        json.loads(subprocess.run(command, check=True, capture_output=True, env=environment).stdout.splitlines()[-1])
        for _ in range(rounds)
    ]
    return runs[0] | {"seconds": min(run["seconds"] for run in runs), "peak": max(run["peak"] for run in runs)}


def main() -> None:
    """Print one line per model, and the memory verdict."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="*", default=["mlp", "resnet18", "bert", "large"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(*options.child)
        return
    floor = measure("ours", "floor", 1)["peak"]
    heads = ("ours s", "torch s", "ratio", "ours MiB", "torch MiB", "(peak - floor) / weights", "stored / weights")
    print(f"{'model':10} " + "  ".join(heads))
    for name in options.models:
        ours, torch_ = (measure(who, name, options.rounds) for who in EXPORTS)
        share = (ours["peak"] - floor) / ours["weights"]
        print(
            f"{name:10} {ours['seconds']:6.2f}  {torch_['seconds']:7.2f}  {ours['seconds'] / torch_['seconds']:5.2f}  "
            f"{ours['peak'] / MIB:8.0f}  {torch_['peak'] / MIB:9.0f}  {share:24.2f}  "
            f"{ours['stored'] / ours['weights']:16.3f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
