"""Kill -9 inside ``save`` at random moments: how often is what is left on disk not one whole model?

Each round forks a process that saves one version of a model after the other to the same path, kills it at a random
moment, and reads what is there: the metadata names a version, and every weight must be of that version.

    python benchmarks/kill_during_save.py [--kills 60] [--mib 16] [--seed 0]
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import tempfile
import time
from itertools import count
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper

import entrepot as ep

WEIGHTS = 4
MODES: dict[str, str | None] = {"inline": None, "external": "weights.bin", "external, own name": "net.onnx.data"}


def build(version: int, size: int) -> ep.Model:
    """A sum of weights that all contain the version."""
    array = np.full(size, version, dtype=np.float32)
    weights = [numpy_helper.from_array(array, f"w{index}") for index in range(WEIGHTS)]
    graph = helper.make_graph(
        [helper.make_node("Sum", ["x", *(weight.name for weight in weights)], ["y"])],
        "kill",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [size])],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [size])],
        weights,
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    helper.set_model_props(proto, {"version": str(version)})
    return ep.load(proto)


def is_whole(path: Path) -> bool:
    """Whether the model loads, and all its weights are of the version it names."""
    try:
        model = ep.load(path)
    except ep.EntrepotError as error:
        print(f"  broken: {error}")
        return False
    version = float(model.metadata["version"])
    tensors = [value.const_value for value in model.ir.graph.initializers.values()]
    return len(tensors) == WEIGHTS and all(bool((tensor.numpy() == version).all()) for tensor in tensors if tensor)


def save_for_ever(path: Path, mode: str | None, start: int, size: int, ready: int) -> None:
    """What the process that is going to be killed does."""
    models = [build(start + step, size) for step in range(3)]
    os.write(ready, b"!")
    for step in count():
        models[step % 3].save(path, external_data=mode)


def kill_one(path: Path, mode: str | None, start: int, size: int, delay: float) -> None:
    """Fork, wait until saving begins, and kill."""
    reader, ready = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            save_for_ever(path, mode, start, size, ready)
        finally:
            os._exit(1)
    os.read(reader, 1)
    time.sleep(delay)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(reader)
    os.close(ready)


def measure(name: str, mode: str | None, kills: int, size: int, chance: random.Random) -> tuple[int, int, int]:
    """Broken pairs, kills that left something behind, and files left after one more save."""
    broken = littered = 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "net.onnx"
        begin = time.perf_counter()
        build(0, size).save(path, external_data=mode)
        duration = time.perf_counter() - begin
        expected = len(os.listdir(folder))
        for index in range(kills):
            kill_one(path, mode, 3 * index + 1, size, chance.uniform(0, 3 * duration))
            broken += not is_whole(path)
            littered += len(os.listdir(folder)) != expected
        build(0, size).save(path, external_data=mode)
        left = len(os.listdir(folder)) - expected
    print(f"{name}: {broken} of {kills} broken; {littered} kills left files behind, {left} left after the next save")
    return broken, littered, left


def main() -> int:
    """Print the figures; the exit status says whether any pair was broken or any file left behind."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=60)
    parser.add_argument("--mib", type=int, default=16)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    size = options.mib * 2**20 // 4 // WEIGHTS
    results = [measure(name, mode, options.kills, size, random.Random(options.seed)) for name, mode in MODES.items()]
    return int(any(broken or left for broken, _, left in results))


if __name__ == "__main__":
    sys.exit(main())
