"""Operators of torchvision, which is known only once somebody has imported it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnx_ir
import torch
from onnxscript import opset20

op: Any = opset20
_ALL = 2**62  # boxes


def translate_nms(dets: Any, scores: Any, iou_threshold: float) -> Any:
    """The boxes that no better one overlaps by more than a threshold, the best first; scores of any sign count."""
    boxes, each = (op.Cast(value, to=onnx_ir.DataType.FLOAT) for value in (dets, scores))
    first, second, third, end = (op.Constant(value_ints=[at]) for at in (0, 1, 2, _ALL))
    low, high = op.Slice(boxes, first, third, second), op.Slice(boxes, third, end, second)
    boxes = op.Concat(low, op.Max(low, high), axis=1)  # one with its corners exchanged is empty, and not turned round
    found = op.NonMaxSuppression(
        op.Unsqueeze(boxes, first),
        op.Unsqueeze(each, op.Constant(value_ints=[0, 1])),
        op.Constant(value_ints=[_ALL]),
        op.Constant(value_floats=[float(iou_threshold)]),
    )  # [boxes, batch and class and box]
    return op.Gather(found, op.Constant(value_int=2), axis=1)


def vision_translations() -> tuple[tuple[Any, Callable[..., Any]], ...]:
    """Operator and translation, for what there is."""
    try:
        return ((torch.ops.torchvision.nms.default, translate_nms),)
    except AttributeError:
        return ()
