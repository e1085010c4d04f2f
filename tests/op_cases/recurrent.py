from __future__ import annotations

from typing import Any

import numpy as np

from tests.op_cases.case import Case, bf16, f16, f32, f64

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
ORT = "onnx.reference does one direction of plain cells only"
SIZE, H = 4, 3


def inputs(op: str, directions: int = 1, length: int = 5, batch: int = 2, make: Any = f32) -> list[Any]:
    gates = GATES[op] * H
    return [
        make(length, batch, SIZE),
        make(directions, gates, SIZE, low=-1, high=1),
        make(directions, gates, H, low=-1, high=1),
    ]


def bias(op: str, directions: int = 1) -> Any:
    return f32(directions, 2 * GATES[op] * H)


def state(op: str, directions: int = 1, batch: int = 2) -> list[Any]:
    return [f32(directions, batch, H, low=-1, high=1)] * (2 if op == "LSTM" else 1)


def by_ort(case: Case, outputs: int | None = None) -> Case:
    case = case.held_to("onnxruntime", why=ORT)
    return case.outputs(outputs or (3 if case.op_type == "LSTM" else 2))


LENGTHS = np.array([5, 2], np.int32)
EACH = list(GATES)

CASES = [
    *(Case(op, *inputs(op), hidden_size=H).outputs(2) for op in EACH),
    *(by_ort(Case(op, *inputs(op), bias(op), None, *state(op), hidden_size=H)) for op in EACH),
    *(by_ort(Case(op, *inputs(op), bias(op), LENGTHS, *state(op), hidden_size=H)) for op in EACH),
    *(by_ort(Case(op, *inputs(op), bias(op), hidden_size=H, direction="reverse")) for op in EACH),
    *(by_ort(Case(op, *inputs(op), bias(op), LENGTHS, hidden_size=H, direction="reverse")) for op in EACH),
    *(
        by_ort(Case(op, *inputs(op, 2), bias(op, 2), lengths, *state(op, 2), hidden_size=H, direction="bidirectional"))
        for op in EACH
        for lengths in (None, LENGTHS)
    ),
    *(by_ort(Case(op, *inputs(op, batch=1), bias(op), hidden_size=H)) for op in EACH),
    *(by_ort(Case(op, *inputs(op, length=1), bias(op), hidden_size=H)) for op in EACH),
    *(by_ort(Case(op, *inputs(op), bias(op), hidden_size=H, clip=0.3)) for op in EACH),
    *(
        Case(op, *inputs(op), hidden_size=H, layout=1).outputs(2)
        .held_to("reference", why="onnxruntime refuses layout=1")
        for op in EACH
    ),
    *(Case(op, *inputs(op, make=f64), hidden_size=H).outputs(2) for op in EACH),
    *(Case(op, *inputs(op, make=make), hidden_size=H).outputs(2) for op in EACH for make in (f16, bf16)),
    by_ort(Case("RNN", *inputs("RNN"), bias("RNN"), hidden_size=H, activations=["Relu"])),
    *(
        by_ort(Case("RNN", *inputs("RNN"), bias("RNN"), hidden_size=H, activations=[name]))
        for name in ("Sigmoid", "Softsign", "Softplus", "Elu", "HardSigmoid", "LeakyRelu")
    ),
    *(
        by_ort(Case("RNN", *inputs("RNN"), hidden_size=H, activations=[name], **parameters))
        for name, parameters in (
            ("Affine", {"activation_alpha": [0.5], "activation_beta": [0.1]}),
            ("ScaledTanh", {"activation_alpha": [0.5], "activation_beta": [2.0]}),
            ("ThresholdedRelu", {"activation_alpha": [0.75]}),
        )
    ),
    by_ort(Case("GRU", *inputs("GRU"), bias("GRU"), None, *state("GRU"), hidden_size=H, linear_before_reset=1)),
    by_ort(Case("GRU", *inputs("GRU", 2), bias("GRU", 2), LENGTHS, hidden_size=H, linear_before_reset=1,
                direction="bidirectional")),
    by_ort(Case("GRU", *inputs("GRU"), bias("GRU"), hidden_size=H, activations=["HardSigmoid", "Relu"],
                activation_alpha=[0.3], activation_beta=[0.4])),
    by_ort(Case("LSTM", *inputs("LSTM"), bias("LSTM"), None, *state("LSTM"), f32(1, 3 * H), hidden_size=H)),
    by_ort(Case("LSTM", *inputs("LSTM"), bias("LSTM"), hidden_size=H, input_forget=1)),
    by_ort(Case("LSTM", *inputs("LSTM"), bias("LSTM"), hidden_size=H, activations=["Sigmoid", "Relu", "Tanh"])),
    by_ort(Case("LSTM", *inputs("LSTM"), bias("LSTM"), hidden_size=H, activations=["HardSigmoid", "Tanh", "ScaledTanh"],
                activation_alpha=[0.3, 0.5], activation_beta=[0.4, 2.0])),
    *(
        Case(op, *inputs(op, batch=0), hidden_size=H).outputs(2).giving(np.zeros((5, 1, 0, H), np.float32), None)
        for op in EACH
    ),
]  # fmt: skip
