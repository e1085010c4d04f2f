"""Memory that results of one run leave behind for the next.

The C library of Linux takes large blocks from the kernel and gives them back at once, which then has to clear every
page again: on a model with large intermediate results that takes longer than its arithmetic. It stops doing so for
blocks of a size that was freed before, up to 32 MiB, and keeps twice as much at hand. So such a block is freed once.
"""

from __future__ import annotations

from functools import cache

import torch

_LARGEST = (32 << 20) - (64 << 10)
"""Bytes; a header and alignment stay below the 32 MiB up to which the C library learns."""


@cache
def keep_freed_memory() -> None:
    """Let the C library keep what is freed, within its own bounds; nothing is allocated afterwards."""
    torch.empty(_LARGEST, dtype=torch.uint8)
