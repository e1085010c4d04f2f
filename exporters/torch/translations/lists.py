"""``torch._foreach_mul`` and its like, for which there is no operator in ONNX: what they do, tensor by tensor."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch

from entrepot.exporters.torch.capture.upstream import list_operators

_OTHERS = frozenset({"max", "mm", "norm", "powsum"})
"""Those whose operands are not what the operator of that name takes for one tensor."""
_BY_NUMBER = {"maximum": "clamp_min", "minimum": "clamp_max"}


def _each(name: str, *args: Any, **how: Any) -> Any:
    """The results of an operator for each tensor; nothing, as of torch's own, where it writes to them."""
    if "self" in how:
        args = how.pop("self"), *args
    count = max(len(value) for value in (*args, *how.values()) if _is_list(value))
    columns = [value if _is_list(value) else [value] * count for value in (*args, *how.values())]
    rows = zip(*columns, strict=True)
    made = [_one(name, row[: len(args)], dict(zip(how, row[len(args) :], strict=True))) for row in rows]
    return None if name.endswith("_") else made


def _one(name: str, args: Sequence[Any], how: dict[str, Any]) -> Any:
    plain, end = name.rstrip("_"), "_" * name.endswith("_")
    if plain in _BY_NUMBER and not isinstance(args[1], torch.Tensor):
        plain = _BY_NUMBER[plain]
    if plain.startswith("addc"):  # how much of the product, which has a name for one tensor
        *args, value = args if len(args) > 3 else (*args, how.pop("value", how.pop("scalars", 1)))
        how = {**how, "value": value}
    if not isinstance(args[0], torch.Tensor):
        return torch.pow(*args, **how)  # a number to the power of each tensor
    return getattr(torch.Tensor, plain + end)(*args, **{_SHORT.get(key, key): value for key, value in how.items()})


_SHORT = {"scalars": "other", "scalar": "other"}
"""What an operator on one tensor calls what one on a list calls otherwise."""


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple)


REPLACEMENTS: dict[Any, Callable[..., Any]] = {
    function: functools.partial(_each, name)
    for name, function in list_operators().items()
    if name.rstrip("_") not in _OTHERS
}
