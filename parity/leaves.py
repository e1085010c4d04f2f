"""What is compared: outputs in any form, given the same names and taken apart into arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from entrepot.ir.errors import InputError
from entrepot.runtime.arrays import as_array, is_array


def named(expected: Any, actual: Any) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Both sides by name, as ``compare`` takes them.

    Raises:
        InputError: One is ``None``, or their forms do not say which output is compared with which.
    """
    for what, outputs in (("expected", expected), ("actual", actual)):
        if outputs is None:
            raise InputError(f"{what} is None: there is nothing to compare", hint="give outputs by name, or an array")
    if isinstance(expected, Mapping) and isinstance(actual, Mapping):
        return expected, actual
    if isinstance(expected, Mapping):
        return expected, _like(actual, expected)
    if isinstance(actual, Mapping):
        return _like(expected, actual), actual
    return _sole(expected), _sole(actual)


def _sole(outputs: Any) -> dict[str, Any]:
    """Unnamed outputs, under a name; an empty tuple or list is no output."""
    return {} if isinstance(outputs, list | tuple) and not outputs else {"output": outputs}


def _like(outputs: Any, names: Mapping[str, Any]) -> dict[str, Any]:
    """Outputs without names, under the names of the other side."""
    if len(names) == 1:
        (name, other), *_ = names.items()
        wrapped = isinstance(outputs, list | tuple) and len(outputs) == 1 and not isinstance(other, list | tuple)
        return {name: outputs[0] if wrapped and is_array(outputs[0]) else outputs}
    if isinstance(outputs, list | tuple) and len(outputs) == len(names):
        return dict(zip(names, outputs, strict=True))
    raise InputError(
        f"one side has {len(names)} outputs by name, the other is a {type(outputs).__name__} without names",
        hint=f"give a dict, or a tuple in the order {list(names)}",
    )


def with_columns(outputs: Mapping[str, Any]) -> dict[str, Any]:
    """What a model returned, with rows of one map each as one map of columns, in the type that ONNX gives them.

    Runtimes return the numbers of maps, which are in single precision, as Python's own.
    """
    return {name: _columns(value) if _is_table(value) else value for name, value in outputs.items()}


def _is_table(value: Any) -> bool:
    if not isinstance(value, list) or not value:
        return False
    return all(isinstance(row, dict) and row.keys() == value[0].keys() for row in value)


def _columns(rows: list[dict[Any, Any]]) -> dict[Any, Any]:
    columns = {key: np.asarray([row[key] for row in rows]) for key in rows[0]}
    return {key: each.astype(np.float32) if each.dtype == np.float64 else each for key, each in columns.items()}


def leaves(outputs: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """The single things to compare: every array or ``None`` with its path, and the length or keys of each container."""
    if isinstance(outputs, Mapping):
        if name:
            yield f"keys({name})", sorted(map(str, outputs))
        for key, value in outputs.items():
            yield from leaves(value, f"{name}[{key!r}]" if name else str(key))
    elif isinstance(outputs, list | tuple) and not _is_plain(outputs):
        yield f"len({name})", len(outputs)
        for index, value in enumerate(outputs):
            yield from leaves(value, f"{name}[{index}]")
    else:
        yield name, None if outputs is None else _leaf(outputs, name)


def _is_plain(values: Any) -> bool:
    """Whether these are Python's own numbers or strings, nested like an array."""
    if isinstance(values, list | tuple):
        return bool(values) and all(map(_is_plain, values))
    return isinstance(values, bool | int | float | complex | str)


def _leaf(value: Any, name: str) -> np.ndarray[Any, Any]:
    array = as_array(value, name)
    if array.dtype.kind == "O" and not all(isinstance(item, str | bytes) for item in array.flat):
        raise InputError(f"a {type(value).__name__} holds objects, not numbers or strings", value=name)
    return array
