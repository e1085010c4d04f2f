"""Dense layers, embeddings, activations, norms, reshaping, merging, regularisation."""

from __future__ import annotations

from functools import partial

import keras
from keras import layers as k

from tests.export_cases.keras.case import Given, indices, layer, sequences

dense = partial(layer, "dense")
dense("Dense plain", partial(k.Dense, 3), (4,))
dense("Dense of steps", partial(k.Dense, 3, activation="tanh", use_bias=False), (None, 4))
dense("Dense mixed", partial(k.Dense, 3, dtype="mixed_bfloat16"), (4,))
dense("Dense in half", partial(k.Dense, 3, dtype="float16"), Given((4,), "float16"))
dense("Dense in double", partial(k.Dense, 3, dtype="float64"), Given((4,), "float64"))
dense("Dense of integers", partial(k.Dense, 3), indices(4))
dense("Dense lora", partial(k.Dense, 3, lora_rank=2), (4,))
dense(
    "EinsumDense heads", partial(k.EinsumDense, "abc,cde->abde", output_shape=(None, 2, 5), bias_axes="de"), (None, 4)
)
dense("EinsumDense back", partial(k.EinsumDense, "abde,dec->abc", output_shape=(None, 3)), (None, 2, 5))
dense("EinsumDense ellipsis", partial(k.EinsumDense, "...x,xy->...y", output_shape=6, activation="relu"), (None, 4))
dense("Embedding plain", partial(k.Embedding, 8, 3), indices(None))
dense("Embedding masked", partial(k.Embedding, 8, 3, mask_zero=True), indices(None, padded=True))
dense("Embedding of floats", partial(k.Embedding, 8, 3), Given((4,), positive=True))
dense("ReversibleEmbedding plain", partial(k.ReversibleEmbedding, 8, 3), indices(None))
dense("ReversibleEmbedding reversed", partial(k.ReversibleEmbedding, 8, 3), (None, 3), reverse=True)
dense("Masking plain", k.Masking, sequences(None, 3))
dense("Masking of another value", partial(k.Masking, mask_value=1.0), (None, 3))
dense("Identity plain", k.Identity, (None, 3))
dense("Identity of integers", k.Identity, indices(3))
dense("Lambda of operations", partial(k.Lambda, lambda x: keras.ops.sin(x) * 2), (3,))
dense("Lambda of sizes", partial(k.Lambda, lambda x: x[:, ::2] - keras.ops.mean(x, axis=1, keepdims=True)), (None, 3))
dense("SpectralNormalization of a convolution", lambda: k.SpectralNormalization(k.Conv2D(4, 3)), (8, 8, 3))
dense("SpectralNormalization of a dense layer", lambda: k.SpectralNormalization(k.Dense(4)), (5,))
dense("InputLayer plain", k.Identity, (3,))
dense("Wrapper plain", lambda: Through(k.Dense(3)), (4,))
dense("Wrapper of steps", lambda: Through(k.Dense(3, activation="relu")), (None, 4))


class Through(k.Wrapper):
    """What it wraps."""

    def call(self, x):
        return self.layer(x)


active = partial(layer, "activations")
ACTIVATIONS = (
    "celu", "elu", "exponential", "gelu", "glu", "hard_shrink", "hard_sigmoid", "hard_silu", "hard_tanh", "leaky_relu",
    "linear", "log_sigmoid", "log_softmax", "mish", "relu", "relu6", "selu", "sigmoid", "silu", "soft_shrink",
    "softmax", "softplus", "softsign", "sparse_plus", "sparse_sigmoid", "sparsemax", "squareplus",
    "tanh", "tanh_shrink",
)  # fmt: skip
for name in ACTIVATIONS:
    active(f"Activation {name}", partial(k.Activation, name), (None, 4))
active("Activation gelu of tanh", partial(k.Activation, lambda x: keras.activations.gelu(x, approximate=True)), (4,))
active("ReLU plain", k.ReLU, (None, 4))
active("ReLU bounded", partial(k.ReLU, max_value=1.0, negative_slope=0.1, threshold=0.2), (4,))
active("LeakyReLU plain", k.LeakyReLU, (4,))
active("LeakyReLU steep", partial(k.LeakyReLU, 0.5), (None, 4))
active("PReLU plain", k.PReLU, (4,))
active("PReLU shared", partial(k.PReLU, shared_axes=[1, 2]), (5, 6, 3))
active("ELU plain", k.ELU, (4,))
active("ELU alpha", partial(k.ELU, 0.5), (None, 4))
active("Softmax plain", k.Softmax, (None, 4))
active("Softmax axes", partial(k.Softmax, axis=[1, 2]), (3, 4))

norm = partial(layer, "norms")
norm("BatchNormalization plain", k.BatchNormalization, (4,))
norm("BatchNormalization of images", k.BatchNormalization, (None, None, 3))
norm("BatchNormalization bare", partial(k.BatchNormalization, center=False, scale=False, epsilon=0.1), (5, 4))
norm("BatchNormalization of another axis", partial(k.BatchNormalization, axis=1), (3, None, 4))
norm("BatchNormalization mixed", partial(k.BatchNormalization, dtype="mixed_float16"), (4,))
norm("LayerNormalization plain", k.LayerNormalization, (None, 4))
norm("LayerNormalization axes", partial(k.LayerNormalization, axis=[1, 2]), (5, 6, 3))
norm("LayerNormalization bare", partial(k.LayerNormalization, center=False, scale=False), (None, 4))
norm("LayerNormalization of another axis", partial(k.LayerNormalization, axis=1), (5, None))
norm("LayerNormalization mixed", partial(k.LayerNormalization, dtype="mixed_float16"), (None, 4))
norm("GroupNormalization plain", partial(k.GroupNormalization, 2), (8, 7, 4))
norm("GroupNormalization of open images", partial(k.GroupNormalization, 2), (None, None, 4))
norm("GroupNormalization instance", partial(k.GroupNormalization, groups=-1, scale=False), (None, 4))
norm("RMSNormalization plain", k.RMSNormalization, (None, 4))
norm("RMSNormalization of images", k.RMSNormalization, (5, 6, 4))
norm("UnitNormalization plain", k.UnitNormalization, (None, 4))
norm("UnitNormalization axes", partial(k.UnitNormalization, axis=[1, 2]), (5, 4))

shape = partial(layer, "reshaping")
shape("Reshape plain", partial(k.Reshape, (2, 6)), (4, 3))
shape("Reshape of open steps", partial(k.Reshape, (-1, 2)), (None, 4))
shape("Flatten plain", k.Flatten, (4, 3))
shape("Flatten of nothing", k.Flatten, ())
shape("Flatten of open steps", k.Flatten, (None, 3))
shape("Permute plain", partial(k.Permute, (2, 1)), (None, 3))
shape("Permute of three", partial(k.Permute, (3, 1, 2)), (4, None, 3))
shape("RepeatVector plain", partial(k.RepeatVector, 3), (4,))
shape("RepeatVector once", partial(k.RepeatVector, 1), (2,))

merge = partial(layer, "merging")
for name in ("Add", "Subtract", "Multiply", "Average", "Maximum", "Minimum"):
    kind = getattr(k, name)
    merge(f"{name} plain", kind, (None, 3), (None, 3))
    merge(f"{name} broadcast", kind, (4, 3), (1, 3), *(() if name == "Subtract" else ((4, 3),)))
merge("Concatenate plain", k.Concatenate, (None, 3), (None, 2))
merge("Concatenate axis", partial(k.Concatenate, axis=1), (None, 3), (4, 3), (None, 3))
merge("Dot plain", partial(k.Dot, axes=1), (4,), (4,))
merge("Dot of matrices", partial(k.Dot, axes=(2, 1)), (3, 4), (4, 5))
merge("Dot normalised", partial(k.Dot, axes=2, normalize=True), (None, 4), (5, 4))

idle = partial(layer, "regularisation")
for name in ("Dropout", "SpatialDropout1D", "AlphaDropout", "GaussianDropout", "GaussianNoise"):
    idle(f"{name} plain", partial(getattr(k, name), 0.4), (None, 4))
    idle(f"{name} strong", partial(getattr(k, name), 0.9), (5, 4))
idle("SpatialDropout2D plain", partial(k.SpatialDropout2D, 0.4), (4, 4, 3))
idle("SpatialDropout2D open", partial(k.SpatialDropout2D, 0.4), (None, 4, 3))
idle("SpatialDropout3D plain", partial(k.SpatialDropout3D, 0.4), (4, 4, 4, 3))
idle("SpatialDropout3D open", partial(k.SpatialDropout3D, 0.4), (4, None, 4, 3))
idle("ActivityRegularization plain", partial(k.ActivityRegularization, l2=0.1), (4,))
idle("ActivityRegularization of steps", partial(k.ActivityRegularization, l1=0.1), (None, 4))
