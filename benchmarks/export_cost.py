"""What ``ep.export`` costs compared with ``torch.onnx.export`` on the same module with the same dynamic axes.

    python -m benchmarks.export_cost [--models mlp resnet18 bert large masked-lm/bert ...] [--rounds 3] [--verify]
    python -m benchmarks.export_cost --architectures --verify

Each export runs in a process of its own, so that its peak memory is its own. Time is CPU time of the export alone, best
of the rounds, after an export of a small model has paid for imports; verification is off unless ``--verify`` asks for
it: torch.onnx.export has none. Memory is the peak of the whole process: ``large`` is a stack of linear layers of 512
MiB, ``floor`` the same stack with layers of almost nothing. Names with a slash are cases of ``tests/export_cases``;
``--architectures`` takes fourteen of them. There, ours is given the sample alone, and torch.onnx the axes in which the
calls of the case differ.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

MIB = 2**20
ARCHITECTURES = (
    "masked-lm/bert",
    "masked-lm/distilbert",
    "masked-lm/deberta-v2",
    "masked-lm/mobilebert",
    "causal-lm/gpt2",
    "causal-lm/llama",
    "causal-lm/mistral",
    "seq2seq-lm/t5",
    "image-classification/vit",
    "image-classification/resnet",
    "image-classification/convnext",
    "image-classification/swinv2",
    "ctc/wav2vec2",
    "zero-shot-image/clip",
)
"""Models of every kind that torch.onnx exports, decoders without their caches."""

WIDTHS = {"large": 4096, "floor": 16}
LAYERS = 8


def build(name: str) -> tuple[Any, tuple[Any, ...] | dict[str, Any], Any]:
    """A module, its sample, and the dynamic shapes that ``ep.export`` finds for it, in torch's form."""
    import torch

    from entrepot.models_zoo import registry

    if "/" in name:
        return _architecture(name)
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


def _architecture(name: str) -> tuple[Any, Any, Any]:
    import torch

    from tests.export_cases import CORPORA, cases
    from tests.sweeps.nodes import without_caches

    case = next(case for corpus in CORPORA for case in cases(corpus) if case.name == name)
    module, (sample, other, *_) = case.build()
    assert isinstance(sample, dict)
    shapes = {
        key: {axis: torch.export.Dim.AUTO for axis in range(value.dim()) if value.shape[axis] != other[key].shape[axis]}
        for key, value in sample.items()
    }
    return without_caches(module), sample, shapes


def export_ours(module: Any, sample: Any, _shapes: Any, *, verify: bool) -> Any:
    """The call that is measured."""
    import entrepot as ep

    return ep.export(module, sample, verify=verify, progress=False)


def export_torch(module: Any, sample: Any, shapes: Any, *, verify: bool) -> Any:
    """The peer."""
    import torch

    kwargs = sample if isinstance(sample, dict) else {}
    args = () if isinstance(sample, dict) else sample
    return torch.onnx.export(module, args, kwargs=kwargs, dynamo=True, verbose=False, dynamic_shapes=shapes)


EXPORTS: dict[str, Callable[..., Any]] = {"ours": export_ours, "torch": export_torch}


def child(who: str, name: str, *, verify: bool) -> None:
    """Export once and print the figures as JSON."""
    import warnings

    import torch

    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    EXPORTS[who](*build("mlp"), verify=verify)  # what torch imports and caches at its first export counts for neither
    built = build(name)
    start = time.process_time()
    result = EXPORTS[who](*built, verify=verify)
    seconds = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    weights = sum(parameter.nbytes for parameter in built[0].parameters())
    graph = result.ir.graph if who == "ours" else result.model.graph
    stored = sum(value.const_value.nbytes for value in graph.initializers.values())
    print(json.dumps({"seconds": seconds, "peak": peak, "weights": weights, "stored": stored}))


def measure(who: str, name: str, rounds: int, *, verify: bool) -> dict[str, float] | None:
    """The best time of some processes, and their largest peak; ``None`` if the export fails."""
    command = [sys.executable, "-m", "benchmarks.export_cost", "--child", who, name, *["--verify"] * verify]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = [subprocess.run(command, check=False, capture_output=True, env=environment) for _ in range(rounds)]
    if any(process.returncode for process in done):
        return None
    runs = [json.loads(process.stdout.splitlines()[-1]) for process in done]
    return runs[0] | {"seconds": min(run["seconds"] for run in runs), "peak": max(run["peak"] for run in runs)}


def main() -> None:
    """Print one line per model, and the memory verdict."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="*", default=["mlp", "resnet18", "bert", "large"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--architectures", action="store_true", help="fourteen small ones of transformers")
    parser.add_argument("--verify", action="store_true", help="measure our verification, too")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(*options.child, verify=options.verify)
        return
    small = measure("ours", "floor", 1, verify=options.verify)
    assert small is not None
    heads = ("ours s", "torch s", "ratio", "ours MiB", "torch MiB", "(peak - floor) / weights", "stored / weights")
    print(f"{'model':30} " + "  ".join(heads))
    ratios = []
    for name in ARCHITECTURES if options.architectures else options.models:
        ours, torch_ = (measure(who, name, options.rounds, verify=options.verify) for who in EXPORTS)
        if ours is None or torch_ is None:
            print(f"{name:30} cannot be exported by {'ours' if ours is None else 'torch'}", flush=True)
            continue
        ratios.append(ours["seconds"] / torch_["seconds"])
        share = (ours["peak"] - small["peak"]) / ours["weights"]
        print(
            f"{name:30} {ours['seconds']:6.2f}  {torch_['seconds']:7.2f}  {ratios[-1]:5.2f}  "
            f"{ours['peak'] / MIB:8.0f}  {torch_['peak'] / MIB:9.0f}  {share:24.2f}  "
            f"{ours['stored'] / ours['weights']:16.3f}",
            flush=True,
        )
    print(f"median ratio {statistics.median(ratios):.2f}")


if __name__ == "__main__":
    main()
