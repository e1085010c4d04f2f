"""Convolutions by constant float32 weights: at each shape by the kernel that is quickest there."""
