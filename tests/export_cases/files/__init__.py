"""Files that TensorFlow writes, made on the fly in a folder: SavedModels, graphs, checkpoints, ``.tflite``."""

from __future__ import annotations

from tests.export_cases.files import graphs, lite, saved
from tests.export_cases.tensorflow.case import FunctionCase


def catalogue() -> list[FunctionCase]:
    """All cases, in the same order at every time."""
    return [*saved.cases(), *graphs.cases(), *lite.cases()]
