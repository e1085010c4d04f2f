"""TensorScatter: writing into a cache of keys and values."""

from __future__ import annotations

from entrepot.ir.opset.rules import impossible

impossible("TensorScatter", 24, 0, "no operator wrote a window into a tensor before opset 24")
