"""TODO random."""

from __future__ import annotations

from entrepot.ir.opset.rules import unchanged

unchanged("Bernoulli", 15, 22)
unchanged("Dropout", 12, 13, 22)
unchanged("Multinomial", 7, 22)
unchanged("RandomNormal", 1, 22)
unchanged("RandomNormalLike", 1, 22)
unchanged("RandomUniform", 1, 22)
unchanged("RandomUniformLike", 1, 22)
