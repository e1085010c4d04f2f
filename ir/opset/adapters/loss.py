"""Loss functions: spelled out by their schemas' bodies below the opset that introduced them."""

from __future__ import annotations

from entrepot.ir.opset.bodies import expanded
from entrepot.ir.opset.rules import unchanged

unchanged("SoftmaxCrossEntropyLoss", 12, 13)
unchanged("NegativeLogLikelihoodLoss", 12, 13, 22)
expanded("SoftmaxCrossEntropyLoss", 12)
expanded("NegativeLogLikelihoodLoss", 12)
