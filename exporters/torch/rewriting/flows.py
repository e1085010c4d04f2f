"""The operator that stands for a branch or a loop in a captured graph, and what is noted about each."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import torch

from entrepot.exporters.torch.rewriting.environment import expression, hint, may_be_none, without_powers

_library = torch.library.Library("entrepot", "FRAGMENT")
_library.define("flow(Tensor[] tensors, SymInt[] ints, SymInt[] sizes, str key) -> Tensor[]")


@dataclass(frozen=True)
class Template:
    """A result.

    Attributes:
        dtype: Its element type.
        shape: For each axis a number, ``(position,)`` of its size among those that the operator is given, ``None``
            where nobody knows, or a name, where all that is known is which others are equal.
    """

    dtype: torch.dtype
    shape: tuple[Any, ...]


_MANY = 4
"""As many rows as a turn may take from what earlier ones have made."""


@dataclass(frozen=True)
class Operand:
    """A tensor that a body is given.

    Attributes:
        dtype: Its element type.
        shape: For each axis a number, or an expression over the sizes outside.
        sample: The same in numbers; ``None`` for those that depend on data.
        growing: Axes along which a loop around makes it grow.
    """

    dtype: torch.dtype
    shape: tuple[Any, ...]
    sample: tuple[int | None, ...]
    growing: tuple[int, ...] = ()

    def opened(self, axes: Collection[int]) -> Operand:
        """The same where the sizes of some axes may differ from time to time; a body may need more than a few."""
        shape = tuple(None if axis in axes else size for axis, size in enumerate(self.shape))
        small = {axis for axis in axes if (self.sample[axis] or 0) < _MANY}
        sample = tuple(None if axis in small else size for axis, size in enumerate(self.sample))
        return replace(self, shape=shape, sample=sample)


@dataclass
class Body:
    """A part of a program that is captured by itself.

    Attributes:
        run: From tensors and numbers to tensors.
        tensors: What it is given.
        ints: Numbers that it is given: an expression over the sizes outside, or ``None`` for one that changes.
        samples: The same in numbers.
        sizes: Values for sizes outside at which it is to be captured.
        condition: Where these are not those in the sample, what holds whenever the body runs.
        shifts: What is added to some of the numbers, by position among all that is given: no size is negative.
        weights: The names of those that it reads.
        needed: Sizes outside that have to be a number: with others, it raises an error, or is not run.
        assumed: What holds of numbers that depend on data whenever the body runs, or ``None``.
        entered: Says after a run what holds of the sizes in it whenever the body runs, or ``None``.
    """

    run: Callable[[Sequence[torch.Tensor], Sequence[Any]], list[Any]]
    tensors: list[Operand]
    ints: list[Any]
    samples: list[int]
    sizes: dict[Any, int] = field(default_factory=dict)
    condition: Any = None
    shifts: dict[int, int] = field(default_factory=dict)
    weights: Collection[str] = ()
    needed: Mapping[Any, int] = field(default_factory=dict)
    assumed: Any = None
    entered: Callable[[], Any] = lambda: None


@dataclass
class Flow:
    """A branch or a loop.

    Attributes:
        bodies: Of a branch two, of a loop one.
        outputs: What comes out.
        line: Where it is in the user's code.
        carried: Of a loop, the positions of the operands that its body gives new values, in the order of its results:
            tensors, then numbers, which count on from there.
        stacked: How many results are one row for each time.
        trips: Of a loop, whether its first number says how often it runs.
        going: Of a loop, whether the last tensor says if it starts, and the body's first result if it goes on.
    """

    bodies: list[Body]
    outputs: list[Template]
    line: str
    carried: list[int] = field(default_factory=list)
    stacked: int = 0
    trips: bool = False
    going: bool = False


_Kind = TypeVar("_Kind", bound=Operand | Template)
FLOWS: dict[str, Flow] = {}
_keys = itertools.count()


def emit(flow: Flow, tensors: Sequence[torch.Tensor], ints: Sequence[Any], sizes: Sequence[Any]) -> list[torch.Tensor]:
    """Put the operator into the graph that is being captured; around it, complex numbers are pairs of real ones."""
    key = f"flow_{next(_keys)}"
    FLOWS[key] = _in_pairs(flow)
    given = [_as_pair(each) for each in tensors]
    made = torch.ops.entrepot.flow(given, list(ints), [without_powers(size) for size in sizes], key)
    kinds = [template.dtype for template in flow.outputs]
    return [torch.view_as_complex(each) if kind.is_complex else each for each, kind in zip(made, kinds, strict=True)]


def _in_pairs(flow: Flow) -> Flow:
    """The same with pairs of real numbers for complex ones."""
    bodies = [replace(body, run=_run_in_pairs(body), tensors=list(map(_paired, body.tensors))) for body in flow.bodies]
    return replace(flow, bodies=bodies, outputs=list(map(_paired, flow.outputs)))


def _run_in_pairs(body: Body) -> Callable[[Sequence[torch.Tensor], Sequence[Any]], list[Any]]:
    run, kinds = body.run, [operand.dtype for operand in body.tensors]

    def run_in_pairs(tensors: Sequence[torch.Tensor], ints: Sequence[Any]) -> list[Any]:
        pairs = zip(tensors, kinds, strict=True)
        given = [torch.view_as_complex(each) if kind.is_complex else each for each, kind in pairs]
        return [_as_pair(each) if isinstance(each, torch.Tensor) else each for each in run(given, ints)]

    return run_in_pairs


def _as_pair(tensor: torch.Tensor) -> torch.Tensor:
    return torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor


def _paired(like: _Kind) -> _Kind:
    if not like.dtype.is_complex:
        return like
    how: dict[str, Any] = {"sample": (*like.sample, 2)} if isinstance(like, Operand) else {}
    return replace(like, dtype=like.dtype.to_real(), shape=(*like.shape, 2), **how)


def _run(tensors: Sequence[torch.Tensor], ints: Sequence[Any], sizes: Sequence[Any], key: str) -> list[torch.Tensor]:
    raise NotImplementedError("it stands for a part of a program, and is not run")


def _shapes(tensors: Sequence[torch.Tensor], ints: Sequence[Any], sizes: Sequence[Any], key: str) -> list[torch.Tensor]:
    made, named = [], dict[str, Any]()
    for template in FLOWS[key].outputs:
        shape = [_size(size, sizes, named) for size in template.shape]
        made.append(torch.empty(shape, dtype=template.dtype))
    return made


def _size(size: Any, sizes: Sequence[Any], named: dict[str, Any]) -> Any:
    if isinstance(size, str):
        return named[size] if size in named else named.setdefault(size, _size(None, sizes, named))
    if size is None:
        return torch.library.get_ctx().new_dynamic_size()
    return sizes[size[0]] if isinstance(size, tuple) else size


_library.impl("flow", _run, "CompositeExplicitAutograd")
torch.library.register_fake("entrepot::flow", _shapes, lib=_library)


def operand(tensor: torch.Tensor) -> Operand:
    """A tensor as a body is to be given one."""
    sizes: tuple[Any, ...] = tuple(tensor.shape)
    shape = tuple(size if isinstance(size, int) else expression(size) for size in sizes)
    growing = tuple(axis for axis, size in enumerate(sizes) if may_be_none(size))
    return Operand(tensor.dtype, shape, tuple(hint(size) for size in sizes), growing)
