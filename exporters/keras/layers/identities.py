"""What is there for training alone, and does nothing afterwards."""

from __future__ import annotations

from typing import Any

from entrepot.exporters.keras.reading.step import Step
from entrepot.exporters.keras.reading.table import layer


@layer(
    "Dropout", "SpatialDropout1D", "SpatialDropout2D", "SpatialDropout3D", "AlphaDropout", "GaussianDropout",
    "GaussianNoise", "ActivityRegularization", "Identity", "InputLayer",
)  # fmt: skip
def same(step: Step, inputs: Any, **_: Any) -> Any:
    """The inputs themselves."""
    return inputs


@layer(
    "RandomBrightness", "RandomColorDegeneration", "RandomColorJitter", "RandomContrast", "RandomCrop",
    "RandomElasticTransform", "RandomErasing", "RandomFlip", "RandomGaussianBlur", "RandomGrayscale",
    "RandomHue", "RandomInvert", "RandomPerspective", "RandomPosterization", "RandomRotation",
    "RandomSaturation", "RandomSharpness", "RandomShear", "RandomTranslation", "RandomZoom", "AugMix",
    "CutMix", "MixUp", "RandAugment",
)  # fmt: skip
def augmented(step: Step, data: Any, **_: Any) -> Any:
    """The images themselves, in the type of the layer."""
    if isinstance(data, dict):
        raise step.refuse("labels and boxes beside images")
    return step.build.cast(step.value(data), step.dtype)
