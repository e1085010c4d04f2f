"""What a capture spends time on that nothing comes of, left out or remembered.

torch (2.13) looks up the source of every frame for every node that it makes, whether every tensor is contiguous in
any of three ways, and whether the formula of a size is a number, each time that it is asked for the formula. Of each
operation on sizes it tells a recorder, which is there for its own tests. And while it lists the weights, it asks each
some hundred things, every one of which passes through all modes that look at what a module calls.
"""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable, Iterator
from traceback import FrameSummary, StackSummary
from types import CodeType, FrameType
from typing import Any
from unittest import mock

import torch

from entrepot.exporters.torch.capture.cancelling import cancelling
from entrepot.exporters.torch.capture.upstream import FakeTensorConverter, UnseenByModes, size_questions
from entrepot.exporters.torch.upstream import ShapeEnv, SymNode, node_making, node_meanings

_PLAIN = (torch.Tensor, torch.nn.Parameter)


@contextlib.contextmanager
def sparing(node_made: Callable[[], None] | None = None) -> Iterator[None]:
    """Inside, torch.export makes the same program in less time, by a tenth or so.

    Args:
        node_made: Called for each node, and may end the capture.
    """
    meanings: Any = node_meanings
    meaning = functools.partial(meanings._extract_tensor_metadata, include_contiguity=False)  # noqa: SLF001
    bound = "_free_unbacked_symbols_with_path"
    with (
        mock.patch.object(node_making, "CapturedTraceback", _Stacks(node_made)),
        mock.patch.object(node_meanings, "_extract_tensor_metadata", meaning),
        mock.patch.object(SymNode, "expr", property(_formula_once(SymNode.expr.fget))),  # type: ignore[attr-defined]
        mock.patch.object(ShapeEnv, "_create_fx_call_function", _unrecorded()),
        mock.patch.object(FakeTensorConverter, "from_real_tensor", _weights_unseen()),
        mock.patch.object(node_meanings, "track_tensor_tree", _unseen(node_meanings.track_tensor_tree)),
        mock.patch.object(size_questions, bound, _unseen(getattr(size_questions, bound))),
        cancelling(),
    ):
        yield


class _Stacks:
    """Stands where torch gathers the frames of a node; most are those of the node before, and are made once."""

    def __init__(self, node_made: Callable[[], None] | None) -> None:
        self._node_made = node_made
        self._known: dict[tuple[int, int], tuple[CodeType, FrameSummary]] = {}
        self._frame: FrameType | None = None

    def extract(self) -> _Stacks:
        """The frames of the caller, to be summed up at once."""
        if self._node_made is not None:
            self._node_made()
        self._frame = sys._getframe(1)  # noqa: SLF001 - the one way to the frames that makes no objects of them
        return self

    def summary(self) -> StackSummary:
        """The frames, outermost first."""
        frame, self._frame = self._frame, None
        found = StackSummary()
        while frame is not None:
            code = frame.f_code  # known by its id: its hash is computed from all that it holds, each time
            known = self._known.get((id(code), frame.f_lasti))
            if known is None:
                summed = FrameSummary(code.co_filename, frame.f_lineno or 0, code.co_name, lookup_line=False)
                known = self._known[id(code), frame.f_lasti] = code, summed
            found.append(known[1])
            frame = frame.f_back
        found.reverse()
        return found


def _formula_once(formula: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The formula of a size as it was when torch last replaced a symbol by another."""

    def expr(size: Any) -> Any:
        if size.shape_env is None:
            return formula(size)
        version = size.shape_env._replacements_version_counter  # noqa: SLF001
        if not version:
            return size._expr  # noqa: SLF001
        if size._expr_cache is not None and size._expr_ver == version:  # noqa: SLF001
            return size._expr_cache  # noqa: SLF001
        return formula(size)

    return expr


def _unrecorded() -> Callable[[Any, Any, Any], tuple[Any, bool]]:
    """What stands for an operation on sizes in the record of an environment, which mostly keeps none."""
    noted: Any = ShapeEnv._create_fx_call_function  # noqa: SLF001 - has no other name

    def note(env: Any, operation: Any, args: Any) -> tuple[Any, bool]:
        if env._translation_validation_enabled or env.should_record_events:  # noqa: SLF001
            found: tuple[Any, bool] = noted(env, operation, args)
            return found
        return None, False

    return note


def _unseen(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, out of sight of the modes: it calls nothing that is the module's."""

    def unseen(*args: Any, **kwargs: Any) -> Any:
        with UnseenByModes():
            return function(*args, **kwargs)

    return unseen


def _weights_unseen() -> Callable[..., Any]:
    """What makes a tensor without values of one with values; sizes that vary are questions of the module's."""
    plain: Any = FakeTensorConverter.from_real_tensor
    unseen = _unseen(plain)

    def from_real_tensor(converter: Any, mode: Any, tensor: Any, *args: Any, **kwargs: Any) -> Any:
        fixed = type(tensor) in _PLAIN and not args and kwargs.get("shape_env") is None
        return (unseen if fixed else plain)(converter, mode, tensor, *args, **kwargs)

    return from_real_tensor
