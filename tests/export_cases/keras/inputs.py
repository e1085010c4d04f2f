"""Preprocessing: numbers, categories, words, images, sound."""

from __future__ import annotations

from functools import partial

from keras import layers as k

from tests.export_cases.keras.case import Given, indices, layer

add = partial(layer, "preprocessing")
IMAGE, OPEN = (8, 6, 3), Given((None, None, 3), open=(12, 9, 16))
BYTES = Given((8, 6, 3), "uint8", most=256)

add("Normalization plain", partial(k.Normalization, mean=[1.0, 2.0, 3.0], variance=[1.0, 4.0, 9.0]), (None, 3))
add("Normalization of all", partial(k.Normalization, axis=None, mean=1.0, variance=4.0), (3,))
add("Normalization back", partial(k.Normalization, mean=[1.0, 2.0, 3.0], variance=[1.0, 4.0, 9.0], invert=True), (3,))
add("Rescaling plain", partial(k.Rescaling, 1 / 255), OPEN)
add("Rescaling of bytes", partial(k.Rescaling, 1 / 127.5, offset=-1), BYTES)
add("Rescaling each channel", partial(k.Rescaling, [0.1, 0.2, 0.3], offset=[1.0, 2.0, 3.0]), IMAGE)
for way in ("bilinear", "nearest", "bicubic", "lanczos3", "lanczos5", "area"):
    add(f"Resizing {way}", partial(k.Resizing, 5, 9, interpolation=way), IMAGE)
add("Resizing open images", partial(k.Resizing, 5, 9), OPEN)
add("Resizing open images to the nearest", partial(k.Resizing, 5, 9, interpolation="nearest"), OPEN)
add("Resizing smooth", partial(k.Resizing, 4, 3, antialias=True), IMAGE)
add("Resizing with a crop", partial(k.Resizing, 4, 4, crop_to_aspect_ratio=True), IMAGE)
add("Resizing with padding", partial(k.Resizing, 4, 4, pad_to_aspect_ratio=True), IMAGE)
add("Resizing of bytes", partial(k.Resizing, 5, 9), BYTES)
add("CenterCrop plain", partial(k.CenterCrop, 4, 3), IMAGE)
add("CenterCrop beyond the image", partial(k.CenterCrop, 10, 9), IMAGE)
add("CenterCrop open images", partial(k.CenterCrop, 4, 3), OPEN)
add("Discretization plain", partial(k.Discretization, bin_boundaries=[-1.0, 0.0, 0.5]), (4,))
add("Discretization one hot", partial(k.Discretization, bin_boundaries=[-1.0, 0.0, 0.5], output_mode="one_hot"), (1,))
add("Discretization multi hot", partial(k.Discretization, bin_boundaries=[-1.0, 0.5], output_mode="multi_hot"), (4,))
add("CategoryEncoding multi hot", partial(k.CategoryEncoding, 8), indices(4))
add("CategoryEncoding one hot", partial(k.CategoryEncoding, 8, output_mode="one_hot"), indices(1))
add("CategoryEncoding counts", partial(k.CategoryEncoding, 8, output_mode="count"), indices(4))
NUMBERS = Given((None,), "int64", most=60)
add("IntegerLookup plain", partial(k.IntegerLookup, vocabulary=[12, 36, 42, 7]), NUMBERS)
add(
    "IntegerLookup mask", partial(k.IntegerLookup, vocabulary=[12, 36, 42, 7], mask_token=0, num_oov_indices=3), NUMBERS
)
add(
    "IntegerLookup multi hot",
    partial(k.IntegerLookup, vocabulary=[12, 36, 42, 7], output_mode="multi_hot"),
    Given((4,), "int64", most=60),
)
add(
    "IntegerLookup back",
    partial(k.IntegerLookup, vocabulary=[12, 36, 42, 7], invert=True),
    Given((None,), "int64", most=5),
)
WORDS = Given((None,), "string", words=("a", "b", "c", "z", ""))
add("StringLookup plain", partial(k.StringLookup, vocabulary=["a", "b", "c"]), WORDS)
add("StringLookup mask", partial(k.StringLookup, vocabulary=["a", "b", "c"], mask_token=""), WORDS)
add(
    "StringLookup one hot",
    partial(k.StringLookup, vocabulary=["a", "b", "c"], output_mode="one_hot"),
    Given((1,), "string", words=("a", "b", "z")),
)
add(
    "StringLookup counts",
    partial(k.StringLookup, vocabulary=["a", "b", "c"], output_mode="count"),
    Given((4,), "string", words=("a", "b", "z")),
)
add(
    "TextVectorization plain",
    partial(k.TextVectorization, vocabulary=["one", "two", "three"], output_sequence_length=5),
    Given((1,), "string", words=("one two", "Three, four! one", "two", "- ONE--two_ -", "?!", "")),
)
add(
    "TextVectorization lower",
    partial(k.TextVectorization, vocabulary=["one", "two"], standardize="lower", output_mode="multi_hot"),
    Given((1,), "string", words=("One two", "three one")),
)
PHRASES = Given((1,), "string", words=("a b", "B, c! a b", "c", "a", ""))
add(
    "TextVectorization runs counted",
    partial(k.TextVectorization, vocabulary=["a", "b", "a b", "b c"], ngrams=2, output_mode="count"),
    PHRASES,
)
add(
    "TextVectorization of nothing",
    partial(k.TextVectorization, vocabulary=["a", "b"], output_mode="multi_hot"),
    Given((1,), "string", words=("",)),
)
add(
    "TextVectorization runs in order",
    partial(k.TextVectorization, vocabulary=["a b", "b c", "c a b"], ngrams=(2, 3), output_sequence_length=5),
    PHRASES,
)
add("Hashing plain", partial(k.Hashing, 3), indices(4))
add("Hashing salted", partial(k.Hashing, 3, salt=13), indices(4))
add("HashedCrossing plain", partial(k.HashedCrossing, 5), indices(1), indices(1))
add("HashedCrossing one hot", partial(k.HashedCrossing, 5, output_mode="one_hot"), indices(1), indices(1))
AUGMENTED = {
    "RandomBrightness": (0.2,), "RandomContrast": (0.2,), "RandomFlip": (), "RandomRotation": (0.2,),
    "RandomTranslation": (0.2, 0.2), "RandomZoom": (0.2,), "RandomHue": (0.2,), "RandomSaturation": (0.2,),
    "RandomSharpness": (0.2,), "RandomShear": (0.2, 0.2), "RandomPosterization": (0.2,), "RandomInvert": (0.2,),
    "RandomGrayscale": (0.2,), "RandomErasing": (0.2,), "RandomPerspective": (0.2,), "RandomGaussianBlur": (0.2,),
    "RandomElasticTransform": (0.2,), "RandomColorDegeneration": (0.2,), "RandomColorJitter": (), "AugMix": (),
    "RandAugment": (),
}  # fmt: skip
for name, arguments in AUGMENTED.items():
    if name == "RandomPosterization":
        arguments = (4,)  # noqa: PLW2901 - bits, not a factor
    add(f"{name} plain", partial(getattr(k, name), *arguments), IMAGE)
    add(f"{name} of open images", partial(getattr(k, name), *arguments), OPEN)
add("RandomCrop plain", partial(k.RandomCrop, 4, 3), IMAGE)
add("RandomCrop of the same size", partial(k.RandomCrop, 8, 6), IMAGE)
add("Pipeline plain", lambda: k.Pipeline([k.Rescaling(0.5), k.RandomFlip()]), IMAGE)
add("Pipeline of one", lambda: k.Pipeline([k.Rescaling(0.5)]), OPEN)
add("AutoContrast plain", partial(k.AutoContrast, value_range=(0, 1)), IMAGE)
add("AutoContrast of open images", partial(k.AutoContrast, value_range=(0, 1)), OPEN)
add(
    "Solarization plain",
    partial(k.Solarization, addition_factor=0.2, threshold_factor=0.5, value_range=(0, 1)),
    Given((8, 6, 3), positive=True),
)
add("Solarization bare", partial(k.Solarization, value_range=(0, 1)), Given((8, 6, 3), positive=True))
add("MelSpectrogram plain", partial(k.MelSpectrogram, num_mel_bins=8, sequence_stride=16, fft_length=64), (256,))
add(
    "MelSpectrogram without decibels",
    partial(k.MelSpectrogram, num_mel_bins=8, sequence_stride=16, fft_length=64, power_to_db=False),
    (300,),
)
add("STFTSpectrogram plain", partial(k.STFTSpectrogram, frame_length=32), (128, 2))
add(
    "STFTSpectrogram angle",
    partial(k.STFTSpectrogram, mode="psd", frame_length=32, frame_step=8, window=None),
    (128, 1),
)
