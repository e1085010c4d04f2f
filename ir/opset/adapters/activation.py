"""TODO activation."""

from __future__ import annotations

from entrepot.ir.opset.rules import extended, unchanged

extended("Clip", 12, 13)
unchanged("Celu", 12, 28)
unchanged("Clip", 11, 12)
unchanged("Elu", 6, 22)
unchanged("HardSigmoid", 6, 22)
unchanged("HardSwish", 14, 22)
unchanged("LeakyRelu", 6, 16)
unchanged("Mish", 18, 22)
unchanged("PRelu", 7, 9, 16)
unchanged("Relu", 6, 13, 14)
unchanged("Selu", 6, 22)
unchanged("Sigmoid", 6, 13)
unchanged("Softplus", 1, 22)
unchanged("Softsign", 1, 22)
unchanged("Tanh", 6, 13)
unchanged("ThresholdedRelu", 10, 22)
