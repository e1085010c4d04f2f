"""Functions that a file has beside its modules, where torch has no word; each stands for itself, and is copied as it is."""

from __future__ import annotations

import torch


def quotient(x, y):
    """Integers divided and rounded to 0; the minimum by -1 wraps around."""
    return torch.where(y == -1, -x, torch.div(x, divisor(y), rounding_mode="trunc"))


def divisor(y):
    """A divisor of integers without -1, by which the minimum must not be divided; what remains is the same."""
    return torch.where(y == -1, torch.ones_like(y), y)


def reshaped(x, shape, allowzero=False):
    """x in a shape in which 0 means as it was."""
    return x.reshape(shape if allowzero else [x.shape[at] if size == 0 else size for at, size in enumerate(shape)])


def from_front(indices, size):
    """Indices below 0 count from the end."""
    return torch.where(indices < 0, indices + size, indices).long()


def chosen(condition, first, second, *operands):
    """One of two functions of the operands; both of them in a graph that is captured."""
    if torch.compiler.is_compiling():
        return torch.cond(condition.reshape(()), first, second, operands)
    return first(*operands) if condition else second(*operands)
