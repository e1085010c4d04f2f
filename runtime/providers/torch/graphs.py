"""Work that is captured once for each choice of shapes, and then done again by one call."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef

from entrepot.runtime.dividing.copies import COPIES
from entrepot.runtime.planning.plan import FUSED, Step
from entrepot.runtime.providers.torch.accelerator import Accelerator, Replay
from entrepot.runtime.providers.torch.uploads import Uploads

_WARM = 2
"""Runs before work is captured: libraries choose their kernels, and take memory, in the first ones."""

_KEPT = 8
"""Choices of shapes that are kept; each holds the memory of a whole run."""

_COUNTED = ("Compress", "NonZero", "Unique")


def reason_against(steps: Iterable[Step]) -> str:
    """Why a part cannot be captured; empty if it can: nothing on the way may wait for the device, or vary unseen."""
    for step in steps:
        if step.domain == COPIES and step.op_type == "ToHost":
            return f"{step.where}: the host reads what the device computes"
        if step.domain == COPIES:
            continue  # what the host computes without that follows from shapes and its own feeds: from the signature
        if step.is_a(*_COUNTED):
            return f"{step.where}: how much it makes depends on the data"
        if step.traits.random and step.domain != FUSED:
            return f"{step.where}: it draws other numbers in each run"
    return ""


@dataclass
class _Seen:
    """Inputs of one choice of shapes that has not been captured yet.

    Attributes:
        runs: How often it came.
        last: Where what came last lies.
        steady: Which inputs came in the same memory each time.
    """

    runs: int = 0
    last: Sequence[_Place | None] = ()
    steady: Sequence[bool] = ()

    def note(self, inputs: Sequence[Any]) -> None:
        before = self.steady or [True] * len(inputs)
        places = [_Place(each) if isinstance(each, Tensor) else None for each in inputs]
        if self.runs:
            pairs = zip(before, self.last, places, strict=True)
            self.steady = [was and last is not None and last.is_still(now) for was, last, now in pairs]
        self.runs, self.last = self.runs + 1, places


class _Place:
    """Where a tensor lies, without keeping it there: what is fed once, such as a cache that grows, is let go."""

    def __init__(self, tensor: Tensor) -> None:
        self.address, self._storage = tensor.data_ptr(), StorageWeakRef(tensor.untyped_storage())

    def is_still(self, other: _Place | None) -> bool:
        """Whether another tensor of the same shape is that memory, which nobody gave back in between."""
        return other is not None and self.address == other.address and not self._storage.expired()


@dataclass
class _Captured:
    """Captured work, and the memory that it reads and writes.

    Attributes:
        given: Copies of its inputs, or where one is steady the tensor itself.
        steady: Which those are.
        results: What it writes to.
        replay: Does it.
        read: What it reads besides.
    """

    given: Sequence[Any]
    steady: Sequence[bool]
    results: tuple[Any, ...]
    replay: Replay
    read: Sequence[Tensor]

    def fits(self, inputs: Sequence[Any]) -> bool:
        """Whether what should be steady is."""
        pairs = zip(self.steady, self.given, inputs, strict=True)
        return all(_is_same(own, fed) for is_steady, own, fed in pairs if is_steady)

    def run(self, inputs: Sequence[Any]) -> tuple[Any, ...]:
        for is_steady, own, fed in zip(self.steady, self.given, inputs, strict=True):
            if not is_steady and isinstance(own, Tensor):
                own.copy_(fed)
        self.replay()
        return tuple(_own(result) for result in self.results)


@dataclass(frozen=True)
class _Direct:
    """A choice of shapes that is run step by step.

    Attributes:
        reason: Why it is.
    """

    reason: str


class Graphs:
    """A part that replays what it did before with inputs of the same shapes.

    Inputs that come in the same memory from run to run are read where they are; others are copied. Work is captured
    only where that is measured to be faster, as it is unless results are large, which are copied.

    Args:
        run: The part, on tensors; and on NumPy arrays where it takes sizes from the host.
        accelerator: Captures it.
        reason: Why it cannot be captured; empty if it can.
    """

    def __init__(self, run: Callable[..., tuple[Any, ...]], accelerator: Accelerator, reason: str) -> None:
        self._plain = run
        self._accelerator = accelerator
        self._reason = reason if accelerator.captures else f"{accelerator.device.type} captures nothing"
        self._runs: OrderedDict[tuple[Any, ...], _Seen | _Captured | _Direct] = OrderedDict()
        self._uploads = Uploads()

    def __call__(self, *inputs: Any) -> tuple[Any, ...]:
        """The part's outputs."""
        signature = None if self._reason else signature_of(inputs)
        if signature is None:
            return self._run(*inputs)
        known = self._runs.pop(signature, None) or _Seen()
        if isinstance(known, _Seen):
            known = self._captured(inputs, known.steady) if known.runs >= _WARM else known
        elif isinstance(known, _Captured) and not known.fits(inputs):
            known = self._captured(inputs, [False] * len(inputs))
        self._runs[signature] = known
        while len(self._runs) > _KEPT:
            self._runs.popitem(last=False)
        if isinstance(known, _Captured):
            return known.run(inputs)
        if isinstance(known, _Seen):
            known.note(inputs)
        return self._run(*inputs)

    def _run(self, *inputs: Any) -> tuple[Any, ...]:
        with self._uploads:
            return self._plain(*inputs)

    def _captured(self, inputs: Sequence[Any], steady: Sequence[bool]) -> _Captured | _Direct:
        kept = [is_steady or not isinstance(each, Tensor) for is_steady, each in zip(steady, inputs, strict=True)]
        given = [each if keeps else each.clone() for keeps, each in zip(kept, inputs, strict=True)]
        try:
            replay, results = self._accelerator.capture(lambda: self._run(*given))
        except RuntimeError as error:  # the same work ran twice: what fails is capturing it
            return _Direct((str(error) or type(error).__name__).splitlines()[0])
        made = _Captured(given, steady, results, replay, tuple(self._uploads.kept.values()))
        seconds = self._accelerator.seconds
        is_slower = seconds(lambda: made.run(inputs)) > seconds(lambda: self._run(*inputs))
        return _Direct("copies of what goes in and out take longer than is saved") if is_slower else made

    def remark(self) -> str:
        """Why it is not captured, or not for some shapes; empty if it is."""
        reasons = [each.reason for each in self._runs.values() if isinstance(each, _Direct)]
        return "; ".join(f"not captured as a graph: {each}" for each in dict.fromkeys([self._reason, *reasons]) if each)

    def trim(self) -> None:
        """Forget what was captured, with its memory."""
        self._runs.clear()
        self._uploads = Uploads()


def _is_same(one: Any, other: Any) -> bool:
    """Whether two inputs of one shape are the same memory; both exist, so that equal addresses mean that."""
    return isinstance(one, Tensor) and one.data_ptr() == other.data_ptr()


def signature_of(inputs: Sequence[Any]) -> tuple[Any, ...] | None:
    """Equal for runs that do the same work; ``None`` for sequences and optionals."""
    parts: list[Any] = []
    for each in inputs:
        if isinstance(each, Tensor):
            # along an axis of one element, the stride is whatever the caller's array was cut from
            strides = tuple(stride for size, stride in zip(each.shape, each.stride(), strict=True) if size > 1)
            parts.append((tuple(each.shape), each.dtype, strides))
        elif isinstance(each, np.ndarray) and each.dtype.kind != "O":
            parts.append((each.shape, each.dtype.str, each.tobytes()))  # its values decide what is done
        else:
            return None
    return tuple(parts)


def _own(result: Any) -> Any:
    """A result that the next run does not write to."""
    if isinstance(result, list):
        return [_own(member) for member in result]
    return result.clone() if isinstance(result, Tensor) else result
