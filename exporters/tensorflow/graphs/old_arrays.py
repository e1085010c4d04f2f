"""Arrays of tensors of TensorFlow 1, a handle and a number that orders what is done to it, as lists of tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from entrepot.exporters.tensorflow.graphs.body import Step

_raw = tf.raw_ops


class _Handle(NamedTuple):
    """What is known of an array besides its items, which go where the number went.

    Attributes:
        dtype: Of its items.
        shape: Of each of them.
    """

    dtype: Any
    shape: Any


def _made(step: Step, size: Any) -> Sequence[Any]:
    attributes = step.attributes
    dtype = tf.as_dtype(attributes["dtype"].type)
    shape = tf.TensorShape(attributes["element_shape"].shape)
    return _Handle(dtype, shape), _raw.TensorListReserve(
        element_shape=_plain(shape), num_elements=size, element_dtype=dtype
    )


def _plain(shape: tf.TensorShape) -> Any:
    return tf.constant(-1) if shape.rank is None else [-1 if size is None else size for size in shape.as_list()]


def _how(handle: _Handle) -> dict[str, Any]:
    return {"element_shape": _plain(handle.shape), "element_dtype": handle.dtype}


def _written(step: Step, handle: _Handle, index: Any, item: Any, items: Any) -> Sequence[Any]:
    return [_raw.TensorListSetItem(input_handle=items, index=index, item=item)]


def _read(step: Step, handle: _Handle, index: Any, items: Any) -> Sequence[Any]:
    return [_raw.TensorListGetItem(input_handle=items, index=index, **_how(handle))]


def _gathered(step: Step, handle: _Handle, indices: Any, items: Any) -> Sequence[Any]:
    if indices.op.type == "Range":  # of all of them: TensorArray.stack gathers those
        return [_raw.TensorListStack(input_handle=items, **_how(handle))]
    return [_raw.TensorListGather(input_handle=items, indices=indices, **_how(handle))]


def _scattered(step: Step, handle: _Handle, indices: Any, value: Any, items: Any) -> Sequence[Any]:
    if indices.op.type == "Range":
        return [_raw.TensorListFromTensor(tensor=value, element_shape=_plain(handle.shape))]
    return [
        _raw.TensorListScatterIntoExistingList(input_handle=items, tensor=value, indices=indices),
    ]


def _sized(step: Step, handle: _Handle, items: Any) -> Sequence[Any]:
    return [_raw.TensorListLength(input_handle=items)]


def _joined(step: Step, handle: _Handle, items: Any) -> Sequence[Any]:
    whole = _raw.TensorListConcatV2(
        input_handle=items, leading_dims=tf.zeros([0], tf.int64), **_how(handle)
    )  # fmt: skip
    return list(whole)


ARRAYS: dict[str, Callable[..., Sequence[Any]]] = {
    "TensorArrayV3": _made, "TensorArrayWriteV3": _written, "TensorArrayReadV3": _read,
    "TensorArrayGatherV3": _gathered, "TensorArrayScatterV3": _scattered, "TensorArraySizeV3": _sized,
    "TensorArrayConcatV3": _joined,
}  # fmt: skip
"""The operators, each as a function of its step and of what it reads."""


def array_value(step: Step, given: Sequence[Any]) -> Sequence[Any]:
    """What an operator on arrays returns."""
    return ARRAYS[step.op](step, *given)
