"""What ``ir`` takes from the private side of other packages; ``tests/ir/test_upstream.py`` says when one of them moves.

- ``Cloner`` of onnx_ir (1.1): the public ``clone()`` has no way to bind the inputs and attributes of a function.
"""

from __future__ import annotations

from onnx_ir._cloner import Cloner

__all__ = ["Cloner"]
