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
