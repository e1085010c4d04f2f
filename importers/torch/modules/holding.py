"""Tensors beside layers: which constants become parameters and buffers, and where they are kept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from entrepot.importers.torch.dtypes import NAMES
from entrepot.importers.torch.modules.scopes import Path, shared, split
from entrepot.importers.torch.modules.state import State, every_step
from entrepot.importers.torch.modules.tree import Held, attribute, place
from entrepot.importers.torch.text.lane import may_compute
from entrepot.ir.traits import host_operands
from entrepot.runtime.planning.plan import Block, Step, Value


def hold(state: State, block: Block) -> None:
    """Constants that steps read as tensors, beside layers, become parameters or buffers."""
    readers: dict[Value, list[Path]] = {}
    for step in every_step(block):
        if step in state.layers:
            continue
        for position, value in enumerate(step.inputs):
            if value is not None and value.constant is not None and _is_kept(state, step, position, value):
                readers.setdefault(value, []).append(state.scopes[step])
        for value in _returned(step):
            readers.setdefault(value, []).append(state.scopes[step])
    for value in _constants(block.outputs):
        readers.setdefault(value, []).append(())
    for value, paths in readers.items():
        _hold_one(state, value, shared(paths))


def _returned(step: Step) -> Iterator[Value]:
    """Constants among the results of a step's blocks, but for whether a loop goes on."""
    for block in step.blocks.values():
        yield from _constants(block.outputs[1 if step.op_type == "Loop" else 0 :])


def _constants(values: Sequence[Value | None]) -> Iterator[Value]:
    yield from (value for value in values if value is not None and _is_torchs(value.constant))


def _is_torchs(array: Any) -> bool:
    """Whether a constant is an array that torch has the element type of."""
    is_plain = isinstance(array, np.ndarray) and array.dtype != object
    return is_plain and ir.DataType.from_numpy(array.dtype) in NAMES


def _is_kept(state: State, step: Step, position: int, value: Value) -> bool:
    array = value.constant
    if not _is_torchs(array):
        return False
    if (
        array.size <= _FEW
        and array.ndim <= 1
        and (position in host_operands(step.key) or _is_of_sizes(state, step, value))
    ):
        return False
    return array.size > 1 or state.is_parameter(value)


def _is_of_sizes(state: State, step: Step, value: Value) -> bool:
    """Whether a step computes sizes from others and from a constant that no module has as a tensor."""
    named = state.plan.roles.get(state.source(value)) in ("parameter", "buffer")
    return step in state.light and may_compute(step) and not named


_FEW = 64


def _hold_one(state: State, value: Value, readers: Path) -> None:
    name = state.source(value)
    array, moved = _as_it_was(state, value)
    if (layers := _in_layer(state, value, array, moved)) is not None:
        state.held[value], state.moved[value] = layers
        return
    if moved:
        state.moved[value] = moved
    if "." in name and "/" not in name and "::" not in name:
        *parts, leaf = split(name) or (name,)
        path, leaf = place(parts), attribute(leaf)
    else:
        known = state.plan.ours and state.is_parameter(value)
        path, leaf = () if known else readers, attribute(name.rsplit("/", 1)[-1].rsplit("::", 1)[-1])
    leaf = f"weight_{leaf}" if leaf.isdecimal() else leaf
    while (found := state.tree.find(path)) is not None and found.layer is not None:
        tensor = found.layer.tensors.get(leaf)
        if tensor is not None and tensor.shape == array.shape and np.array_equal(tensor, array, equal_nan=True):
            state.held[value] = path, leaf
            return
        if not path:
            break  # the module is the layer
        path = path[:-1]
    while path and (found := state.tree.find(path)) is not None and found.is_indexed:
        path, leaf = path[:-1], f"{path[-1]}_{leaf}" if "." in name else leaf
    node, stem, number = state.tree.at(path), leaf, 1
    taken = {*node.children, *(node.layer.tensors if node.layer is not None else ())}
    while leaf in taken or (leaf in node.held and not _is_that(node.held[leaf], array)):
        number += 1
        leaf = f"{stem}_{number}"
    saved = not state.plan.roles or state.plan.roles.get(name) in ("parameter", "buffer")
    node.held[leaf] = Held(array, not state.is_parameter(value), name, saved, not saved and array.size <= _FEW)
    state.held[value] = path, leaf


def _in_layer(state: State, value: Value, array: np.ndarray, moved: str) -> tuple[tuple[Path, str], str] | None:
    """Where a layer has the same matrix, if nobody knows the module, and what makes the constant of it."""
    if state.plan.ours or moved or array.ndim != 2 or not state.is_parameter(value):
        return None
    for tensor, path in state.matrices_of(state.source(value)):
        if _is_equal(tensor, array):
            return (path, "weight"), ""
        if _is_equal(tensor.T, array):
            return (path, "weight"), ".T"
    return None


def _as_it_was(state: State, value: Value) -> tuple[np.ndarray, str]:
    """A constant as its module had it, and what makes it what steps read."""
    array = value.constant
    source = state.plan.origins.get(value, value).constant
    saved = state.is_parameter(value) or state.plan.roles.get(state.source(value)) == "buffer"
    if not saved or source.dtype != array.dtype:
        return array, ""
    note = state.plan.stored.get(state.source(value), "")
    if note == "transposed" and source.ndim == 2:
        source = source.T
    elif note.startswith("reshaped from "):
        source = source.reshape([int(size) for size in note.removeprefix("reshaped from ").split(",") if size])
    if _is_equal(source, array):
        return source, ""
    if array.ndim == 2 and _is_equal(source.T, array):
        return source, ".T"
    reshaped = f".reshape({', '.join(map(str, array.shape)) or '()'})"
    return (source, reshaped) if _is_equal(source.reshape(array.shape), array) else (array, "")


def _is_equal(one: np.ndarray, other: np.ndarray) -> bool:
    return one.shape == other.shape and np.array_equal(one, other, equal_nan=True)


def _is_that(held: Held, array: np.ndarray) -> bool:
    return held.array.shape == array.shape and held.array.dtype == array.dtype and np.array_equal(held.array, array)
