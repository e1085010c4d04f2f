"""Elementwise steps in a row, computed piece by piece: each piece goes through all of them while it is in the cache.

A large result that is written to memory and read back by the next step costs ten times its arithmetic, and the memory
that the kernel hands out for it more still. The functions are those that run the steps one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from torch import Tensor

from entrepot.ir.table import OpKey
from entrepot.runtime.planning import fuse
from entrepot.runtime.planning.chains import as_one
from entrepot.runtime.planning.fuse import Neighbours
from entrepot.runtime.planning.plan import FUSED, Block, Step, Value

PIECE = 1 << 15
"""Elements that one thread takes through all steps at a time: 128 KiB, so that a few operands stay in its cache."""

LEAST = 1 << 18
"""Elements from which that is worth the calls."""

_NAMED = 4
"""Steps of which a joined one tells all names."""


def _relu(x: Tensor, *, out: Tensor | None = None) -> Tensor:
    return torch.clamp_min(x, 0.0, out=out)


_FUNCTIONS: Mapping[str, Callable[..., Tensor]] = {
    "Abs": torch.abs, "Add": torch.add, "Ceil": torch.ceil, "Clip": torch.clamp, "Cos": torch.cos, "Div": torch.div,
    "Erf": torch.erf, "Exp": torch.exp, "Floor": torch.floor, "Log": torch.log, "Max": torch.maximum,
    "Min": torch.minimum, "Mul": torch.mul, "Neg": torch.neg, "Pow": torch.pow, "Reciprocal": torch.reciprocal,
    "Relu": _relu, "Round": torch.round, "Sigmoid": torch.sigmoid, "Sin": torch.sin, "Sqrt": torch.sqrt,
    "Sub": torch.sub, "Tanh": torch.tanh,
}  # fmt: skip
"""They take ``out``, which may be an operand."""

_ARITY = {"Add": 2, "Clip": 3, "Div": 2, "Max": 2, "Min": 2, "Mul": 2, "Pow": 2, "Sub": 2}


class _Link(NamedTuple):
    """One step of a chain; operands are numbers of slots, or constants of one element."""

    function: Callable[..., Tensor]
    operands: tuple[int | Tensor, ...]


_Links: TypeAlias = Sequence[_Link]


def join(block: Block) -> None:
    """Join elementwise steps of float32 that follow each other in a bound block, and in the blocks within it."""
    block.steps = fuse.fused(block, dict.fromkeys(_FUNCTIONS, (_join_from,))).steps


def _join_from(graph: Neighbours, first: Step) -> None:
    operands: list[Value] = []
    steps, links = [first], [_link(first, None, operands)]
    if links[0] is None or not operands or _is_small(first):
        return
    while (after := graph.only_reader(steps[-1])) is not None and after.domain == "":
        link = _link(after, steps[-1].outputs[0], operands) if after.op_type in _FUNCTIONS else None
        if link is None:
            break
        steps.append(after)
        links.append(link)
    if len(steps) > 1:
        function = _chained([link for link in links if link is not None])
        step = as_one(steps, list(operands), function)
        if len(steps) > _NAMED:
            function.__name__ = "elementwise"
            step = replace(step, key=OpKey(FUSED, "Elementwise", 1), where=f"{steps[0].where} to {steps[-1].where}")
        graph.replace(steps, step)


def _link(step: Step, before: Value | None, operands: list[Value]) -> _Link | None:
    """The step, if its operands are the result before it, constants of one element, and values of the result's shape.

    New ones of the last kind are appended to ``operands``.
    """
    if step.on_host or len(step.inputs) != _ARITY.get(step.op_type, 1) or not _is_float(step.outputs[0]):
        return None
    found: list[int | Tensor] = []
    new: list[Value] = []
    for value in step.inputs:
        if value is None:
            return None
        if value is before:
            found.append(0)
        elif isinstance(value.constant, Tensor) and value.constant.numel() == 1 and value.constant.ndim <= _rank(step):
            found.append(value.constant.reshape(()))
        elif value.constant is None and _is_float(value) and _is_alike(value, step.outputs[0]):
            known = [*operands, *new]
            new += [] if value in known else [value]
            found.append([*known, value].index(value) + 1)
        else:
            return None
    operands += new
    return _Link(_FUNCTIONS[step.op_type], tuple(found))


def _is_float(value: Value | None) -> bool:
    return value is not None and value.type is not None and value.type.numpy == np.float32


def _rank(step: Step) -> int:
    shape = None if step.outputs[0] is None or step.outputs[0].type is None else step.outputs[0].type.shape
    return 0 if shape is None else len(shape)


def _is_alike(value: Value, result: Value | None) -> bool:
    """Whether both are declared to have one shape, of sizes or symbols."""
    known, wanted = value.type, None if result is None else result.type
    if known is None or wanted is None or known.shape is None:
        return False
    return None not in known.shape and known.shape == wanted.shape


def _is_small(step: Step) -> bool:
    """Whether there is certainly too little to do."""
    shape = None if step.outputs[0] is None or step.outputs[0].type is None else step.outputs[0].type.shape
    sizes = [size for size in shape or () if isinstance(size, int)]
    return shape is not None and len(sizes) == len(shape) and bool(np.prod(sizes, dtype=float) < LEAST)


def _chained(links: _Links) -> Callable[..., Tensor]:
    def run(*given: Tensor) -> Tensor:
        x = given[0]
        size = x.numel()
        if size < LEAST or not all(_is_in_step(x, other) for other in given):
            return _one_by_one(links, given)
        y = torch.empty_like(x)
        piece = PIECE * torch.get_num_threads()
        for slots in zip(*(each.as_strided((size,), (1,)).split(piece) for each in (y, *given)), strict=True):
            for function, operands in links:
                function(*[slots[at] if type(at) is int else at for at in operands], out=slots[0])
        return y

    return run


def _is_in_step(x: Tensor, other: Tensor) -> bool:
    """Whether equal places of two tensors have equal distances from their start in memory, without gaps."""
    if other.shape != x.shape or other.stride() != x.stride():
        return False
    return x.is_contiguous() or (x.ndim == 4 and x.is_contiguous(memory_format=torch.channels_last))


def _one_by_one(links: _Links, given: Sequence[Tensor]) -> Tensor:
    y: Any = None
    for function, operands in links:
        y = function(*[at if type(at) is not int else given[at - 1] if at else y for at in operands])
    return y
