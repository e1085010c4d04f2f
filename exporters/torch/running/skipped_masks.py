"""Causal masks that transformers (5.23) leaves out, for attention that sees everything without one.

It leaves a mask out where no token is padded, since its kernels need none then, but never in a capture. For attention
that is not causal by itself, as in some models of pictures and text, this is another result: with padding it sees what
came before, and without it everything. Here a mask that would have been left out allows such attention everything.

Some say whether they are causal by whether they are given a mask: then that counts which they say without one, in a
call with values.
"""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils.weak import WeakTensorKeyDictionary

_KERNEL = "sdpa"  # the others are given their masks always


@contextlib.contextmanager
def skipped_masks() -> Iterator[None]:
    """Inside, attention that is not causal sees everything where its mask is left out, in captures as well."""
    masks, attention = (sys.modules.get(f"transformers.{name}") for name in ("masking_utils", "modeling_utils"))
    if masks is None or attention is None:
        yield
        return
    left_out = _LeftOut(masks.prepare_padding_mask)
    tables = [masks.ALL_MASK_ATTENTION_FUNCTIONS, attention.ALL_ATTENTION_FUNCTIONS]
    changed = [(table._global_mapping, table._global_mapping[_KERNEL]) for table in tables]  # noqa: SLF001
    for (table, plain), change in zip(changed, (left_out.noting, left_out.allowing), strict=True):
        table[_KERNEL] = change(plain)
    try:
        yield
    finally:
        for table, plain in changed:
            table[_KERNEL] = plain


class _LeftOut:
    """Masks that may be left out, with what they were made of.

    Args:
        padding_of: Says which keys are no padding.
    """

    def __init__(self, padding_of: Callable[..., Any]) -> None:
        self._padding_of = padding_of
        self._known = WeakTensorKeyDictionary()
        self._causal = set[str]()
        """The kinds of modules that have said without a mask that they are causal."""

    def noting(self, plain: Callable[..., Any]) -> Callable[..., Any]:
        """The function that makes a mask: of those that may be left out, it is noted what they were made of."""

        @functools.wraps(plain)
        def mask_of(*args: Any, allow_is_causal_skip: bool = True, **how: Any) -> Any:
            mask = plain(*args, allow_is_causal_skip=allow_is_causal_skip, **how)
            if mask is not None and not args and allow_is_causal_skip:
                self._known[mask] = how
            return mask

        return mask_of

    def allowing(self, plain: Callable[..., Any]) -> Callable[..., Any]:
        """The function that attends: without causality of its own, a mask that would be left out allows everything."""

        @functools.wraps(plain)
        def attend(module: Any, query: Any, key: Any, value: Any, mask: Any = None, *args: Any, **how: Any) -> Any:
            mask = how.pop("attention_mask", mask)
            kind, causal = type(module).__name__, how.get("is_causal")
            if causal is None:
                causal = getattr(module, "is_causal", True)
            if causal and mask is None:
                self._causal.add(kind)
            if not (causal or (kind in self._causal and getattr(module, "is_causal", False))):
                mask = self._opened(mask)
            return plain(module, query, key, value, mask, *args, **how)

        return attend

    def _opened(self, mask: Any) -> Any:
        """The mask for attention without causality; only here is anything asked of sizes, which would fix them."""
        if not isinstance(mask, torch.Tensor) or mask not in self._known:
            return mask
        if type(mask) is torch.Tensor and not torch.jit.is_tracing():  # type: ignore[attr-defined, no-untyped-call]
            return mask  # a call with values has left it out already
        how = self._known[mask]
        queries, keys, window = how["q_length"], how["kv_length"], how.get("local_size")
        if queries not in (keys, 1) or (window is not None and keys >= window):
            return mask
        padding = self._padding_of(how.get("attention_mask"), keys, how.get("kv_offset", 0))
        return None if padding is None else mask | padding.all()
