"""What each operator of TensorFlow Lite computes, in TensorFlow's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import tensorflow as tf

from entrepot.exporters.tensorflow.lite.model import Operation

Rule: TypeAlias = Callable[..., Any]
RULES: dict[str, Rule] = {}


def lite(*operators: str) -> Callable[[Rule], Rule]:
    """Enter a function of an operation and its operands."""

    def enter(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(operators, function))
        return function

    return enter


ACTIVATIONS: dict[int, Callable[[Any], Any]] = {
    0: lambda x: x,
    1: tf.nn.relu,
    2: lambda x: tf.clip_by_value(x, tf.constant(-1, x.dtype), tf.constant(1, x.dtype)),
    3: tf.nn.relu6,
    4: tf.tanh,
}


def _activated(operation: Operation, x: Any) -> Any:
    return ACTIVATIONS[operation.options.fusedActivationFunction](x)


def _padding(operation: Operation) -> str:
    return ("SAME", "VALID")[operation.options.padding]


def _plain(*functions: tuple[str, Callable[..., Any]]) -> None:
    for name, function in functions:
        RULES[name] = lambda operation, *operands, function=function: function(*operands)


_plain(
    ("ABS", tf.abs), ("CEIL", tf.math.ceil), ("COS", tf.cos), ("ELU", tf.nn.elu), ("EXP", tf.exp), ("FLOOR", tf.floor),
    ("LOG", tf.math.log), ("LOGISTIC", tf.sigmoid), ("LOGICAL_AND", tf.logical_and), ("LOGICAL_OR", tf.logical_or),
    ("LOGICAL_NOT", tf.logical_not), ("NEG", tf.negative), ("RELU", tf.nn.relu), ("RELU6", tf.nn.relu6),
    ("ROUND", tf.round), ("RSQRT", tf.math.rsqrt), ("SIGN", tf.sign), ("SIN", tf.sin), ("SQRT", tf.sqrt),
    ("SQUARE", tf.square), ("TANH", tf.tanh), ("ZEROS_LIKE", tf.zeros_like), ("LOG_SOFTMAX", tf.nn.log_softmax),
    ("POW", tf.pow), ("MAXIMUM", tf.maximum), ("MINIMUM", tf.minimum),
    ("SQUARED_DIFFERENCE", tf.math.squared_difference),
    ("FLOOR_DIV", tf.math.floordiv), ("FLOOR_MOD", tf.math.floormod), ("ATAN2", tf.atan2),
    ("BITWISE_XOR", tf.bitwise.bitwise_xor), ("RIGHT_SHIFT", tf.bitwise.right_shift),
    ("EQUAL", tf.equal), ("NOT_EQUAL", tf.not_equal), ("LESS", tf.less), ("LESS_EQUAL", tf.less_equal),
    ("GREATER", tf.greater), ("GREATER_EQUAL", tf.greater_equal), ("ADD_N", lambda *x: tf.add_n(x)),
    ("RESHAPE", lambda x, shape=None: tf.reshape(x, shape)), ("TRANSPOSE", tf.transpose), ("TILE", tf.tile),
    ("EXPAND_DIMS", tf.expand_dims), ("FILL", tf.fill), ("RANGE", tf.range), ("SLICE", tf.slice), ("RANK", tf.rank),
    ("PADV2", lambda x, pads, value: tf.pad(x, pads, constant_values=value)), ("BROADCAST_TO", tf.broadcast_to),
    ("BROADCAST_ARGS", tf.broadcast_dynamic_shape), ("GATHER_ND", tf.gather_nd), ("SCATTER_ND", tf.scatter_nd),
    ("SELECT_V2", tf.where), ("WHERE", tf.where), ("REVERSE_V2", tf.reverse),
    ("DEQUANTIZE", lambda x: tf.cast(x, tf.float32)), ("MATRIX_DIAG", tf.linalg.diag),
    ("MATRIX_SET_DIAG", tf.linalg.set_diag), ("SEGMENT_SUM", tf.math.segment_sum),
    ("UNSORTED_SEGMENT_SUM", tf.math.unsorted_segment_sum), ("UNSORTED_SEGMENT_MAX", tf.math.unsorted_segment_max),
    ("UNSORTED_SEGMENT_MIN", tf.math.unsorted_segment_min), ("UNSORTED_SEGMENT_PROD", tf.math.unsorted_segment_prod),
    ("BATCH_TO_SPACE_ND", tf.batch_to_space), ("SPACE_TO_BATCH_ND", tf.space_to_batch), ("QUANTIZE", tf.identity),
    ("EMBEDDING_LOOKUP", lambda ids, table: tf.gather(table, ids)), ("REAL", tf.math.real), ("IMAG", tf.math.imag),
    ("COMPLEX_ABS", tf.abs), ("PRELU", lambda x, alpha: tf.where(x >= 0, x, x * alpha)),
    ("RELU_N1_TO_1", ACTIVATIONS[2]), ("RELU_0_TO_1", lambda x: tf.clip_by_value(x, 0.0, 1.0)),
    ("HARD_SWISH", lambda x: x * tf.nn.relu6(x + 3.0) / 6.0), ("PAD", tf.pad),
)  # fmt: skip
RULES["SELECT"] = lambda operation, condition, x, y: tf.raw_ops.Select(condition=condition, x=x, y=y)


@lite("DYNAMIC_UPDATE_SLICE")
def updated(operation: Operation, x: Any, part: Any, at: Any) -> Any:
    """A tensor with another one in its place."""
    sizes = tf.shape(part)
    start = tf.clip_by_value(tf.cast(at, tf.int32), 0, tf.shape(x) - sizes)
    inside = tf.stack(tf.meshgrid(*[tf.range(sizes[axis]) for axis in range(len(part.shape))], indexing="ij"), -1)
    return tf.tensor_scatter_nd_update(x, inside + start, part)


for _name, _function in (("ADD", tf.add), ("SUB", tf.subtract), ("MUL", tf.multiply)):
    RULES[_name] = lambda operation, x, y, function=_function: _activated(operation, function(x, y))


@lite("DIV")
def divided(operation: Operation, x: Any, y: Any) -> Any:
    """A quotient, which integers round towards zero."""
    return _activated(operation, tf.truediv(x, y) if x.dtype.is_floating else tf.truncatediv(x, y))


@lite("GELU")
def gelu(operation: Operation, x: Any) -> Any:
    """GELU, exact or by tanh."""
    return tf.nn.gelu(x, approximate=bool(operation.options.approximate))


@lite("LEAKY_RELU")
def leaky_relu(operation: Operation, x: Any) -> Any:
    """LeakyRelu."""
    return tf.nn.leaky_relu(x, operation.options.alpha)


@lite("SOFTMAX")
def softmax(operation: Operation, x: Any) -> Any:
    """Softmax over the last axis."""
    return tf.nn.softmax(x * operation.options.beta if operation.options.beta != 1.0 else x)


@lite("L2_NORMALIZATION")
def normalised(operation: Operation, x: Any) -> Any:
    """Each vector divided by its length."""
    return _activated(operation, x / tf.maximum(tf.norm(x, axis=-1, keepdims=True), 1e-6))


@lite("LOCAL_RESPONSE_NORMALIZATION")
def local_response(operation: Operation, x: Any) -> Any:
    """Each value divided by its neighbours' size."""
    options = operation.options
    return tf.nn.lrn(x, options.radius, options.bias, options.alpha, options.beta)


@lite("CONV_2D")
def convolution(operation: Operation, x: Any, kernel: Any, bias: Any = None) -> Any:
    """A convolution, whose kernel has its outputs first."""
    options = operation.options
    y = tf.nn.conv2d(
        x, tf.transpose(kernel, [1, 2, 3, 0]), [options.strideH, options.strideW], _padding(operation),
        dilations=[options.dilationHFactor, options.dilationWFactor],
    )  # fmt: skip
    return _activated(operation, y if bias is None else y + bias)


@lite("DEPTHWISE_CONV_2D")
def depthwise(operation: Operation, x: Any, kernel: Any, bias: Any = None) -> Any:
    """A convolution of each channel by itself."""
    options = operation.options
    height, width, count = kernel.shape[1:]
    taps = tf.reshape(kernel, [height, width, x.shape[-1], count // x.shape[-1]])
    y = tf.nn.depthwise_conv2d(
        x, taps, [1, options.strideH, options.strideW, 1], _padding(operation),
        dilations=[options.dilationHFactor, options.dilationWFactor],
    )  # fmt: skip
    return _activated(operation, y if bias is None else y + bias)


@lite("TRANSPOSE_CONV")
def transposed(operation: Operation, shape: Any, kernel: Any, x: Any, bias: Any = None) -> Any:
    """The transpose of a convolution."""
    options = operation.options
    strides = [options.strideH, options.strideW]
    y = tf.nn.conv2d_transpose(x, tf.transpose(kernel, [1, 2, 0, 3]), shape, strides, _padding(operation))
    return _activated(operation, y if bias is None else y + bias)


@lite("CONV_3D")
def convolution_3d(operation: Operation, x: Any, kernel: Any, bias: Any = None) -> Any:
    """A convolution of volumes."""
    options = operation.options
    strides = [1, options.strideD, options.strideH, options.strideW, 1]
    steps = [1, options.dilationDFactor, options.dilationHFactor, options.dilationWFactor, 1]
    y = tf.nn.conv3d(x, kernel, strides, _padding(operation), dilations=steps)
    return _activated(operation, y if bias is None else y + bias)


@lite("FULLY_CONNECTED")
def fully_connected(operation: Operation, x: Any, weights: Any, bias: Any = None) -> Any:
    """A product with a matrix that has its outputs first."""
    if not operation.options.keepNumDims:
        x = tf.reshape(x, [-1, weights.shape[1]])
    y = tf.matmul(x, weights, transpose_b=True) if len(x.shape) == 2 else tf.tensordot(x, weights, [[-1], [1]])
    return _activated(operation, y if bias is None else y + bias)


@lite("BATCH_MATMUL")
def product(operation: Operation, x: Any, y: Any) -> Any:
    """A product of matrices."""
    return tf.matmul(x, y, transpose_a=bool(operation.options.adjX), transpose_b=bool(operation.options.adjY))


@lite("AVERAGE_POOL_2D", "MAX_POOL_2D")
def pooled(operation: Operation, x: Any) -> Any:
    """The mean or the largest of each window."""
    options = operation.options
    function = tf.nn.avg_pool2d if operation.op.startswith("AVERAGE") else tf.nn.max_pool2d
    size, strides = [options.filterHeight, options.filterWidth], [options.strideH, options.strideW]
    return _activated(operation, function(x, size, strides, _padding(operation)))


_REDUCTIONS = {
    "MEAN": tf.reduce_mean, "SUM": tf.reduce_sum, "REDUCE_PROD": tf.reduce_prod, "REDUCE_MAX": tf.reduce_max,
    "REDUCE_MIN": tf.reduce_min, "REDUCE_ANY": tf.reduce_any, "REDUCE_ALL": tf.reduce_all,
}  # fmt: skip


@lite(*_REDUCTIONS)
def reduced(operation: Operation, x: Any, axes: Any) -> Any:
    """A reduction over some axes."""
    return _REDUCTIONS[operation.op](x, axes, keepdims=bool(operation.options.keepDims))


@lite("ARG_MAX", "ARG_MIN")
def place(operation: Operation, x: Any, axis: Any) -> Any:
    """Where the largest or the smallest is."""
    function = tf.argmax if operation.op == "ARG_MAX" else tf.argmin
    return function(x, axis, tf.int32 if operation.options.outputType == 2 else tf.int64)


@lite("CONCATENATION")
def joined(operation: Operation, *parts: Any) -> Any:
    """Tensors one after the other."""
    return _activated(operation, tf.concat(parts, operation.options.axis))


@lite("PACK")
def packed(operation: Operation, *parts: Any) -> Any:
    """Tensors as the rows of one."""
    return tf.stack(parts, operation.options.axis)


@lite("UNPACK")
def unpacked(operation: Operation, x: Any) -> Any:
    """The rows of a tensor."""
    return tf.unstack(x, operation.options.num, operation.options.axis)


@lite("SPLIT")
def split(operation: Operation, axis: Any, x: Any) -> Any:
    """Equal parts."""
    return tf.split(x, operation.options.numSplits, int(tf.get_static_value(axis)))


@lite("SPLIT_V")
def split_by_sizes(operation: Operation, x: Any, sizes: Any, axis: Any) -> Any:
    """Parts of given sizes."""
    return tf.split(x, tf.get_static_value(sizes), int(tf.get_static_value(axis)))


@lite("SQUEEZE")
def squeezed(operation: Operation, x: Any) -> Any:
    """Without axes of size 1."""
    axes = operation.options.squeezeDims
    return tf.squeeze(x, None if axes is None or not len(axes) else [int(axis) for axis in axes])


@lite("STRIDED_SLICE")
def sliced(operation: Operation, x: Any, begin: Any, end: Any, strides: Any) -> Any:
    """Every so many elements."""
    options = operation.options
    return tf.strided_slice(
        x, begin, end, strides, options.beginMask, options.endMask, options.ellipsisMask, options.newAxisMask,
        options.shrinkAxisMask,
    )  # fmt: skip


@lite("GATHER")
def gathered(operation: Operation, x: Any, indices: Any) -> Any:
    """Elements by their places."""
    return tf.gather(x, indices, axis=operation.options.axis, batch_dims=operation.options.batchDims)


@lite("CAST")
def cast(operation: Operation, x: Any) -> Any:
    """Another type: that of the result, which is cast afterwards in any case."""
    return x


@lite("SHAPE")
def shape(operation: Operation, x: Any) -> Any:
    """The sizes."""
    return tf.shape(x, tf.int32 if operation.options.outType == 2 else tf.int64)


@lite("ONE_HOT")
def one_hot(operation: Operation, indices: Any, depth: Any, on: Any, off: Any) -> Any:
    """A vector for each index."""
    return tf.one_hot(indices, depth, on, off, axis=operation.options.axis, dtype=on.dtype)


@lite("TOPK_V2")
def largest(operation: Operation, x: Any, count: Any) -> Any:
    """The largest, and where they are."""
    return tuple(tf.math.top_k(x, count))


@lite("MIRROR_PAD")
def mirrored(operation: Operation, x: Any, pads: Any) -> Any:
    """A tensor with its reflection around it."""
    return tf.pad(x, pads, ("REFLECT", "SYMMETRIC")[operation.options.mode])


@lite("CUMSUM")
def running_sum(operation: Operation, x: Any, axis: Any) -> Any:
    """Sums of all before."""
    options = operation.options
    return tf.cumsum(x, tf.get_static_value(axis), exclusive=bool(options.exclusive), reverse=bool(options.reverse))


@lite("DEPTH_TO_SPACE", "SPACE_TO_DEPTH")
def blocks(operation: Operation, x: Any) -> Any:
    """Channels as pixels, or pixels as channels."""
    function = tf.nn.depth_to_space if operation.op.startswith("DEPTH") else tf.nn.space_to_depth
    return function(x, operation.options.blockSize)


@lite("REVERSE_SEQUENCE")
def reversed_sequences(operation: Operation, x: Any, lengths: Any) -> Any:
    """The first elements of each row in reverse."""
    return tf.reverse_sequence(x, lengths, operation.options.seqDim, operation.options.batchDim)


@lite("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR")
def resized(operation: Operation, x: Any, size: Any) -> Any:
    """An image at another size."""
    name = "ResizeBilinear" if operation.op.endswith("BILINEAR") else "ResizeNearestNeighbor"
    options = operation.options
    return getattr(tf.raw_ops, name)(
        images=x, size=size, align_corners=bool(options.alignCorners), half_pixel_centers=bool(options.halfPixelCenters)
    )


@lite("BUCKETIZE")
def buckets(operation: Operation, x: Any) -> Any:
    """Between which boundaries each value lies."""
    return tf.raw_ops.Bucketize(input=x, boundaries=[float(each) for each in operation.options.boundaries])


@lite("FAKE_QUANT")
def fake_quantised(operation: Operation, x: Any) -> Any:
    """Values rounded to steps."""
    options = operation.options
    return tf.quantization.fake_quant_with_min_max_args(
        x, options.min, options.max, options.numBits, bool(options.narrowRange)
    )


@lite("UNIQUE")
def distinct(operation: Operation, x: Any) -> Any:
    """Every element once, and which one each of them is."""
    return tuple(tf.unique(x, tf.int32 if operation.options.idxOutType == 2 else tf.int64))


@lite("RFFT2D")
def transform(operation: Operation, x: Any, length: Any) -> Any:
    """A Fourier transform of real numbers along the last two axes."""
    return tf.signal.rfft2d(x, length)


@lite("L2_POOL_2D")
def root_mean_square(operation: Operation, x: Any) -> Any:
    """The root of the mean square of each window."""
    options = operation.options
    size, strides = [options.filterHeight, options.filterWidth], [options.strideH, options.strideW]
    return _activated(operation, tf.sqrt(tf.nn.avg_pool2d(x * x, size, strides, _padding(operation))))


@lite("SPARSE_TO_DENSE")
def scattered(operation: Operation, indices: Any, size: Any, values: Any, default: Any) -> Any:
    """Values at their places, another one elsewhere."""
    return tf.raw_ops.SparseToDense(
        sparse_indices=indices, output_shape=size, sparse_values=values, default_value=default, validate_indices=False
    )


@lite("NON_MAX_SUPPRESSION_V4")
def suppressed(operation: Operation, boxes: Any, scores: Any, most: Any, overlap: Any, least: Any) -> Any:
    """Boxes that overlap with no better one, and how many they are."""
    return tuple(tf.raw_ops.NonMaxSuppressionV4(
        boxes=boxes, scores=scores, max_output_size=most, iou_threshold=overlap, score_threshold=least,
        pad_to_max_output_size=True,
    ))  # fmt: skip


@lite("NON_MAX_SUPPRESSION_V5")
def softly_suppressed(
    operation: Operation, boxes: Any, scores: Any, most: Any, overlap: Any, least: Any, sigma: Any
) -> Any:
    """The same, with their scores."""
    return tuple(tf.raw_ops.NonMaxSuppressionV5(
        boxes=boxes, scores=scores, max_output_size=most, iou_threshold=overlap, score_threshold=least,
        soft_nms_sigma=sigma, pad_to_max_output_size=True,
    ))  # fmt: skip


@lite("CONV_3D_TRANSPOSE")
def transposed_3d(operation: Operation, size: Any, kernel: Any, x: Any, bias: Any = None) -> Any:
    """The transpose of a convolution of volumes."""
    options = operation.options
    strides = [1, options.strideD, options.strideH, options.strideW, 1]
    y = tf.nn.conv3d_transpose(x, kernel, size, strides, _padding(operation))
    return _activated(operation, y if bias is None else y + bias)


UNCHANGED = frozenset({
    "RESHAPE", "TRANSPOSE", "TILE", "EXPAND_DIMS", "SLICE", "SQUEEZE", "STRIDED_SLICE", "GATHER", "GATHER_ND", "SPLIT",
    "SPLIT_V", "UNPACK", "PACK", "CONCATENATION", "MIRROR_PAD", "REVERSE_V2", "BROADCAST_TO", "DEPTH_TO_SPACE",
    "SPACE_TO_DEPTH", "SHAPE", "RANK", "SELECT_V2", "SELECT", "REVERSE_SEQUENCE", "DYNAMIC_UPDATE_SLICE",
})  # fmt: skip
"""Operators that move integers, whatever these stand for."""
