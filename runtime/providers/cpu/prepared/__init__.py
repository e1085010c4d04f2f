"""Kernels bound to one node: packed weights, kept buffers, choices made once."""
