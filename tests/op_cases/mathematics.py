from __future__ import annotations

import math

import numpy as np

from tests.op_cases.case import FLOATS, Case, f32, f64, floats

SPECIAL = floats(np.nan, np.inf, -np.inf, 0.0, -0.0)
DOMAINS = {  # where each function is defined, away from the borders
    "Exp": (-3, 3),
    "Log": (0.1, 9),
    "Erf": (-3, 3),
    "Sin": (-9, 9),
    "Cos": (-9, 9),
    "Tan": (-1.4, 1.4),
    "Asin": (-1, 1),
    "Acos": (-1, 1),
    "Atan": (-9, 9),
    "Sinh": (-3, 3),
    "Cosh": (-3, 3),
    "Tanh": (-3, 3),
    "Asinh": (-9, 9),
    "Acosh": (1.1, 9),
    "Atanh": (-0.9, 0.9),
}
DOUBLES = np.linspace(-7, 7, 50)

CASES = [
    *(
        Case(op, make(3, 4, low=low, high=high))
        for op, (low, high) in DOMAINS.items()
        for make in FLOATS
        if (op, make) != ("Erf", f64)
    ),
    *(Case(op, f32(low=low, high=high)) for op, (low, high) in DOMAINS.items()),
    *(Case(op, f32(0, 2)) for op in DOMAINS),
    *(Case(op, SPECIAL) for op in DOMAINS),
    *(Case(op, floats(-2, 2, 1, -1)) for op in ("Log", "Asin", "Acos", "Acosh", "Atanh")),
    Case("Exp", floats(1000, -1000)),
    Case("Erf", DOUBLES).giving(np.array([math.erf(x) for x in DOUBLES])),  # onnx.reference computes it in float32
    Case("Erf", f32(70000, low=-7, high=7)),  # several blocks, the last one not full
    Case("Erf", floats(1e-30, -1e-30, 1e-40, 3.9, 4.1, -5, 1e19, -1e30)),
]
