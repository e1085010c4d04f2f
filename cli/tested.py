"""The versions that this release is tested with; a test keeps them in step with ``constraints.txt``."""

from __future__ import annotations

TESTED = {
    "numpy": "2.4.6",
    "ml_dtypes": "0.6.0",
    "onnx": "1.23.2",
    "onnx-ir": "1.1.0",
    "click": "8.5.1",
    "rich": "15.0.0",
    "safetensors": "0.8.0",
    "torch": "2.13.0",
    "onnxscript": "0.7.2",
    "onnxruntime": "1.31.1",
    "scikit-learn": "1.9.1",
}
