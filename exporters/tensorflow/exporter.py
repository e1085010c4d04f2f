"""TensorFlow: functions, modules, and the files that hold them."""

from __future__ import annotations

import os
from typing import Any

from entrepot.exporters.exporter import Exporter, Source
from entrepot.exporters.recognition import Found, is_tensorflow
from entrepot.exporters.tensorflow.sources.callable import CallableSource
from entrepot.exporters.tensorflow.sources.files import read
from entrepot.exporters.tensorflow.sources.objects import opened


class TensorFlowExporter(Exporter):
    """Opens whatever TensorFlow makes."""

    name = "tensorflow"

    def recognises(self, found: Found) -> bool:
        """By the classes of an object, or by what a file contains."""
        return is_tensorflow(found)

    def open(self, obj: Any, sample: Any) -> Source:
        """The source for an object, or for a file or folder."""
        if isinstance(obj, str | os.PathLike):
            return read(os.fspath(obj), sample)
        return CallableSource(opened(obj), sample)


EXPORTER = TensorFlowExporter()
