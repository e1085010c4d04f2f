"""TODO loss."""

from __future__ import annotations

from entrepot.ir.opset.rules import unchanged

unchanged("NegativeLogLikelihoodLoss", 12, 13, 22)
unchanged("SoftmaxCrossEntropyLoss", 12, 13)
