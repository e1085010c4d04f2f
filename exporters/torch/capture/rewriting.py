"""While a module is captured, some torch functions are replaced by others with the same meaning."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere
from torch.overrides import TorchFunctionMode

from entrepot.exporters.torch.lowering.custom import python_of, qualified_name, registered
from entrepot.exporters.torch.rewriting.environment import hint
from entrepot.exporters.torch.translations import replacements
from entrepot.exporters.torch.translations.attention import scaled_dot_product_attention

_REPLACEMENTS: dict[Any, Callable[..., Any]] = (
    replacements()
)  # a plain dict: torch.cond compiles its branches through this mode


class Rewriting(TorchFunctionMode):
    """Inside, calls of the functions in ``replacements()``, and of those that users register, call something else."""

    def __torch_function__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        """Call the replacement, if there is one; the mode is off while it runs."""
        return _counterpart(func)(*args, **(kwargs or {}))


def _counterpart(func: Any) -> Callable[..., Any]:
    wanted = registered(func) or _REPLACEMENTS.get(func) or _REPLACEMENTS.get(qualified_name(func))
    return wanted or python_of(func) or func


@contextlib.contextmanager
def decided_flags() -> Iterator[None]:
    """Inside, attention takes ``is_causal=x.shape[1] > 1``: its arguments are read before any mode is asked (2.13).

    Nor does torch choose a kernel for sizes that depend on data, as its own layers ask it to.
    """
    plain = F.scaled_dot_product_attention

    def decided(*args: Any, **kwargs: Any) -> Any:
        attention = scaled_dot_product_attention if any(map(_depends_on_data, (*args, *kwargs.values()))) else plain
        return attention(*map(_decided, args), **{name: _decided(value) for name, value in kwargs.items()})

    with mock.patch.object(F, "scaled_dot_product_attention", decided):
        yield


def _depends_on_data(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and any(hint(size) is None for size in value.shape)


def _decided(value: Any) -> Any:
    return bool(value) if isinstance(value, torch.SymBool) else value
