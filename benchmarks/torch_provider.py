"""The torch provider against onnxruntime: CPU time on one thread, peers in turn, best of rounds, on ten models.

    python -m benchmarks.torch_provider [--model bert] [--rounds 7] [--keep folder] [--plan]

Ratios below 1 are faster than onnxruntime. CUDA was not measured: no device was at hand when this was written.
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
import warnings  # noqa: E402
from collections import Counter  # noqa: E402
from collections.abc import Callable, Mapping  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

import numpy as np  # noqa: E402

from benchmarks.runtime import best_times, feeds_of, torch_module  # noqa: E402

TARGETS = {"bert": 0.85, "unet": 1.05, "resnet50": 1.15}
"""Bars for single models; that of the geometric mean is 1.4."""

TEXTS = {
    "tiny_ops": (
        "g (float[16] x) => (float[16] y) <float[16] w = {"
        + ", ".join(f"{0.5 + 0.05 * n:.2f}" for n in range(16))
        + "}> {"
        + "\n".join(f"a{n + 1} = {'Mul' if n % 2 else 'Add'}(a{n}, w)  " for n in range(398)).replace("(a0,", "(x,")
        + "t = Tanh(a398)  y = Relu(t) }"
    ),
    "loop200": """g (float[1, 64] x, float[64, 64] w) => (float[1, 64] y)
        <int64 count = {200}, bool go_on = {1}, float scale = {0.05}> {
        v = Mul(w, scale)
        y = Loop(count, go_on, x) <body = b (int64 i, bool c, float[1, 64] h) => (bool d, float[1, 64] k) {
            d = Identity(c)  p = MatMul(h, v)  q = Add(p, x)  k = Tanh(q) }> }""",
    "elementwise": """g (float[4096, 4096] x, float[4096] b) => (float[4096, 4096] y) {
        s = Add(x, b)  g = Sigmoid(s)  m = Mul(s, g)  t = Tanh(m)  e = Exp(t)  a = Abs(e)  r = Sqrt(a)
        q = Sub(r, b)  y = Relu(q) }""",
}


def _decoder() -> tuple[Any, tuple[Any, ...]]:
    """A step of GPT-2 small: one token, 255 before it."""
    import torch

    class Block(torch.nn.Module):
        def __init__(self, width: int, heads: int) -> None:
            super().__init__()
            self.heads = heads
            self.before, self.after = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
            self.qkv, self.out = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
            self.up, self.down = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)

        def forward(self, x: Any, key: Any, value: Any) -> Any:
            batch, length, width = x.shape
            q, k, v = (
                part.reshape(batch, length, self.heads, -1).transpose(1, 2)
                for part in self.qkv(self.before(x)).split(width, 2)
            )
            key, value = torch.cat([key, k], 2), torch.cat([value, v], 2)
            mixed = torch.nn.functional.scaled_dot_product_attention(q, key, value)
            x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
            hidden = torch.nn.functional.gelu(self.up(self.after(x)), approximate="tanh")
            return x + self.down(hidden), key, value

    class Decoder(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tokens, self.places = torch.nn.Embedding(50257, 768), torch.nn.Embedding(1024, 768)
            self.blocks = torch.nn.ModuleList(Block(768, 12) for _ in range(12))
            self.norm = torch.nn.LayerNorm(768)

        def forward(self, ids: Any, places: Any, past: list[Any]) -> Any:
            x, present = self.tokens(ids) + self.places(places), []
            for number, block in enumerate(self.blocks):
                x, *cache = block(x, past[2 * number], past[2 * number + 1])
                present += cache
            return self.norm(x) @ self.tokens.weight.T, *present

    past = [torch.randn(1, 12, 255, 64) for _ in range(24)]
    return Decoder(), (torch.tensor([[5]]), torch.tensor([[255]]), past)


def _module(name: str) -> tuple[Any, tuple[Any, ...]]:
    from entrepot.models_zoo import registry

    if name == "gpt2":
        return _decoder()
    if name in ("mobilenet_v2", "unet"):
        size = {"size": 224, "width": 1.0, "classes": 1000} if name == "mobilenet_v2" else {"size": 256, "width": 32}
        built = registry.build(name, **size)
        sample = built.samples[0]
        return built.module, tuple(sample.values()) if isinstance(sample, Mapping) else tuple(sample)
    return torch_module(name)


MODELS = ("mlp", "tiny_ops", "loop200", "lstm", "elementwise", "mobilenet_v2", "resnet50", "unet", "gpt2", "bert")


def write(name: str, path: Path) -> None:
    """Write one benchmark model, as torch.onnx writes it, or from its text."""
    import onnx

    if name in TEXTS:
        onnx.save(onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 18]> {TEXTS[name]}'), path)
        return
    import torch

    torch.manual_seed(0)
    module, inputs = _module(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(module.eval(), inputs, dynamo=True, opset_version=18, verbose=False).save(str(path))


def runners(path: Path, feeds: Mapping[str, Any], provider: str) -> dict[str, Callable[[], list[Any]]]:
    """A call per runtime that computes the same outputs."""
    import onnxruntime

    import entrepot as ep

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = ep.Session(path, providers=[provider], threads=1)
    peer = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return {
        "torch": lambda: list(session.run(feeds).values()),
        "onnxruntime": lambda: list(peer.run(None, feeds)),
    }


def largest_error(calls: Mapping[str, Callable[[], list[Any]]]) -> float:
    """Largest difference from onnxruntime, relative to its largest value."""
    pairs = zip(calls["torch"](), calls["onnxruntime"](), strict=True)
    return max(float(np.abs(a - b).max() / max(float(np.abs(b).max()), 1e-30)) for a, b in pairs)


def main() -> int:
    """Print a line per model, and the geometric mean."""
    import torch

    import entrepot as ep

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", action="append", choices=MODELS)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--keep", type=Path, help="folder where exported models are kept for the next run")
    parser.add_argument("--provider", default="torch")
    parser.add_argument("--plan", action="store_true", help="count what nodes became instead")
    arguments = parser.parse_args()
    logging.disable(logging.WARNING)
    torch.set_num_threads(1)
    print(
        f"torch {torch.__version__}, {torch.backends.cpu.get_cpu_capability()}, MKL {torch.backends.mkl.is_available()}"
    )
    ratios = []
    with tempfile.TemporaryDirectory() as temporary:
        for name in arguments.model or MODELS:
            path = (arguments.keep or Path(temporary)) / f"{name}.onnx"
            if not path.exists():
                write(name, path)
            if arguments.plan:
                plan = ep.Session(path, providers=[arguments.provider]).plan()
                print(name, Counter(f"{row.op_type} {row.how}" for row in plan.placements).most_common(12))
                continue
            feeds = feeds_of(path)
            calls = runners(path, feeds, arguments.provider)
            error = largest_error(calls)
            times = best_times(calls, arguments.rounds)
            ratios.append(times["torch"] / times["onnxruntime"])
            bar = f"{TARGETS[name]:.2f}" if name in TARGETS else "-"
            print(f"{name:14}{times['torch'] * 1e3:10.4g} ms{ratios[-1]:8.2f}{bar:>6}{error:10.1e}", flush=True)
    if ratios:
        print(f"geometric mean {math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
