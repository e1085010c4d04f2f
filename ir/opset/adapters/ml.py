"""TODO ml."""

from __future__ import annotations

from entrepot.ir.opset.rules import extended

extended("LabelEncoder", 2, 4, domain="ai.onnx.ml")
extended("TreeEnsembleClassifier", 1, 3, domain="ai.onnx.ml")
extended("TreeEnsembleRegressor", 1, 3, domain="ai.onnx.ml")
