"""Where evaluators of different opsets disagree in any case, or the specification leaves a result open.

Each entry names an operator, what must be true of a use of it, and why; no other use of that operator is left out.
``tests/ir/opset/test_rows.py`` checks that every entry is still needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from entrepot.ir.opset.rules import Step
from tests.op_cases.case import Case


@dataclass(frozen=True)
class Difference:
    """Results that prove nothing about a conversion.

    Attributes:
        op_type: The operator.
        below: A result is left out where it comes from an opset below this one, or starts from one.
        about: What must be true of the case.
        why: What differs.
        above: The entry does not apply below this opset.
    """

    op_type: str
    below: int
    about: Callable[[Case], bool]
    why: str
    above: int = 0


def _arrays(case: Case) -> Iterator[np.ndarray]:
    return (value for value in case.inputs if isinstance(value, np.ndarray))


def has_nan(case: Case) -> bool:
    """NaN among the inputs."""
    floats = [value.astype(np.float64) for value in _arrays(case) if value.dtype.kind in "fV"]
    return any(np.isnan(value).any() for value in floats)


def has_words(case: Case) -> bool:
    """A tensor of strings among the inputs."""
    return any(value.dtype.kind == "O" for value in _arrays(case))


def is_zero(case: Case) -> bool:
    """Nothing but zeros."""
    return not any(value.any() for value in _arrays(case))


def overflows(case: Case) -> bool:
    """16-bit floats: either none, or finite ones whose exponentials that type cannot represent."""
    for value in _arrays(case):
        if value.dtype.name in ("float16", "bfloat16"):
            most = np.log(float(ml_dtypes.finfo(value.dtype).max))
            sizes = np.abs(value.astype(np.float64))
            if not value.size or (np.isfinite(sizes) & (sizes > most)).any():
                return True
    return False


def trains_on_nothing(case: Case) -> bool:
    """Statistics of a batch without elements."""
    return bool(case.attributes.get("training_mode")) and not next(_arrays(case)).size


def is_empty(case: Case) -> bool:
    """No elements in the first input."""
    return case.inputs[0].size == 0


def transforms_two(case: Case) -> bool:
    """A softmax or a logistic function of several targets."""
    return case.attributes.get("post_transform") in (1, 2) and case.attributes.get("n_targets", 1) > 1


def dilates_alike(case: Case) -> bool:
    """Windows with gaps, and padding that makes one of them per stride."""
    gaps = case.attributes.get("dilations", [])
    return str(case.attributes.get("auto_pad", "")).startswith("SAME") and any(gap != 1 for gap in gaps)


def samples_at_halves(case: Case) -> bool:
    """A grid of half precision."""
    return case.inputs[1].dtype.name in ("float16", "bfloat16")


def always(_case: Any) -> bool:
    """Any use."""
    return True


DIFFERENCES = (
    Difference("Trilu", 14, has_words, "onnx.reference puts the number 0 among strings"),
    Difference("Sign", 9, has_nan, "the sign of NaN is not specified"),
    Difference("Shrink", 9, has_nan, "nothing tells NaN from numbers below opset 9: it stays NaN instead of 0"),
    Difference("DynamicQuantizeLinear", 11, is_zero, "the schema's body divides by a range of 0, onnxruntime does not"),
    Difference(
        "BatchNormalization",
        14,
        trains_on_nothing,
        "the mean of nothing is undefined (ReduceMean 18 says so): NaN for the kernel, 0 for onnxruntime's ReduceMean",
    ),
    Difference("MeanVarianceNormalization", 13, always, "onnx's checker refuses the body that its version 13 has"),
    Difference(
        "ReduceLogSumExp", 19, overflows, "onnxruntime at 18, and only there, runs the schema's body: Exp first"
    ),
    Difference("ReduceMean", 18, is_empty, "the mean of nothing is undefined, says the description"),
    Difference("Bernoulli", 22, always, "onnxruntime runs the schema's body, where 1 has probability 1 - p", above=15),
    Difference("Dropout", 12, always, "onnxruntime's Dropout 10 gives a mask of zeros where nothing is dropped"),
    Difference(
        "TreeEnsemble",
        5,
        transforms_two,
        "onnxruntime 1.31 takes post_transform 1 for LOGISTIC and 2 for SOFTMAX, the specification the other way round",
    ),
    *(
        Difference(
            name,
            22,
            dilates_alike,
            "onnxruntime leaves dilations out of SAME padding; the formula of pad_shape has them",
        )
        for name in ("AveragePool", "LpPool", "MaxPool")
    ),
    Difference(
        "GridSample", 22, samples_at_halves, "onnx.reference, the only one to take such grids, rounds positions to them"
    ),
)


def known(case: Case, step: Step) -> str:
    """Why the evaluators disagree about this case at this step in any case, or nothing."""
    lower = min(step.start, step.stop) or max(step.start, step.stop) - 1
    for difference in DIFFERENCES:
        is_near = difference.above <= lower < difference.below
        if is_near and difference.op_type == case.op_type and difference.about(case):
            return difference.why
    return ""
