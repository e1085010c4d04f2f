"""What a model is called with, however the caller wrote it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Sample:
    """Positional and keyword arguments of one call of a model.

    Attributes:
        args: Positional arguments.
        kwargs: Keyword arguments.
    """

    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, sample: Any) -> Sample:
        """A tuple is positional arguments, a dict keyword arguments, anything else the one argument."""
        if isinstance(sample, Sample):
            return sample
        if isinstance(sample, tuple) and not hasattr(sample, "_fields"):
            return cls(args=sample)
        if type(sample) is dict and all(isinstance(key, str) for key in sample):
            return cls(kwargs=sample)
        return cls(args=(sample,))
