"""TODO attention."""

from __future__ import annotations

from entrepot.ir.opset.rules import extended

extended("Attention", 23, 24)
extended("Attention", 24, 25)
