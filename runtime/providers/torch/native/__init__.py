"""Kernels on torch tensors, by family; importing the modules fills ``native``."""
