from __future__ import annotations

from typing import Any

import numpy as np

from tests.op_cases.case import Case, f32, f64

DOMAIN = "ai.onnx.preview.training"
RATE, FIRST, LATER = np.array(0.1, np.float32), np.array(0), np.array(3)
RATE64 = float(RATE)


def step(op: str, count: np.ndarray, *inputs: Any, **attributes: Any) -> Case:
    """Expected values by the schema's own pseudo-code, in float64: no oracle takes these operators at the hub."""
    case = Case(op, RATE, count, *inputs, **attributes).of(DOMAIN)
    values = [np.asarray(value, np.float64) for value in case.inputs[2:]]
    made = EXPECTED[op](int(count), *values, **attributes)
    return case.outputs(len(made)).giving(*(y.astype(case.inputs[2].dtype) for y in made))


def adagrad(
    t: int, x: Any, g: Any, h: Any, *, decay_factor: float = 0.0, norm_coefficient: float = 0.0, epsilon: float = 1e-6
) -> list[Any]:
    g = norm_coefficient * x + g
    h = h + g * g
    return [x - RATE64 / (1 + t * decay_factor) * g / (np.sqrt(h) + epsilon), h]


def adam(
    t: int, x: Any, g: Any, v: Any, h: Any, *, alpha: float = 0.9, beta: float = 0.999, **rest: float
) -> list[Any]:
    g = rest.get("norm_coefficient", 0.0) * x + g
    v, h = alpha * v + (1 - alpha) * g, beta * h + (1 - beta) * g * g
    rate = RATE64 * np.sqrt(1 - beta**t) / (1 - alpha**t) if t else RATE64
    return [
        (1 - rest.get("norm_coefficient_post", 0.0)) * (x - rate * v / (np.sqrt(h) + rest.get("epsilon", 1e-6))),
        v,
        h,
    ]


def momentum(
    t: int, x: Any, g: Any, v: Any, *, alpha: float, beta: float, mode: str, norm_coefficient: float
) -> list[Any]:
    g = norm_coefficient * x + g
    v = alpha * v + (beta if t else 1.0) * g
    return [x - RATE64 * (g + alpha * v if mode == "nesterov" else v), v]


EXPECTED = {"Adagrad": adagrad, "Adam": adam, "Momentum": momentum}
STATE = f32(3, low=0.1, high=2)

CASES = [
    *(step("Adagrad", count, f32(3), f32(3), STATE) for count in (FIRST, LATER)),
    step("Adagrad", LATER, f64(3), f64(3), f64(3, low=0.1), decay_factor=0.5, norm_coefficient=0.25,
         epsilon=0.5),
    *(step("Adam", count, f32(3), f32(3), f32(3), STATE) for count in (FIRST, LATER)),
    step("Adam", LATER, f64(3), f64(3), f64(3), f64(3, low=0.1), alpha=0.5, beta=0.75, norm_coefficient=0.25,
         norm_coefficient_post=0.125, epsilon=0.5),
    *(
        step("Momentum", count, f32(3), f32(3), f32(3), alpha=0.5, beta=0.75, mode=mode, norm_coefficient=0.25)
        for count in (FIRST, LATER)
        for mode in ("standard", "nesterov")
    ),
]  # fmt: skip
