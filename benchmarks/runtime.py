"""Our cpu provider against onnxruntime and ``onnx.reference``: CPU time on one thread, interleaved, best of rounds.

    python -m benchmarks.runtime [--model bert] [--rounds 7] [--no-reference] [--profile]

Ratios below 1 are faster than onnxruntime. Models come from PyTorch's own exporter at opset 18, so that both runtimes
are given the same file.
"""

from __future__ import annotations

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"  # read when the numeric libraries load, so before they are imported

import argparse  # noqa: E402
import logging  # noqa: E402
import math  # noqa: E402
import sys  # noqa: E402
import tempfile  # noqa: E402
import time  # noqa: E402
import warnings  # noqa: E402
from collections.abc import Callable, Mapping  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

import numpy as np  # noqa: E402

TARGETS = {"mlp": 0.95, "resnet50": 2.0, "bert": 1.4, "lstm": 2.0}
"""What the prototypes achieved, as multiples of onnxruntime's time."""


def torch_module(name: str) -> tuple[Any, tuple[Any, ...]]:
    """A PyTorch module and its inputs."""
    import torch

    from entrepot.models_zoo import registry

    torch.manual_seed(0)
    if name == "mlp":
        layers = [torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 64), torch.nn.ReLU()]
        return torch.nn.Sequential(*layers, torch.nn.Linear(64, 10)), (torch.randn(1, 64),)
    if name == "lstm":
        return torch.nn.LSTM(256, 256, num_layers=2, batch_first=True), (torch.randn(1, 100, 256),)
    if name == "resnet50":
        return registry.build("resnet50", size=224).module, (torch.randn(1, 3, 224, 224),)
    size = {"vocabulary": 30522, "width": 768, "layers": 12, "heads": 12, "positions": 512, "length": 128}
    built = registry.build("bert", **size)
    sample = built.samples[0]
    return built.module, tuple(sample.values()) if isinstance(sample, Mapping) else tuple(sample)


def export(name: str, path: Path) -> None:
    """Write one benchmark model, as torch.onnx writes it."""
    import torch

    module, inputs = torch_module(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(module.eval(), inputs, dynamo=True, opset_version=18, verbose=False).save(str(path))


def feeds_of(path: Path) -> dict[str, np.ndarray[Any, Any]]:
    """Inputs for a model, by its declared types."""
    import entrepot as ep

    rng = np.random.default_rng(0)
    feeds: dict[str, np.ndarray[Any, Any]] = {}
    for spec in ep.load(path).inputs:
        shape = tuple(int(dim) for dim in spec.shape or ())
        if spec.dtype == "float32":
            feeds[spec.name] = rng.standard_normal(shape).astype(np.float32)
        else:
            feeds[spec.name] = np.ones(shape, np.int64) if "mask" in spec.name else rng.integers(1, 1000, shape)
    return feeds


def runners(path: Path, feeds: Mapping[str, Any], *, reference: bool) -> dict[str, Callable[[], Any]]:
    """A call per runtime that computes the same outputs."""
    import onnxruntime

    import entrepot as ep

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = ep.Session(path)
    peer = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    calls: dict[str, Callable[[], Any]] = {
        "entrepot": lambda: list(session.run(feeds).values()),
        "onnxruntime": lambda: peer.run(None, feeds),
    }
    if reference:
        from onnx.reference import ReferenceEvaluator

        evaluator = ReferenceEvaluator(str(path))
        calls["onnx.reference"] = lambda: evaluator.run(None, dict(feeds))
    return calls


def best_times(calls: Mapping[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """Best CPU seconds per call; rounds take turns, so that a disturbance affects all alike."""
    best = dict.fromkeys(calls, math.inf)
    repeats = {name: _repeats(call) for name, call in calls.items()}
    for _ in range(rounds):
        for name, call in calls.items():
            start = time.process_time()
            for _ in range(repeats[name]):
                call()
            best[name] = min(best[name], (time.process_time() - start) / repeats[name])
    return best


def _repeats(call: Callable[[], Any]) -> int:
    call()
    start = time.process_time()
    call()
    return max(1, math.ceil(0.05 / max(time.process_time() - start, 1e-6)))


def largest_error(calls: Mapping[str, Callable[[], Any]]) -> float:
    """Largest difference from onnxruntime, relative to its largest value."""
    errors = [
        float(np.abs(a - b).max() / max(float(np.abs(b).max()), 1e-30))
        for a, b in zip(calls["entrepot"](), calls["onnxruntime"](), strict=True)
    ]
    return max(errors)


def profile(path: Path, feeds: Mapping[str, Any]) -> None:
    """Print where the time goes."""
    import entrepot as ep

    session = ep.Session(path)
    print(session.profile(feeds))


def main() -> int:
    """Print a line per model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", action="append", choices=list(TARGETS))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--no-reference", action="store_true", help="leave the slow onnx.reference out")
    parser.add_argument("--profile", action="store_true", help="show where the time goes instead")
    parser.add_argument("--keep", type=Path, help="folder where exported models are kept for the next run")
    arguments = parser.parse_args()
    logging.disable(logging.WARNING)
    from entrepot.runtime.blas import choice

    print(choice())
    print(f"{'model':10}{'entrepot ms':>12}{'/ onnxruntime':>15}{'target':>8}{'/ onnx.reference':>18}{'error':>10}")
    with tempfile.TemporaryDirectory() as temporary:
        for name in arguments.model or list(TARGETS):
            path = (arguments.keep or Path(temporary)) / f"{name}.onnx"
            if not path.exists():
                export(name, path)
            feeds = feeds_of(path)
            if arguments.profile:
                profile(path, feeds)
                continue
            calls = runners(path, feeds, reference=not arguments.no_reference)
            error = largest_error(calls)
            times = best_times(calls, arguments.rounds)
            ours = times["entrepot"]
            slow = f"{ours / times['onnx.reference']:.3f}" if "onnx.reference" in times else "-"
            ratio = ours / times["onnxruntime"]
            print(f"{name:10}{ours * 1e3:12.4g}{ratio:15.2f}{TARGETS[name]:8.2f}{slow:>18}{error:10.1e}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
