"""Operators of com.microsoft: what onnxruntime's optimizer and quantizer make of a graph.

Source: onnxruntime's ContribOperators.md and its kernels for CPUs, which judge the tests.
"""
