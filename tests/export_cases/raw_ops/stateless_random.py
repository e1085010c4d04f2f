"""Random numbers from seeds."""

from __future__ import annotations

import numpy as np

from tests.export_cases.raw_ops.case import add, ints

for seed in ([1, 2], [-7, 2**31 - 1]):
    for shape in (ints(3, 5), ints([8]), ints([0])):
        for op in ("StatelessRandomUniform", "StatelessRandomNormal"):
            add(op, tolerance=2e-5, shape=shape, seed=ints(seed))
    add("StatelessRandomGetKeyCounter", seed=ints(seed))
KEY, COUNTER = np.array([2**40 + 3], np.uint64), np.array([0, 2**63 + 5], np.uint64)
for op in ("StatelessRandomUniformV2", "StatelessRandomNormalV2"):
    for algorithm in (1, 3):
        add(
            op, {}, "alg", tolerance=2e-5, shape=ints(3, 5), key=KEY, counter=COUNTER, alg=np.array(algorithm, np.int32)
        )
        for kind in ("int32", "int64", "uint32", "uint64"):
            how = {"shape": ints(3, 5), "key": KEY, "counter": COUNTER, "alg": np.array(algorithm, np.int32)}
            if op == "StatelessRandomUniformV2":
                add("StatelessRandomUniformFullIntV2", {"dtype": kind}, "alg", **how)
            if op == "StatelessRandomUniformV2" and kind.startswith("i"):  # no kernel without a sign on CPU
                low = -(2**30)
                for high in (50, 2**31 - 2, 2**62 if kind.endswith("64") else 51):
                    bounds = {"minval": np.array(low, kind), "maxval": np.array(high, kind)}
                    add("StatelessRandomUniformIntV2", {}, "alg", **how, **bounds)
for kind in ("int32", "int64"):
    bounds = {"minval": np.array(-3, kind), "maxval": np.array(9, kind)}
    add("StatelessRandomUniformInt", shape=ints(3, 5), seed=ints(4, -5), **bounds)
    add("StatelessRandomUniformFullInt", {"dtype": kind}, shape=ints(3, 5), seed=ints(4, -5))
add("StatelessRandomGetKeyCounterAlg", seed=ints(4, -5))
for shape in (ints(3, 5), ints(200), ints([0])):
    add("StatelessTruncatedNormal", tolerance=2e-5, shape=shape, seed=ints(4, -5))
    add(
        "StatelessTruncatedNormalV2", {}, "alg", tolerance=2e-5, shape=shape, key=KEY, counter=COUNTER,
        alg=np.array(1, np.int32),
    )  # fmt: skip
