"""What TorchScript computes on numbers, text, lists and dicts: as Python has it."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import torch


def _floordiv(a: Any, b: Any) -> Any:
    return a // b


def _set_item(container: Any, key: Any, value: Any) -> None:
    container[key] = value


def _append(items: list[Any], item: Any) -> list[Any]:
    items.append(item)
    return items


def _not(value: Any) -> Any:
    return torch.logical_not(value) if isinstance(value, torch.Tensor) else not value


def _both(a: Any, b: Any) -> Any:
    return torch.logical_and(_tensor(a), _tensor(b)) if _any_tensor(a, b) else a and b


def _either(a: Any, b: Any) -> Any:
    return torch.logical_or(_tensor(a), _tensor(b)) if _any_tensor(a, b) else a or b


def _any_tensor(*values: Any) -> bool:
    return any(isinstance(value, torch.Tensor) for value in values)


def _tensor(value: Any) -> torch.Tensor:
    return value if isinstance(value, torch.Tensor) else torch.tensor(bool(value))


def _number(kind: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: value.item() if isinstance(value, torch.Tensor) else kind(value)


PLAIN: dict[str, Callable[..., Any]] = {
    "__and__": _both,
    "__contains__": lambda container, item: item in container,
    "__derive_index": lambda index, start, step: start + index * step,
    "__getitem__": operator.getitem,
    "__is__": lambda a, b: a is b,
    "__isnot__": lambda a, b: a is not b,
    "__not__": _not,
    "__or__": _either,
    "__range_length": lambda start, stop, step: len(range(start, stop, step)),
    "Bool": lambda value: value.ne(0) if isinstance(value, torch.Tensor) else bool(value),
    "Delete": lambda container, key: container.pop(key),
    "Float": _number(float),
    "FloatImplicit": _number(float),
    "Int": _number(int),
    "IntImplicit": _number(int),
    "ScalarImplicit": _number(lambda value: value),
    "_set_item": _set_item,
    "add": operator.add,
    "add_": operator.iadd,
    "append": _append,
    "ceil": math.ceil,
    "clear": lambda items: items.clear(),
    "copy": lambda items: items.copy(),
    "cos": math.cos,
    "dict": dict,
    "div": operator.truediv,
    "endswith": lambda text, end: text.endswith(end),
    "eq": operator.eq,
    "exp": math.exp,
    "extend": lambda items, more: items.extend(more),
    "floor": math.floor,
    "floordiv": _floordiv,
    "format": lambda text, *values: text.format(*values),
    "ge": operator.ge,
    "get": lambda items, key, default=None: items.get(key, default),
    "gt": operator.gt,
    "index": lambda items, item: items.index(item),
    "insert": lambda items, at, item: items.insert(at, item),
    "items": lambda items: list(items.items()),
    "join": lambda text, parts: text.join(parts),
    "keys": list,
    "le": operator.le,
    "len": len,
    "list": list,
    "log": math.log,
    "lower": lambda text: text.lower(),
    "lt": operator.lt,
    "mul": operator.mul,
    "ne": operator.ne,
    "neg": operator.neg,
    "pop": lambda items, *at: items.pop(*at),
    "pow": operator.pow,
    "remainder": operator.mod,
    "replace": lambda text, old, new, count=-1: text.replace(old, new, count),
    "reverse": lambda items: items.reverse(),
    "round": round,
    "sin": math.sin,
    "slice": lambda items, start=None, stop=None, step=1: items[start:stop:step],
    "split": lambda text, by=None, count=-1: text.split(by, count),
    "sqrt": math.sqrt,
    "startswith": lambda text, start: text.startswith(start),
    "str": str,
    "sub": operator.sub,
    "sum": sum,
    "update": lambda items, more: items.update(more),
    "upper": lambda text: text.upper(),
    "values": lambda items: list(items.values()),
    "warn": lambda *_: None,
}
"""Operators of ``aten`` that take no tensor, or that Python has under the same rules."""

NUMBERS = ("Bool", "Int", "Float", "IntImplicit", "FloatImplicit", "ScalarImplicit", "len")
"""Those of them that take a tensor as well."""

_DTYPES = """
uint8 int8 int16 int32 int64 float16 float32 float64 complex32 complex64 complex128 bool qint8 quint8 qint32 bfloat16
"""
DTYPES: list[torch.dtype] = [getattr(torch, name) for name in _DTYPES.split()]
"""By the numbers that TorchScript writes for them."""

FORMATS = [torch.contiguous_format, torch.preserve_format, torch.channels_last, torch.channels_last_3d]
"""Memory formats, likewise."""
