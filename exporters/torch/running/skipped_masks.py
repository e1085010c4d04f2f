"""Causal masks that transformers (5.23) leaves out, for layers that let every token see all others without one.

It leaves a mask out where no token is padded, since its kernels need none then, but never in a capture. For layers that
say they are not causal, as those of some models of pictures and text, this is another result: with padding they see
what came before, and without it everything. A mask that would have been left out allows everything here.
"""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable, Iterator
from typing import Any

import torch

_KERNEL = "sdpa"  # the others are given their masks always


@contextlib.contextmanager
def skipped_masks(module: torch.nn.Module) -> Iterator[None]:
    """Inside, layers that are not causal see everything where their mask is left out, in captures as well."""
    library = sys.modules.get("transformers.masking_utils")
    kinds = {
        causal: {
            type(part.config)
            for part in module.modules()
            if getattr(part, "is_causal", None) is causal and hasattr(part, "config")
        }
        for causal in (True, False)
    }
    seeing = kinds[False] - kinds[True]
    if library is None or not seeing:
        yield
        return
    table = library.ALL_MASK_ATTENTION_FUNCTIONS._global_mapping  # noqa: SLF001
    plain = table[_KERNEL]
    table[_KERNEL] = _allowing(plain, library.prepare_padding_mask, seeing)
    try:
        yield
    finally:
        table[_KERNEL] = plain


def _allowing(plain: Callable[..., Any], padding_of: Callable[..., Any], seeing: set[type]) -> Callable[..., Any]:
    @functools.wraps(plain)
    def mask_of(
        *args: Any,
        config: Any = None,
        allow_is_causal_skip: bool = True,
        **how: Any,
    ) -> Any:
        mask = plain(*args, config=config, allow_is_causal_skip=allow_is_causal_skip, **how)
        if mask is None or args or not allow_is_causal_skip or type(config) not in seeing:
            return mask
        queries, keys, window = how["q_length"], how["kv_length"], how.get("local_size")
        if window is not None and keys >= window:
            return mask
        padding = padding_of(how.get("attention_mask"), keys, how.get("kv_offset", 0))
        if queries not in (keys, 1):
            return mask
        return None if padding is None else mask | padding.all()

    return mask_of
