"""What a model is called with, however the caller wrote it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from entrepot.ir.arguments import expected

_SHOWN = 60


@dataclass(frozen=True, repr=False)
class Sample:
    """Positional and keyword arguments of one call of a model.

    Attributes:
        args: Positional arguments.
        kwargs: Keyword arguments.

    Raises:
        InputError: ``args`` is not a tuple or list, or ``kwargs`` is not a mapping from names.
    """

    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse what is not a list of arguments: a tensor would be taken apart into its rows."""
        args: Any = self.args
        kwargs: Any = self.kwargs
        if not isinstance(args, tuple | list):
            raise expected("args", "a tuple of arguments", args, hint="a single one: Sample((x,))")
        if not isinstance(kwargs, Mapping) or not all(isinstance(name, str) for name in kwargs):
            raise expected("kwargs", "a dict of arguments by name", kwargs)
        object.__setattr__(self, "args", tuple(args))

    def __repr__(self) -> str:
        given = [*map(_outline, self.args), *(f"{name}={_outline(value)}" for name, value in self.kwargs.items())]
        return f"Sample({', '.join(given)})"

    @classmethod
    def of(cls, sample: Any, function: Callable[..., Any] | None = None) -> Sample:
        """A tuple is positional arguments, a dict keyword arguments, anything else the one argument.

        Args:
            sample: What the caller gave.
            function: What is called with it; a mapping other than a dict is keyword arguments, too, where it takes
                them by name, as for what tokenizers return.
        """
        if isinstance(sample, Sample):
            return sample
        if isinstance(sample, tuple) and not hasattr(sample, "_fields"):
            return cls(args=sample)
        if isinstance(sample, Mapping) and all(isinstance(key, str) for key in sample):
            if type(sample) is dict:
                return cls(kwargs=sample)
            if function is not None and _takes_by_name(function, sample):
                return cls(kwargs=dict(sample))
        return cls(args=(sample,))


def _takes_by_name(function: Callable[..., Any], names: Mapping[str, Any]) -> bool:
    """Whether names are arguments of a function, one of them in its signature."""
    signature = inspect.signature(function)
    try:
        signature.bind(**names)
    except TypeError:
        return False
    return not signature.parameters.keys().isdisjoint(names)


def _outline(value: Any) -> str:
    """A value in few words: arrays by type and shape, containers by their members."""
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if shape is not None and dtype is not None:
        return f"{str(dtype).rpartition('.')[2]}{list(shape)}"
    if type(value) is dict:
        return f"{{{', '.join(f'{key!r}: {_outline(member)}' for key, member in value.items())}}}"
    if type(value) in (list, tuple):
        inside = ", ".join(map(_outline, value))
        return f"[{inside}]" if isinstance(value, list) else f"({inside})"
    text = repr(value)
    return text if len(text) <= _SHOWN else type(value).__name__
