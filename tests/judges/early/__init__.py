"""What ai.onnx meant at opsets 1 to 6, by NumPy and from the specification: no runtime has kernels for it any more.

``evaluate.run`` judges conversions there, so nothing in here knows of the adapters. It is strict where onnx's checker
is not: what only a newer opset allows is a ``BreachError``, what it does not know a ``CannotJudgeError``.
"""
