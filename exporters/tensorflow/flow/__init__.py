"""Operators that carry functions, variables or lists of tensors."""
