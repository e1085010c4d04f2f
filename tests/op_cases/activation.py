from __future__ import annotations

import math

import numpy as np

from tests.op_cases.case import FLOATS, SIGNED, Case, bf16, f16, f32, f64, floats, u8

SPECIAL = floats(np.nan, np.inf, -np.inf, 0.0, -0.0)
LARGE = floats(100, -100, 1000, -1000, 1e-6, -1e-6)
PLAIN = (
    "Relu",
    "LeakyRelu",
    "ThresholdedRelu",
    "Sigmoid",
    "HardSigmoid",
    "HardSwish",
    "Swish",
    "Softplus",
    "Softsign",
    "Mish",
    "Elu",
    "Celu",
    "Selu",
    "Gelu",
    "Shrink",
)
BOUNDED_ONLY = ("HardSwish", "Swish", "Mish", "Softsign", "Gelu")
"""Not asked about infinities: each oracle multiplies or divides infinity by zero or infinity somewhere else."""
ATTRIBUTES = {
    "LeakyRelu": {"alpha": 0.3},
    "ThresholdedRelu": {"alpha": 0.4},
    "HardSigmoid": {"alpha": 0.3, "beta": 0.1},
    "Swish": {"alpha": 1.7},
    "Elu": {"alpha": 0.7},
    "Celu": {"alpha": 0.7},
    "Selu": {"alpha": 1.2, "gamma": 0.8},
    "Gelu": {"approximate": "tanh"},
    "Shrink": {"bias": 0.3, "lambd": 1.1},
}
DOUBLES = np.linspace(-5, 5, 21)

CASES = [
    *(Case(op, f32(4, 5)) for op in PLAIN),
    *(Case(op, f64(4, 5)) for op in PLAIN if op not in ("Gelu", "Shrink")),
    Case("Shrink", f64(4, 5)).held_to("reference", why="onnxruntime computes it in float32"),
    Case("Gelu", DOUBLES).giving(np.array([x * (1 + math.erf(x / math.sqrt(2))) / 2 for x in DOUBLES])),
    *(Case(op, make(4, 5)) for op in PLAIN for make in (f16,)),
    *(Case(op, make(4, 5)) for op in PLAIN for make in (bf16,)),
    *(Case(op, f32(*shape)) for op in PLAIN for shape in ((), (0, 2))),
    *(Case(op, f32(40000)) for op in PLAIN),
    *(Case(op, SPECIAL) for op in PLAIN if op not in BOUNDED_ONLY),
    *(Case(op, floats(np.nan, 0.0, -0.0)) for op in BOUNDED_ONLY),
    *(Case(op, LARGE) for op in PLAIN),
    *(
        Case(op, f32(4, 5), **{name: value})
        for op, attributes in ATTRIBUTES.items()
        for name, value in attributes.items()
    ),
    Case("Gelu", f64(4, 5), approximate="tanh").computed_in(
        np.float32, why="both oracles have its constants in float32"
    ),
    Case("Gelu", f16(4, 5), approximate="tanh"),
    *(Case("Relu", make(2, 3)) for make in SIGNED),
    *(Case("Shrink", make(2, 3)) for make in (*SIGNED, u8)),
    Case("Shrink", f32(4, 5), bias=0.3, lambd=0.9),
    *(Case("PRelu", make(2, 3, 4), make(3, 1)) for make in (*FLOATS, *SIGNED[2:])),
    *(Case("PRelu", f32(2, 3, 4), f32(*shape)) for shape in ((), (1,), (4,), (2, 3, 4))),
    Case("PRelu", f32(), f32()),
    Case("PRelu", f32(0, 3), f32(3)),
    Case("PRelu", SPECIAL, f32(1)),
    *(Case("SwiGLU", make(2, 3), make(2, 3)) for make in (f32, f16, bf16)),
    Case("SwiGLU", f32(2, 3), f32(2, 3), alpha=1.7),
    Case("SwiGLU", f64(2, 3), f64(2, 3)),
    Case("SwiGLU", floats(np.nan, 1), floats(1, np.nan)),
    Case("SwiGLU", f32(), f32()),
    Case("SwiGLU", f32(0, 3), f32(0, 3)),
]
