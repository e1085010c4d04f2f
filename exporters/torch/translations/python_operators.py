"""Operators of ``ep.op``, each as one node."""

from entrepot.exporters.torch.lowering.operators import DECOMPOSITIONS

__all__ = ["DECOMPOSITIONS"]
