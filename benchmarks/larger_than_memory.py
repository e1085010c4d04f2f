"""What exporting a module costs whose weights stay in their safetensors file: memory, and bytes written.

    python -m benchmarks.larger_than_memory [--gigabytes 3] [--folder DIR] [--no-verify]

Memory is what the process alone holds at most (``RssAnon``); pages of the mapped file are the system's to drop. It is
printed beside that of a process which only imports torch and runs the module once on the same mapped weights.
"""

from __future__ import annotations

import argparse
import json
import os
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Self

_WIDTH = 4096
_LAYER = 4 * _WIDTH * _WIDTH  # bytes
_ALLOWED = 2**30  # bytes above torch's own


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; the exit code is 1 where more is held or anything is copied."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gigabytes", type=float, default=3.0, help="of weights")
    parser.add_argument("--folder", type=Path, help="where the weights go for a while; by default a temporary folder")
    parser.add_argument("--no-verify", action="store_true", help="leave the verification out")
    parser.add_argument("--part", choices=["torch", "export"], help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.part:
        return _part(options)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        layers = max(1, round(options.gigabytes * 2**30 / _LAYER))
        write_weights(Path(folder) / "model.safetensors", layers, _WIDTH)
        own, ours = (_measured(part, options, folder) for part in ("torch", "export"))
        written = sum(each.stat().st_size for each in Path(folder).iterdir() if each.suffix != ".safetensors")
    above = ours["bytes"] - own["bytes"]
    print(f"weights {layers * _LAYER / 2**30:.2f} GiB; torch alone {own['bytes'] / 2**20:.0f} MiB")
    print(f"export {ours['bytes'] / 2**20:.0f} MiB, {above / 2**20:.0f} MiB above, in {ours['seconds']:.0f} s")
    print(f"written beside the weights: {written} bytes; proved: {ours['proved']}")
    return int(above > _ALLOWED or written > _LAYER)


def write_weights(path: Path, layers: int, width: int) -> None:
    """A safetensors file of square matrices, without ever holding more than one of them."""
    import numpy as np

    size = 4 * width * width
    entries = {
        f"{at}.weight": {"dtype": "F32", "shape": [width, width], "data_offsets": [at * size, (at + 1) * size]}
        for at in range(layers)
    }
    header = json.dumps(entries).encode()
    generator = np.random.default_rng(0)
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(header)) + header)
        for _ in range(layers):
            file.write((generator.standard_normal((width, width), np.float32) / np.float32(width**0.5)).tobytes())


def _measured(part: str, options: argparse.Namespace, folder: str) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.larger_than_memory", "--part", part, "--folder", folder]
    command += ["--no-verify"] if options.no_verify else []
    result = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, float] = json.loads(result.stdout.splitlines()[-1])
    return found


def _part(options: argparse.Namespace) -> int:
    """In a process of its own: one of the two things that are compared."""
    import torch

    import entrepot as ep
    from entrepot.exporters.torch.sources.checkpoint import Checkpoint

    weights = options.folder / "model.safetensors"
    layers = weights.stat().st_size // _LAYER
    with torch.device("meta"):
        module = torch.nn.Sequential(*(torch.nn.Linear(_WIDTH, _WIDTH, bias=False) for _ in range(layers))).eval()
    sample = torch.randn(2, _WIDTH)
    start, proved = time.perf_counter(), ""
    with Peak() as peak:
        if options.part == "torch":
            with Checkpoint(module, weights).inside(), torch.no_grad():
                module(sample)
        else:
            path = options.folder / "net.onnx"
            model = ep.export(module, sample, path, weights=weights, verify=not options.no_verify, progress=False)
            proved = f"{model.report.ok} by {', '.join(model.report.providers)}" if model.report is not None else "no"
    print(json.dumps({"bytes": peak.bytes, "seconds": time.perf_counter() - start, "proved": proved}))
    return 0


class Peak:
    """The most memory that this process alone holds meanwhile, looked at fifty times a second."""

    def __init__(self) -> None:
        self.bytes = 0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    @staticmethod
    def now() -> int:
        """The bytes that it holds at this moment."""
        lines = Path(f"/proc/{os.getpid()}/status").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon"))

    def _watch(self) -> None:
        while True:
            self.bytes = max(self.bytes, self.now())
            if self._done.wait(0.02):
                return


if __name__ == "__main__":
    sys.exit(main())
