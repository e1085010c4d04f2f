"""Images: convolutions, pooling, resizing, colours."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from tests.export_cases.tensorflow.case import add, normal, share, whole

X, Y = share(2, 8, 10, 3), share(3, 12, 6, 3)
K = tf.constant(normal(3, 3, 3, 4))
D = tf.constant(normal(3, 3, 3, 2))

for _name, _function in {
    "conv_same": lambda x: tf.nn.conv2d(x, K, 2, "SAME"), "conv_valid": lambda x: tf.nn.conv2d(x, K, 1, "VALID"),
    "conv_dilated": lambda x: tf.nn.conv2d(x, K, 1, "SAME", dilations=2),
    "depthwise": lambda x: tf.nn.depthwise_conv2d(x, D, [1, 1, 1, 1], "SAME"),
    "separable": lambda x: tf.nn.separable_conv2d(x, D, tf.ones([1, 1, 6, 2]), [1, 1, 1, 1], "SAME"),
    "transposed": lambda x: tf.nn.conv2d_transpose(
        tf.nn.conv2d(x, K, 2, "SAME"), K, tf.shape(x), 2, "SAME"),
    "max_pool": lambda x: tf.nn.max_pool2d(x, 2, 2, "SAME"), "avg_pool": lambda x: tf.nn.avg_pool2d(x, 3, 2, "SAME"),
    "global_pool": lambda x: tf.reduce_mean(x, [1, 2]), "patches": lambda x: tf.image.extract_patches(
        x, [1, 2, 2, 1], [1, 2, 2, 1], [1, 1, 1, 1], "VALID"),
    "bilinear": lambda x: tf.image.resize(x, [5, 7]), "nearest": lambda x: tf.image.resize(x, [16, 5], "nearest"),
    "bicubic": lambda x: tf.image.resize(x, [5, 7], "bicubic"), "area": lambda x: tf.image.resize(x, [4, 2], "area"),
    "lanczos": lambda x: tf.image.resize(x, [5, 7], "lanczos3"),
    "antialias": lambda x: tf.image.resize(x, [4, 5], antialias=True),
    "twice": lambda x: tf.image.resize(x, tf.shape(x)[1:3] * 2),
    "grey": tf.image.rgb_to_grayscale, "hsv": tf.image.rgb_to_hsv, "hsv_back": tf.image.hsv_to_rgb,
    "yuv": tf.image.rgb_to_yuv, "flip": tf.image.flip_left_right, "rotate": tf.image.rot90,
    "contrast": lambda x: tf.image.adjust_contrast(x, 1.5), "hue": lambda x: tf.image.adjust_hue(x, 0.1),
    "saturation": lambda x: tf.image.adjust_saturation(x, 0.5), "gamma": lambda x: tf.image.adjust_gamma(x, 2.0),
    "standardise": tf.image.per_image_standardization, "crop": lambda x: tf.image.central_crop(x, 0.5),
    "pad_to": lambda x: tf.image.pad_to_bounding_box(x, 1, 2, 20, 20), "sobel": tf.image.sobel_edges,
    "total_variation": tf.image.total_variation, "lrn": tf.nn.lrn,
    "crop_and_resize": lambda x: tf.image.crop_and_resize(
        x, [[0.1, 0.1, 0.8, 0.9], [0.0, 0.2, 1.0, 0.7]], [0, 1], [4, 4]),
    "psnr": lambda x: tf.image.psnr(x, x * 0.9, 1.0), "gradients": tf.image.image_gradients,
    "batch_norm": lambda x: tf.nn.batch_normalization(x, *tf.nn.moments(x, [0, 1, 2]), None, tf.ones([3]) * 2.0, 1e-3),
}.items():  # fmt: skip
    add(_name, _function, X, Y)

add("bytes", lambda x: tf.image.convert_image_dtype(x, tf.float32), whole(0, 256, 2, 4, 4, 3, dtype=np.uint8))
add("resize_bytes", lambda x: tf.cast(tf.image.resize(x, [5, 5]), tf.uint8), whole(0, 256, 1, 8, 8, 3, dtype=np.uint8))
add("suppression", lambda b, s: tf.image.non_max_suppression(b, s, 3), (share(6, 4), share(6)))
add(
    "conv3d",
    lambda x: tf.nn.conv3d(x, tf.ones([2, 2, 2, 1, 2]), [1] * 5, "SAME"),
    normal(1, 4, 5, 6, 1),
    normal(2, 3, 4, 5, 1),
)
add(
    "similarity",
    lambda x, y: tf.image.ssim(x, y, 1.0),
    (share(2, 16, 14, 1), share(2, 16, 14, 1)),
    (share(1, 20, 17, 1), share(1, 20, 17, 1)),
)
