"""All cases of Keras."""

from __future__ import annotations

import importlib
import warnings

from tests.export_cases.keras.case import CASES, KerasCase

ABSENT = {
    "TFSMLayer": "a SavedModel, which is exported as such",
    "JaxLayer": "a function of JAX, exported as such",
    "FlaxLayer": "a module of Flax, exported as such",
    "TorchModuleWrapper": "a module of torch, exported as such",
    "CutMix": "mixes images with labels, in training alone",
    "MixUp": "mixes images with labels, in training alone",
    "MaxNumBoundingBoxes": "takes dictionaries of boxes",
    "Equalization": "Keras 3.15 cannot call it on symbolic tensors: it says that they are part of a cycle",
    "ContrastLimitedAdaptiveHistogramEqualization": "histograms of tiles",
}
"""Classes of layers without a case, and why."""

UNFIT = {
    "argpartition": "TensorFlow's backend writes beyond the tensor where it has several axes",
    "bincount": "with weights: takes no symbolic tensor as weights",
    "conv_transpose": "loses its data_format, and looks for the letters of None",
    "histogram": "TensorFlow's backend has none",
    "rearrange": "multiplies the batch of a symbolic tensor, which is None",
    "softmax": "over several axes: compares the tuple with a number",
    "view_as_complex": "TensorFlow's backend multiplies by 1j as a float",
}
"""Operations of Keras 3.15 that Keras itself cannot run in a functional model, and how it fails."""


def catalogue(corpus: str = "keras") -> list[KerasCase]:
    """The cases of a corpus, in the order of the files."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in (
            "plain",
            "convolutions",
            "steps",
            "inputs",
            "models",
            "elementwise",
            "arrangements",
            "applications",
        ):
            importlib.import_module(f"tests.export_cases.keras.{name}")
    return [case for case in CASES if case.corpus == corpus]
