"""The torch provider on a GPU beside eager PyTorch and ``torch.compile``: milliseconds a run, median of rounds.

    python -m benchmarks.accelerator [--model bert] [--batch 1] [--type float16] [--no-compile] [--keep FOLDER]

Rounds take turns. All are given the same tensors on the device and leave theirs there. ``eager`` is the module that
was exported, ``module`` what ``to_torch`` makes of the file, ``session`` the provider. Ratios are to ``eager``; the
last two columns are the largest errors of eager and of the session, relative to the largest value of the module in
float64. TF32 is off for all. With ``--keep`` the figures are written to a file with the device's name.
"""

from __future__ import annotations

import argparse
import json
import logging
import math
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.fx.experimental.optimization import fuse

import entrepot as ep
from benchmarks import runtime as hosts
from benchmarks.torch_provider import gpt2_decode

MODELS = ("resnet50", "bert", "gpt2_decode")
TYPES = ("float32", "float16", "bfloat16")
BATCHES = (1, 32)

Run = Callable[[], Any]


def build(name: str, batch: int, kind: str) -> tuple[Any, tuple[Tensor, ...]]:
    """A module in evaluation, of this element type, and inputs for this many rows, all on the host."""
    module, sample = gpt2_decode(batch) if name == "gpt2_decode" else hosts.torch_module(name)
    dtype = getattr(torch, kind)
    rows = sample if name == "gpt2_decode" else tuple(_repeated(each, batch) for each in sample)
    return module.eval().to(dtype), tuple(each.to(dtype) if each.is_floating_point() else each for each in rows)


def _repeated(tensor: Tensor, batch: int) -> Tensor:
    rows = tensor[:1].repeat(batch, *[1] * (tensor.ndim - 1))
    return torch.randn_like(rows) if rows.is_floating_point() else rows


def write(module: Any, sample: tuple[Tensor, ...], path: Path) -> None:
    """Write a module as torch.onnx does, which makes an invalid file of a narrow type where it folds a norm itself."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if any(isinstance(each, torch.nn.BatchNorm2d) for each in module.modules()):
            module = fuse(module)
        program = torch.onnx.export(module, sample, dynamo=True, opset_version=18, verbose=False)
    assert program is not None
    program.save(str(path))


def runs_of(name: str, batch: int, kind: str, device: str, *, compiled: bool) -> tuple[dict[str, Run], Tensor]:
    """What computes the outputs, by name, and the first output in float64."""
    module, sample = build(name, batch, kind)
    with tempfile.TemporaryDirectory() as folder:
        write(module, sample, Path(folder) / "model.onnx")
        model = ep.load(Path(folder) / "model.onnx")
        session = ep.Session(model, providers=[f"torch:{device}"])
        imported = ep.to_torch(model, verify=False).eval().to(device)
    there, module = tuple(each.to(device) for each in sample), module.to(device)
    feeds = dict(zip((spec.name for spec in session.inputs), there, strict=True))
    wide = tuple(each.double() if each.is_floating_point() else each for each in there)
    exact = _first(module.double()(*wide))
    module = module.to(getattr(torch, kind))
    runs: dict[str, Run] = {
        "eager": lambda: module(*there),
        "session": lambda: session.run(feeds),
        "module": lambda: imported(*there),
    }
    if compiled:
        faster = torch.compile(module)
        runs["compile"] = lambda: faster(*there)
    return runs, exact


def _first(result: Any) -> Tensor:
    while not isinstance(result, Tensor):
        result = next(iter(result.values() if isinstance(result, dict) else result))
    return result.double()


def times(runs: dict[str, Run], rounds: int, synchronize: Run) -> dict[str, float]:
    """Seconds a run: median of rounds that take turns, each long enough to hide the clock."""
    counts = {name: _count(run, synchronize) for name, run in runs.items()}
    found: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            found[name].append(_seconds(run, counts[name], synchronize))
    return {name: statistics.median(each) for name, each in found.items()}


def _seconds(run: Run, count: int, synchronize: Run) -> float:
    synchronize()
    start = time.perf_counter()
    for _ in range(count):
        run()
    synchronize()
    return (time.perf_counter() - start) / count


def _count(run: Run, synchronize: Run) -> int:
    for _ in range(5):  # libraries choose their kernels, and the provider captures
        run()
    return max(3, math.ceil(0.02 / _seconds(run, 1, synchronize)))


def row(name: str, batch: int, kind: str, device: str, rounds: int, *, compiled: bool) -> dict[str, Any]:
    """The figures of one model."""
    synchronize = torch.cuda.synchronize if device == "cuda" else lambda: None
    with torch.inference_mode(), torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
        runs, exact = runs_of(name, batch, kind, device, compiled=compiled)
        most = float(exact.abs().max())
        gaps = {each: (_first(runs[each]()) - exact).abs().max() for each in ("eager", "session", "module")}
        errors = {each: float(f"{float(gap) / most:.1e}") for each, gap in gaps.items()}
        seconds = times(runs, rounds, synchronize)
    found = {each: round(value * 1e3, 3) for each, value in seconds.items()}
    return {"model": name, "batch": batch, "type": kind, "milliseconds": found, "errors": errors}


def line(found: dict[str, Any]) -> str:
    """A row as it is printed."""
    took, errors = found["milliseconds"], found["errors"]
    ratios = "".join(
        f"{took[each] / took['eager']:9.2f}" if each in took else f"{'-':>9}"
        for each in ("session", "module", "compile")
    )
    head = f"{found['model']:12}{found['batch']:6}{found['type']:>10}{took['eager']:10.3f}"
    return f"{head}{ratios}{errors['eager']:9.0e}{errors['session']:9.0e}"


def mean(rows: Iterable[dict[str, Any]], one: str, other: str) -> float:
    """The geometric mean of one time over another."""
    logs = [math.log(each["milliseconds"][one] / each["milliseconds"][other]) for each in rows]
    return math.exp(sum(logs) / len(logs))


def main() -> int:
    """Print a line per model, batch and element type."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", action="append", choices=MODELS)
    parser.add_argument("--batch", action="append", type=int)
    parser.add_argument("--type", action="append", choices=TYPES)
    parser.add_argument("--device", default="cuda", choices=["cuda", "mps"])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--no-compile", action="store_true", help="leave torch.compile out, which takes a minute a row")
    parser.add_argument("--keep", type=Path, help="folder for the figures")
    arguments = parser.parse_args()
    logging.disable(logging.WARNING)
    name = torch.cuda.get_device_name() if arguments.device == "cuda" else arguments.device
    print(f"{name}, torch {torch.__version__}")
    print(
        f"{'model':12}{'batch':>6}{'type':>10}{'eager ms':>10}{'session':>9}{'module':>9}{'compile':>9}{'errors':>14}"
    )
    rows = []
    for model in arguments.model or MODELS:
        for batch in arguments.batch or BATCHES:
            for kind in arguments.type or TYPES:
                rows.append(
                    row(model, batch, kind, arguments.device, arguments.rounds, compiled=not arguments.no_compile)
                )
                print(line(rows[-1]), flush=True)
    print(f"geometric means: session / eager {mean(rows, 'session', 'eager'):.2f}", end="")
    print("" if arguments.no_compile else f", session / compile {mean(rows, 'session', 'compile'):.2f}")
    if arguments.keep:
        arguments.keep.mkdir(parents=True, exist_ok=True)
        keep(rows, name, arguments.keep / f"{name.replace(' ', '_').lower()}.json")
    return 0


def keep(rows: Iterable[dict[str, Any]], device: str, path: Path) -> None:
    """Write figures as JSON, a line each."""
    lines = ",\n".join(f"  {json.dumps(each)}" for each in rows)
    path.write_text(f'{{\n "device": "{device}",\n "torch": "{torch.__version__}",\n "rows": [\n{lines}\n ]\n}}\n')


if __name__ == "__main__":
    sys.exit(main())
