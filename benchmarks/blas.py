"""Matrix products by NumPy's BLAS, by the copy of it that entrepot opens where it is faster, and by onnxruntime.

    python -m benchmarks.blas [--core Haswell] [--rounds 9]

``--core`` loads NumPy with the kernels of another processor, as OpenBLAS itself does on AMD machines with AVX-512
(Haswell). One thread, interleaved, best of rounds; prints GFLOP/s and the ratio of ours to onnxruntime's.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

SIZES = ((128, 768, 768), (128, 768, 3072), (256, 256, 256), (1024, 1024, 1024), (64, 576, 3136), (512, 4608, 49))
"""Rows, depth and columns: a transformer's layers, plain squares, unrolled convolutions."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--core", default="", help="kernels that NumPy's OpenBLAS is to use")
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args(arguments)
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # read when NumPy is imported
    if options.core:
        os.environ["OPENBLAS_CORETYPE"] = options.core
    import numpy as np

    os.environ.pop("OPENBLAS_CORETYPE", None)
    from entrepot.runtime.blas import choice, product

    titles = f"{'rows x depth x columns':24}{'NumPy':>10}{'ours':>10}{'onnxruntime':>14}{'ours / onnxruntime':>22}"
    print(f"{choice()}\n{titles}")
    rng = np.random.default_rng(0)
    for rows, depth, columns in SIZES:
        A, B = (rng.random(shape, np.float32) for shape in ((rows, depth), (depth, columns)))
        y = np.empty((rows, columns), np.float32)
        ways = [lambda: np.matmul(A, B, out=y), lambda: product(A, B, y), _onnxruntime(A, B)]  # noqa: B023 - used at once
        flops = [2e-9 * rows * depth * columns / seconds for seconds in _best(ways, options.rounds)]
        sizes = f"{rows} x {depth} x {columns}"
        print(f"{sizes:24}{flops[0]:10.0f}{flops[1]:10.0f}{flops[2]:14.0f}{flops[1] / flops[2]:22.2f}", flush=True)
    return 0


def _onnxruntime(A: Any, B: Any) -> Callable[[], Any]:
    """The product by a constant matrix, as a layer has it."""
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper

    graph = helper.make_graph(
        [helper.make_node("MatMul", ["A", "B"], ["Y"])],
        "product",
        [helper.make_tensor_value_info("A", TensorProto.FLOAT, A.shape)],
        [helper.make_tensor_value_info("Y", TensorProto.FLOAT, (A.shape[0], B.shape[1]))],
        [numpy_helper.from_array(B, "B")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, {"A": A})


def _best(ways: Sequence[Callable[[], Any]], rounds: int) -> list[float]:
    best = [float("inf")] * len(ways)
    for _ in range(rounds):
        for index, way in enumerate(ways):
            way()
            start = time.perf_counter()
            for _ in range(3):
                way()
            best[index] = min(best[index], (time.perf_counter() - start) / 3)
    return best


if __name__ == "__main__":
    sys.exit(main())
