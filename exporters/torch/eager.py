"""Run a module on flat tensors as its user would, and leave no trace of it."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from pathlib import Path

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

from entrepot.exporters.torch.flatten import Flat, Tree, constants, flatten, unflatten
from entrepot.exporters.torch.guard import ModuleState, quiet
from entrepot.ir.errors import ConversionError, InputError

# What a forward may raise when it does not like its inputs. KeyboardInterrupt, MemoryError and the like pass through.
MODEL_ERRORS = (RuntimeError, ValueError, TypeError, LookupError, AttributeError, AssertionError, ArithmeticError)
_TORCH = str(Path(torch.__file__).parent)
_HERE = str(Path(__file__).parent)


class EagerRefusal(Exception):  # noqa: N818 - an answer, not a fault
    """The module itself does not take these inputs.

    Attributes:
        source: The user's line that refused, ``net.py:12 in forward: y = x @ w``.
    """

    def __init__(self, cause: BaseException) -> None:
        first = next(iter(str(cause).splitlines()), "")
        super().__init__(f"{type(cause).__name__}: {first}")
        self.source = user_line(traceback.extract_tb(cause.__traceback__))


class Eager:
    """A module as a function from flat tensors to flat tensors.

    Args:
        module: Called as it is; the caller has put it into evaluation mode.
        tree: How the flat tensors make up the arguments.
        state: Restored after each call.

    Attributes:
        numbers: Results that are Python numbers and are given as tensors.
    """

    def __init__(self, module: torch.nn.Module, tree: Tree, state: ModuleState) -> None:
        self.module = module
        self.tree = tree
        self._state = state
        self.numbers: frozenset[str] = frozenset()

    def __call__(self, tensors: Sequence[torch.Tensor], *, seed: int = 0, restore: bool = True) -> Flat:
        """Call the module on copies of ``tensors``.

        Raises:
            EagerRefusal: The module raised.
        """
        args, kwargs = unflatten(self.tree, [tensor.clone() for tensor in tensors])
        torch.manual_seed(seed)
        try:
            with quiet():
                return flatten(self.module(*args, **kwargs), numbers=self.numbers)
        except InputError:
            raise
        except MODEL_ERRORS as error:
            raise EagerRefusal(error) from error
        finally:
            if restore:
                self._state.restore()

    def takes_shape(self, tensors: Sequence[torch.Tensor]) -> bool:
        """Whether the module goes through for tensors of these shapes, tried without values and so at no cost."""
        try:
            with quiet(), FakeTensorMode(allow_non_fake_inputs=True) as fake:
                without_values = [torch.empty_like(tensor) for tensor in map(fake.from_tensor, tensors)]
                args, kwargs = unflatten(self.tree, without_values)
                self.module(*args, **kwargs)
        except MODEL_ERRORS:
            return False
        finally:
            self._state.restore()
        return True

    def require_function(self, tensors: Sequence[torch.Tensor]) -> Flat:
        """The result of a call, once it is clear that another call would give the same.

        Raises:
            InputError: The module does not take the sample.
            ConversionError: Results depend on state that earlier calls left, or on random numbers.
        """
        try:
            first = self(tensors, seed=0, restore=False)
            buffers_changed = self._state.buffers_changed
            second = self(tensors, seed=1)
        except EagerRefusal as refusal:
            raise InputError(
                f"the module does not take the sample: {refusal}"
                + (f", at {refusal.source}" if refusal.source else ""),
                hint="call the module with the sample once to see the whole traceback",
            ) from refusal
        if not _equal(first, second):
            raise self._not_a_function(tensors, first, buffers_changed=buffers_changed)
        return first

    def _not_a_function(
        self, tensors: Sequence[torch.Tensor], first: Flat, *, buffers_changed: bool
    ) -> ConversionError:
        if _equal(first, self(tensors, seed=1)):
            what = "a buffer" if buffers_changed else "an attribute"
            return ConversionError(
                f"results depend on {what} that forward itself changes: a second call with the same inputs differs",
                hint="a graph keeps no state: take the state as an input and return it as an output",
            )
        with _RandomSpotter() as spotter:
            self(tensors)
        place = f" ({'; '.join(dict.fromkeys(spotter.found))})" if spotter.found else ""
        return ConversionError(
            f"results are random: two calls with the same inputs differ{place}",
            hint="draw the random numbers outside and pass them in as an input, or switch the randomness off",
        )


class _RandomSpotter(TorchDispatchMode):
    """Notes every random operator and the user's line that calls it."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.found: list[str] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        if torch.Tag.nondeterministic_seeded in func.tags:
            self.found.append(f"{func.name()} at {user_line(traceback.extract_stack())}")
        return func(*args, **(kwargs or {}))


def user_line(frames: Sequence[traceback.FrameSummary]) -> str:
    """The innermost frame that is neither torch's nor ours: ``net.py:12 in forward: y = x @ w``."""
    for frame in reversed(frames):
        if not frame.filename.startswith((_TORCH, _HERE, "<")):
            return f"{Path(frame.filename).name}:{frame.lineno} in {frame.name}: {frame.line}"
    return ""


def _equal(first: Flat, second: Flat) -> bool:
    numbers = [[repr(place.value) for place in constants(flat.tree)] for flat in (first, second)]
    return (
        len(first.tensors) == len(second.tensors)
        and numbers[0] == numbers[1]
        and all(
            a.shape == b.shape and a.dtype == b.dtype and torch.equal(torch.nan_to_num(a), torch.nan_to_num(b))
            for a, b in zip(first.tensors, second.tensors, strict=True)
        )
    )
