"""Convolutions, pooling, and what changes the size of images."""

from __future__ import annotations

from functools import partial

from keras import layers as k

from tests.export_cases.keras.case import Given, layer

add = partial(layer, "convolutions")
LINE, IMAGE, BODY = (None, 3), (None, None, 3), (6, None, 5, 2)
FIXED = (8, 7, 3)
OPEN_LINE, OPEN_IMAGE = Given(LINE, open=(16, 11, 13)), Given(IMAGE, open=(16, 11, 13))

for size, given, fixed in (("1D", OPEN_LINE, (9, 3)), ("2D", OPEN_IMAGE, FIXED), ("3D", Given(BODY), (6, 5, 4, 2))):
    conv, transposed = getattr(k, f"Conv{size}"), getattr(k, f"Conv{size}Transpose")
    add(f"Conv{size} valid", partial(conv, 4, 3), given)
    add(f"Conv{size} same strides", partial(conv, 4, 3, strides=2, padding="same", activation="relu"), given)
    add(f"Conv{size} same strides of an even window", partial(conv, 4, 2, strides=2, padding="same"), given)
    add(f"Conv{size} dilated same", partial(conv, 4, 3, dilation_rate=2, padding="same", use_bias=False), given)
    add(f"Conv{size} at a known size", partial(conv, 4, 3, strides=2, padding="same"), fixed)
    add(f"Conv{size}Transpose valid", partial(transposed, 4, 3), given)
    add(f"Conv{size}Transpose same strides", partial(transposed, 4, 3, strides=2, padding="same"), given)
    add(f"Conv{size}Transpose strides beyond the window", partial(transposed, 4, 2, strides=3), given)
    add(
        f"Conv{size}Transpose output padding",
        partial(transposed, 4, 3, strides=2, padding="same", output_padding=1), given,
    )  # fmt: skip
    for kind in ("Max", "Average"):
        pool = getattr(k, f"{kind}Pooling{size}")
        add(f"{kind}Pooling{size} plain", partial(pool, 2), given)
        add(f"{kind}Pooling{size} same", partial(pool, 3, strides=2, padding="same"), given)
        add(f"{kind}Pooling{size} overlapping", partial(pool, 3, strides=1, padding="same"), given)
        whole = getattr(k, f"Global{kind}Pooling{size}")
        add(f"Global{kind}Pooling{size} plain", whole, given)
        add(f"Global{kind}Pooling{size} keepdims", partial(whole, keepdims=True), given)
        adaptive = getattr(k, f"Adaptive{kind}Pooling{size}")
        add(f"Adaptive{kind}Pooling{size} uneven", partial(adaptive, 3 if size != "3D" else (3, 2, 3)), fixed)
        add(
            f"Adaptive{kind}Pooling{size} to two",
            partial(adaptive, 2 if size == "1D" else (2, 3, 3)[: int(size[0])]),
            fixed,
        )
    zeros, cropped, larger = (getattr(k, f"{name}{size}") for name in ("ZeroPadding", "Cropping", "UpSampling"))
    add(f"ZeroPadding{size} plain", partial(zeros, 1), given)
    add(
        f"ZeroPadding{size} uneven",
        partial(zeros, {"1D": (1, 2), "2D": ((1, 0), (0, 2))}.get(size, ((1, 0), (0, 1), (2, 0)))),
        given,
    )
    add(f"Cropping{size} plain", partial(cropped, 1), given)
    add(
        f"Cropping{size} uneven",
        partial(cropped, {"1D": (0, 2), "2D": ((1, 0), (0, 2))}.get(size, ((1, 0), (0, 1), (2, 0)))),
        given,
    )
    add(f"UpSampling{size} twice", partial(larger, 2), given)
    add(f"UpSampling{size} thrice", partial(larger, 3), fixed)

for size, given in (("1D", OPEN_LINE), ("2D", OPEN_IMAGE)):
    deep, separable = getattr(k, f"DepthwiseConv{size}"), getattr(k, f"SeparableConv{size}")
    add(f"DepthwiseConv{size} valid", partial(deep, 3), given)
    add(f"DepthwiseConv{size} multiplied", partial(deep, 3, depth_multiplier=2, padding="same"), given)
    add(f"DepthwiseConv{size} strides", partial(deep, 3, strides=2, padding="same", activation="silu"), given)
    add(f"SeparableConv{size} valid", partial(separable, 4, 3), given)
    add(f"SeparableConv{size} same", partial(separable, 4, 3, depth_multiplier=2, padding="same"), given)

add("Conv1D causal", partial(k.Conv1D, 4, 3, padding="causal"), OPEN_LINE)
add("Conv1D causal dilated", partial(k.Conv1D, 4, 2, padding="causal", dilation_rate=3), OPEN_LINE)
add("Conv1D groups", partial(k.Conv1D, 4, 3, groups=2), Given((None, 4)))
add("Conv2D groups", partial(k.Conv2D, 6, 3, groups=3, padding="same"), OPEN_IMAGE)
add("Conv2D uneven window", partial(k.Conv2D, 4, (3, 1), strides=(1, 2), padding="same"), OPEN_IMAGE)
add("Conv2D in half", partial(k.Conv2D, 4, 3, dtype="float16"), Given(IMAGE, "float16", open=(8, 7, 9)))
add("Conv2D mixed", partial(k.Conv2D, 4, 3, dtype="mixed_float16"), OPEN_IMAGE)
add("Conv2D in double", partial(k.Conv2D, 4, 3, dtype="float64"), Given(IMAGE, "float64"))
