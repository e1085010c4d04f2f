"""Where numbers are among others, also where there are none, which ``tf.searchsorted`` does not take."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

_raw = tf.raw_ops


def places_in(ordered: Any, values: Any, side: str = "left", kind: Any = tf.int32) -> Any:
    """How many of a vector in order come before each number, those equal to it included for ``side="right"``."""
    find = _raw.UpperBound if side == "right" else _raw.LowerBound
    return find(sorted_inputs=ordered[None], values=values[None], out_type=kind)[0]
