"""Random draws: only that they run; shapes, types, seeds and distributions are held by tests of their own."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from tests.op_cases.case import Case, f16, f32, f64, floats, i64

LIKE = ("RandomNormalLike", "RandomUniformLike")

CASES = [
    *(Case(op, shape=shape).giving(None) for op in ("RandomNormal", "RandomUniform") for shape in ([2, 3], [], [0, 2])),
    *(Case(op, shape=[3], dtype=TensorProto.DOUBLE, seed=1.5).giving(None) for op in ("RandomNormal", "RandomUniform")),
    Case("RandomNormal", shape=[3], mean=2.0, scale=0.5).giving(None),
    Case("RandomUniform", shape=[3], low=2.0, high=3.0).giving(None),
    *(
        Case(op, make(2, 3)).giving(None)
        for op in ("RandomNormalLike", "RandomUniformLike")
        for make in (f32, f64, f16)
    ),
    *(
        Case(op, f32(2), dtype=TensorProto.FLOAT16, seed=2.0).giving(None)
        for op in ("RandomNormalLike", "RandomUniformLike")
    ),
    Case("RandomNormalLike", f32(2), mean=2.0, scale=0.5).giving(None),
    Case("RandomUniformLike", f32(2), low=2.0, high=3.0).giving(None),
    *(Case("Bernoulli", make(2, 3, low=0, high=1)).giving(None) for make in (f32, f64, f16)),
    Case("Bernoulli", floats(0, 1, 0, 1)).giving(floats(0, 1, 0, 1)),
    Case("Bernoulli", floats(0, 1), dtype=TensorProto.BOOL).giving(np.array([False, True])),
    *(Case("Bernoulli", f32(*shape, low=0, high=1)).giving(None) for shape in ((), (0,))),
    *(Case(op, i64(*shape), dtype=TensorProto.FLOAT).giving(None) for op in LIKE for shape in ((3,), (), (0, 2))),
    Case("Bernoulli", floats(0.5), seed=3.0).giving(None),
    Case("Multinomial", f32(2, 4)).giving(None),
    Case("Multinomial", f32(2, 4), sample_size=5, dtype=TensorProto.INT64, seed=4.0).giving(None),
    Case("Multinomial", floats(-np.inf, 0, -np.inf).reshape(1, 3), sample_size=3).giving(np.full((1, 3), 1, np.int32)),
]
