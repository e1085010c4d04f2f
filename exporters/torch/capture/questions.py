"""What is asked of a tensor that has nothing to do with its elements, and is answered by no tensor.

While a module is captured, torch itself asks most of it, of each weight some eighty times; every mode is
asked each time.
"""

from __future__ import annotations

from typing import Any

import torch

_ATTRIBUTES = """
    device is_cpu is_cuda is_leaf is_meta is_mkldnn is_nested is_sparse is_sparse_csr layout ndim output_nr
    requires_grad shape
"""
_METHODS = """
    _is_view data_ptr dim element_size is_conj is_contiguous is_inference is_neg ndimension numel size storage_offset
    stride untyped_storage
"""
QUESTIONS: frozenset[Any] = frozenset(
    [getattr(torch.Tensor, name).__get__ for name in _ATTRIBUTES.split()]
    + [getattr(torch.Tensor, name) for name in _METHODS.split()]
)
"""The functions, as modes are given them."""
