"""The torch provider on ten models beside onnxruntime and our cpu provider: CPU time on one thread, best of rounds.

    python -m benchmarks.torch_provider [--model bert] [--rounds 7] [--provider torch --provider cpu] [--keep FOLDER]

Ratios below 1 are faster than onnxruntime. The last line is the geometric mean. All are given the same files, which
PyTorch's own exporter writes at opset 18.
"""

from __future__ import annotations

import benchmarks.runtime as one_thread  # keeps numeric libraries to one thread, so before they are imported

# isort: split
import argparse
import logging
import math
import sys
import tempfile
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

TEXTS = {
    "tiny_ops": lambda: _tiny_ops(100),
    "loop200": lambda: _LOOP,
    "elementwise": lambda: _ELEMENTWISE,
}
ZOO: dict[str, dict[str, Any]] = {
    "mobilenet_v2": {"classes": 1000, "size": 224, "width": 1.0},
    "unet": {"size": 256, "width": 32, "depth": 4},
}
MODELS = (
    "mlp",
    "tiny_ops",
    "loop200",
    "lstm",
    "elementwise",
    "mobilenet_v2",
    "resnet50",
    "unet",
    "gpt2_decode",
    "bert",
)


def _tiny_ops(rounds: int) -> str:
    """A chain of operators on sixteen numbers, four a round."""
    lines = ['<ir_version: 9, opset_import: ["" : 18]>', "tiny (float[1, 16] x0) => (float[1, 16] y)"]
    row = ", ".join(["0.5"] * 16)
    lines += [f"<float[1, 16] a = {{{row}}}, float[1, 16] b = {{{row}}}>", "{"]
    for n in range(rounds):
        result = "y" if n == rounds - 1 else f"x{n + 1}"
        lines += [f"p{n} = Mul(x{n}, a)", f"q{n} = Add(p{n}, b)", f"r{n} = Relu(q{n})", f"{result} = Sub(r{n}, a)"]
    return "\n".join([*lines, "}"])


_LOOP = """<ir_version: 9, opset_import: ["" : 18]>
loop (float[1, 16] x, float[16, 16] w) => (float[1, 16] y) {
    trips = Constant <value = int64 {200}> ()
    going = Constant <value = bool {1}> ()
    b = Constant <value = float[1] {0.01}> ()
    y = Loop (trips, going, x) <body = step (int64 i, bool c, float[1, 16] h) => (bool d, float[1, 16] z) {
        d = Identity (c)
        p = MatMul (h, w)
        q = Add (p, b)
        r = Tanh (q)
        z = Mul (r, b)
    }>
}"""

_ELEMENTWISE = """<ir_version: 9, opset_import: ["" : 18]>
elementwise (float[16, 1024, 1024] x) => (float[16, 1024, 1024] y) {
    a = Constant <value = float {0.5}> ()
    b = Constant <value = float {1.5}> ()
    x1 = Mul (x, a)
    x2 = Add (x1, b)
    x3 = Relu (x2)
    x4 = Sub (x3, a)
    x5 = Abs (x4)
    x6 = Mul (x5, b)
    x7 = Add (x6, a)
    x8 = Neg (x7)
    y = Mul (x8, a)
}"""


def gpt2_decode(batch: int = 1) -> tuple[Any, tuple[Any, ...]]:
    """GPT-2-small that reads one token a row after 255 others, whose keys and values it is given."""
    import torch
    from torch import Tensor, nn
    from torch.nn import functional

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.LayerNorm(768), nn.LayerNorm(768)
            self.given, self.attended = nn.Linear(768, 3 * 768), nn.Linear(768, 768)
            self.up, self.down = nn.Linear(768, 3072), nn.Linear(3072, 768)

        def forward(self, x: Tensor, past: Tensor) -> tuple[Tensor, Tensor]:
            q, k, v = (part.view(batch, 1, 12, 64).transpose(1, 2) for part in self.given(self.first(x)).chunk(3, -1))
            both = torch.cat((past, torch.stack((k, v))), 3)
            read = functional.scaled_dot_product_attention(q, both[0], both[1])
            x = x + self.attended(read.transpose(1, 2).reshape(batch, 1, 768))
            return x + self.down(functional.gelu(self.up(self.second(x)), approximate="tanh")), both

    class Decoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words, self.places = nn.Embedding(50257, 768), nn.Embedding(1024, 768)
            self.blocks = nn.ModuleList(Block() for _ in range(12))
            self.last, self.head = nn.LayerNorm(768), nn.Linear(768, 50257, bias=False)

        def forward(self, token: Tensor, *pasts: Tensor) -> tuple[Tensor, ...]:
            x = self.words(token) + self.places.weight[255]
            present = []
            for block, past in zip(self.blocks, pasts, strict=True):
                x, both = block(x, past)
                present.append(both)
            return self.head(self.last(x)), *present

    torch.manual_seed(0)
    return Decoder(), (
        torch.ones(batch, 1, dtype=torch.int64),
        *(torch.randn(2, batch, 12, 255, 64) for _ in range(12)),
    )


def write(name: str, path: Path) -> None:
    """Write one of the models."""
    import onnx.parser

    if name in TEXTS:
        path.write_bytes(onnx.parser.parse_model(TEXTS[name]()).SerializeToString())
    elif name in one_thread.TARGETS:
        one_thread.export(name, path)
    else:
        _export(*_module(name), path)


def _module(name: str) -> tuple[Any, tuple[Any, ...]]:
    from entrepot.models_zoo import registry

    if name == "gpt2_decode":
        return gpt2_decode()
    built = registry.build(name, **ZOO[name])
    return built.module, tuple(built.sample)


def _export(module: Any, sample: tuple[Any, ...], path: Path) -> None:
    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(module.eval(), sample, dynamo=True, opset_version=18, verbose=False).save(str(path))


def calls(path: Path, feeds: Mapping[str, Any], providers: list[str]) -> dict[str, Callable[[], list[Any]]]:
    """What computes the outputs, by name: each provider, and onnxruntime."""
    import onnxruntime

    import entrepot as ep

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    peer = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    sessions = {provider: ep.Session(path, providers=[provider], threads=1) for provider in providers}
    runs: dict[str, Callable[[], list[Any]]] = {"onnxruntime": lambda: peer.run(None, dict(feeds))}
    for provider, session in sessions.items():
        runs[provider] = lambda session=session: list(session.run(feeds).values())
    return runs


def error(got: list[Any], expected: list[Any]) -> float:
    """The largest difference, relative to the largest value."""
    pairs = zip(got, expected, strict=True)
    return max(float(np.abs(a - b).max() / max(float(np.abs(b).max()), 1e-30)) for a, b in pairs)


def setting() -> str:
    """What torch multiplies with, and on which processor."""
    import torch

    library = "MKL" if torch.backends.mkl.is_available() else "another BLAS than MKL"
    convolves = "oneDNN" if torch.backends.mkldnn.is_available() else "no oneDNN"
    return (
        f"torch {torch.__version__}: {library}, {convolves}, {torch.backends.cpu.get_cpu_capability()}; {_processor()}"
    )


def _processor() -> str:
    told = Path("/proc/cpuinfo")
    names = (
        [line.partition(": ")[2] for line in told.read_text().splitlines() if line.startswith("model name")]
        if told.exists()
        else []
    )
    return names[0] if names else "unknown processor"


def main() -> int:
    """Print a line per model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", action="append", choices=MODELS)
    parser.add_argument("--provider", action="append", help="ours to measure: torch and cpu unless named")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--keep", type=Path, help="folder where the models are kept for the next run")
    arguments = parser.parse_args()
    logging.disable(logging.WARNING)
    providers = arguments.provider or ["torch", "cpu"]
    print(setting())
    heads = "".join(f"{provider + ' /':>12}" for provider in providers)
    print(f"{'model':14}{'onnxruntime ms':>15}{heads}{'error':>10}", flush=True)
    ratios: dict[str, list[float]] = {provider: [] for provider in providers}
    with tempfile.TemporaryDirectory() as temporary:
        for name in arguments.model or MODELS:
            path = (arguments.keep or Path(temporary)) / f"{name}.onnx"
            path.parent.mkdir(parents=True, exist_ok=True)
            if not path.exists():
                write(name, path)
            runs = calls(path, one_thread.feeds_of(path), providers)
            expected = runs["onnxruntime"]()
            worst = max(error(runs[provider](), expected) for provider in providers)
            times = one_thread.best_times(runs, arguments.rounds)
            for provider in providers:
                ratios[provider].append(times[provider] / times["onnxruntime"])
            shown = "".join(f"{ratios[provider][-1]:12.2f}" for provider in providers)
            print(f"{name:14}{times['onnxruntime'] * 1e3:15.4g}{shown}{worst:10.1e}", flush=True)
    means = "".join(f"{math.exp(np.mean(np.log(ratios[provider]))):12.2f}" for provider in providers)
    print(f"{'geometric mean':29}{means}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
