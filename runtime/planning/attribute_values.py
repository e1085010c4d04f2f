"""What the attributes of an operator may say, where their type allows more."""

from __future__ import annotations

import math
from typing import Any

from entrepot.ir.errors import ModelFormatError
from entrepot.runtime.planning.plan import Step

_DOMAINS = ("", "ai.onnx.ml")
_FLAGS = """
align_corners allowzero antialias ceil_mode center_point_box count_include_pad detect_negative detect_positive
exclude_outside exclusive fmod input_forget interleaved inverse is_case_sensitive is_causal keepdims largest layout
linear_before_reset new_axis noop_with_empty_axes onesided periodic reverse saturate select_last_index sorted
storage_order training_mode transA transB upper
"""
_POSITIVE = "blocksize dilations group kernel_shape num_groups num_outputs offset_group strides"
_KINDS = {**dict.fromkeys(_FLAGS.split(), "0 or 1"), **dict.fromkeys(_POSITIVE.split(), "positive")}
_WORDS = {
    ("", "aggregate_function"): "SUM AVERAGE MIN MAX",
    ("", "auto_pad"): "NOTSET SAME_UPPER SAME_LOWER VALID",
    ("", "post_transform"): "NONE SOFTMAX LOGISTIC SOFTMAX_ZERO PROBIT",
    ("", "round_mode"): "up down nearest",
    ("BitShift", "direction"): "LEFT RIGHT",
    ("DepthToSpace", "mode"): "DCR CRD",
    ("Gelu", "approximate"): "none tanh",
    ("NegativeLogLikelihoodLoss", "reduction"): "none sum mean",
    ("Pad", "mode"): "constant reflect edge wrap",
    ("Resize", "keep_aspect_ratio_policy"): "stretch not_larger not_smaller",
    ("RoiAlign", "mode"): "avg max",
    ("ScatterElements", "reduction"): "none add mul max min",
    ("ScatterND", "reduction"): "none add mul max min",
    ("SoftmaxCrossEntropyLoss", "reduction"): "none sum mean",
    ("SpaceToDepth", "mode"): "DCR CRD",
    ("TensorScatter", "mode"): "linear circular",
    ("TfIdfVectorizer", "mode"): "TF IDF TFIDF",
}
"""By operator, or for every operator that has such an attribute."""


def check_attributes(step: Step) -> None:
    """Refuse a node with an attribute whose value means nothing: a flag of 2, a stride of 0, an unknown word.

    Runtimes read such flags in different ways: onnxruntime takes 2 for false in one operator and for true in the next.

    Raises:
        ModelFormatError: There is such an attribute; the message says what it may be.
    """
    for name, value in step.attributes.items() if step.domain in _DOMAINS else ():
        if (meant := _meant(step.op_type, name, value)) is not None:
            raise ModelFormatError(f"its {name} is {meant}, not {value!r}", node=step.where)


def _meant(op_type: str, name: str, value: Any) -> str | None:
    """What the attribute is, if it is not that."""
    kind = _KINDS.get(name)
    if kind is not None:
        low, high = (1, math.inf) if kind == "positive" else (0, 1)
        given = value if isinstance(value, tuple) else (value,)
        return None if all(low <= each <= high for each in given) else kind
    words = _WORDS.get((op_type, name), _WORDS.get(("", name), "")).split()
    if not isinstance(value, str):  # TreeEnsemble has numbers for some of these words
        return None
    return None if not words or value in words else " or ".join(words)
