"""Run a module on flat tensors as its user would, and leave no trace."""

from __future__ import annotations

import contextlib
import copy
import random
import traceback
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch

from entrepot.exporters.calls import call
from entrepot.exporters.exporter import Callee, Refusal, Required
from entrepot.exporters.notes import listed
from entrepot.exporters.structure import Flat, Tree, constants, flatten, flatten_again, unflatten
from entrepot.exporters.torch.arrays import TORCH
from entrepot.exporters.torch.running.deciding import DecisionSpotter, require_decisions
from entrepot.exporters.torch.running.endless import CallCounter
from entrepot.exporters.torch.running.errors import MODEL_ERRORS
from entrepot.exporters.torch.running.guard import ModuleState, quiet, random_state
from entrepot.exporters.torch.running.kernels import KernelSpotter
from entrepot.exporters.torch.running.raw_data import DataWriter
from entrepot.exporters.torch.running.searching import searches_checked
from entrepot.exporters.torch.running.spotting import DrawSpotter, OperatorSpotter, user_line
from entrepot.exporters.torch.running.stepping import Place, Stepper
from entrepot.exporters.torch.upstream import FakeTensorMode
from entrepot.ir.errors import ConversionError, InputError

_SEEDS = 32  # tried on a module that draws random numbers, to catch one that only drops a layer now and then


# torch (2.13) writes beyond the memory of a matrix whose indices are too large for the size that is tried
_bounded = torch.sparse.check_sparse_tensor_invariants


def refusal(cause: BaseException) -> Refusal:
    """What a module raised, with the user's line."""
    return Refusal(cause, user_line(traceback.extract_tb(cause.__traceback__)))


class Eager(Callee):
    """A module as a function from flat tensors to flat tensors.

    Args:
        module: Called as it is; the caller has put it into evaluation mode.
        tree: How the flat tensors make up the arguments.
        state: Restored after each call.
        kind: The dtype of floating-point tensors that it creates itself; by default torch's.
        stepper: What is called instead of the module, where its state is among the arguments.

    Attributes:
        numbers: Results that are Python numbers and are returned as tensors.
        drew: The libraries whose random numbers the last call drew.
        may_not_end: Whether its calls are to be ended that take far longer than the first.
        required: What it has to decide by values; inputs for which it decides otherwise are refused.
    """

    arrays = TORCH

    def __init__(
        self,
        module: torch.nn.Module,
        tree: Tree,
        state: ModuleState,
        kind: torch.dtype | None = None,
        stepper: Stepper | None = None,
    ) -> None:
        self.module = module
        self._stepper = stepper
        self.tree = tree
        self._state = state
        self._kind = kind
        self.drew = set[str]()
        self.may_not_end = False
        self._usual: int | None = None

    def __call__(self, tensors: Sequence[torch.Tensor], /, *, seed: int = 0, restore: bool = True) -> Flat:
        """Call the module on copies of ``tensors``.

        Raises:
            Refusal: The module raised.
        """
        return self._called(tensors, seed=seed, restore=restore)[0]

    def with_arguments(self, tensors: Sequence[torch.Tensor]) -> tuple[Flat, Flat]:
        """The result of a call, and the arguments as the module leaves them.

        Raises:
            Refusal: The module raised.
        """
        result, args, kwargs = self._called(tensors, seed=0, restore=True)
        return result, flatten_again(self.tree, args, kwargs, TORCH)

    def _called(self, tensors: Sequence[torch.Tensor], *, seed: int, restore: bool) -> tuple[Flat, Any, Any]:
        _seed(seed)
        before = random_state()
        try:
            args, kwargs = unflatten(self.tree, [tensor.clone() for tensor in tensors])  # some check what they hold
            with (
                quiet(),
                _default_type(self._kind),
                _bounded(),
                searches_checked(),
                self._counted(),
                self._as_required(),
            ):
                return (
                    flatten(self._raw(args, kwargs), numbers=self.numbers, arrays=TORCH),
                    args,
                    kwargs,
                )
        except InputError:
            raise
        except MODEL_ERRORS as error:
            raise refusal(error) from error
        finally:
            after = random_state()
            self.drew = {name for name in after if after[name] != before[name]}
            if restore:
                self._state.restore()

    def _raw(self, args: Any, kwargs: Any) -> Any:
        """What is called; parts that are compiled run as they were written, or each new size would be compiled."""
        with torch.compiler.set_stance("force_eager"):
            return call(self._stepper or self.module, args, kwargs, MODEL_ERRORS)

    @contextlib.contextmanager
    def _counted(self) -> Iterator[None]:
        if not self.may_not_end:
            yield
            return
        with CallCounter(self._usual) as calls:
            yield
        self._usual = max(self._usual or 0, calls.count)

    @contextlib.contextmanager
    def _as_required(self) -> Iterator[None]:
        if not self.required:
            yield
            return
        with DecisionSpotter() as spotter:
            yield
        require_decisions(spotter.found, self.required)

    def decisions(self, tensors: Sequence[torch.Tensor]) -> Sequence[Required]:
        """What it decides by the values of some tensors.

        Raises:
            Refusal: The module raised.
        """
        with DecisionSpotter() as spotter:
            self(tensors)
        return spotter.found

    @property
    def usual(self) -> int:
        """How often a call calls torch, as far as that was counted."""
        return self._usual or 0

    def in_double(self, most: int) -> Eager:
        """A copy that computes in float64.

        Raises:
            Refusal: Its weights would take more than ``most`` bytes, or it cannot be copied.
        """
        if 8 * sum(tensor.numel() for tensor in (*self.module.parameters(), *self.module.buffers())) > most:
            raise Refusal(MemoryError("its weights are too large to be copied"))
        try:
            with quiet():
                module = copy.deepcopy(self.module).double()
        except MODEL_ERRORS as error:
            raise refusal(error) from error
        stepper = None if self._stepper is None else self._stepper.on(module)
        state = ModuleState(module, self._state.written)
        double = Eager(module, self.tree, state, kind=torch.float64, stepper=stepper)
        double.numbers, double.required = self.numbers, self.required
        double.may_not_end, double._usual = self.may_not_end, self._usual
        return double

    def takes_shapes(self, arrays: Sequence[torch.Tensor], shapes: Sequence[Sequence[int]]) -> bool:
        """Whether the module accepts tensors of these shapes, tried without values and so at no cost."""
        try:
            with quiet(), FakeTensorMode(allow_non_fake_inputs=True), DataWriter():
                pairs = zip(arrays, shapes, strict=True)
                without_values = [torch.empty(shape, dtype=tensor.dtype) for tensor, shape in pairs]
                args, kwargs = unflatten(self.tree, without_values)
                self._raw(args, kwargs)
        except MODEL_ERRORS:
            return False
        finally:
            self._state.restore()
        return True

    def follow(self, tensors: Sequence[torch.Tensor]) -> None:
        """Call the module on these very tensors, which need not have values; within ``restoring``.

        Raises:
            Exception: Whatever the module raises.
        """
        args, kwargs = unflatten(self.tree, tensors)
        with DataWriter():
            self._raw(args, kwargs)

    @contextlib.contextmanager
    def restoring(self) -> Iterator[None]:
        """What the module changed is put back at the end; around modes in which tensors have no values to compare."""
        try:
            yield
        finally:
            self._state.restore()

    def require_function(self, tensors: Sequence[torch.Tensor], *, random: bool = False) -> Flat:
        """The result of a call, once it is clear that another call would return the same.

        Args:
            tensors: The sample.
            random: Whether it may also depend on numbers that torch draws.

        Raises:
            InputError: The module does not take the sample.
            ConversionError: Results depend on state left by earlier calls, or on random numbers.
        """
        try:
            with self._state.keeping():
                first = self(tensors, seed=0, restore=False)
            changed, drew = self._state.changed(), self.drew
            with KernelSpotter() as seen:
                second = self(tensors, seed=0 if random else 1)
            self.may_not_end, self._usual = seen.reads, seen.count
        except Refusal as refused:
            raise InputError(
                f"the module does not take the sample: {refused}"
                + (f", at {refused.source}" if refused.source else ""),
                hint=_precision_hint(self.module, tensors)
                or "call the module with the sample once to see the whole traceback",
            ) from refused
        if not same_results(first, second) and (drew or changed or not _round_alike(first, second)):
            alike = random or same_results(first, self(tensors, seed=1))
            raise self._stateful(changed) if alike else self._random(tensors)
        if drew - ({"torch"} if random else set()) and self.is_random(tensors):
            raise self._random(tensors)
        return first

    def is_random(self, tensors: Sequence[torch.Tensor]) -> bool:
        """Whether results differ from seed to seed."""
        first = self(tensors)
        return bool(self.drew) and not all(same_results(first, self(tensors, seed=seed)) for seed in range(1, _SEEDS))

    def _stateful(self, changed: Sequence[Place]) -> ConversionError:
        names = listed([place.name for place in changed] or self._state.written)
        if not changed:
            return ConversionError(
                f"results depend on parameters that forward writes to ({names}): a second call differs",
                hint="compute the new value out of place, or make it a buffer",
            )
        return ConversionError(
            f"results depend on state that forward changes ({names}): a second call with the same inputs differs",
            hint='a graph keeps no state: state="outputs" makes it inputs and outputs, state="freeze" constant',
        )

    def _random(self, tensors: Sequence[torch.Tensor]) -> ConversionError:
        with OperatorSpotter(torch.Tag.nondeterministic_seeded) as operators, DrawSpotter() as draws:
            self(tensors)
        found = dict.fromkeys(f"{what} at {line}" for what, line in (*operators.found, *draws.found))
        places = f" ({'; '.join(found)})" if found else ""
        return ConversionError(
            f"results are random: two calls with the same inputs differ{places}",
            hint="random=True draws them in the graph, if they are torch's; else pass them in as an input",
        )


def _precision_hint(module: torch.nn.Module, tensors: Sequence[torch.Tensor]) -> str:
    """What to do about NumPy's floats, which are doubles, for weights that are not."""
    given = {tensor.dtype for tensor in tensors if tensor.is_floating_point()}
    wanted = {weight.dtype for weight in module.parameters() if weight.is_floating_point()}
    if given != {torch.float64} or len(wanted) != 1 or given == wanted:
        return ""
    name = str(next(iter(wanted))).removeprefix("torch.")
    return f"the weights are {name}, the sample is float64: give x.astype('{name}'), or x.to(torch.{name})"


@contextlib.contextmanager
def _default_type(kind: torch.dtype | None) -> Iterator[None]:
    """Inside, Python floats, ``torch.zeros`` and the like have this dtype."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(kind or before)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def _seed(seed: int) -> None:
    """Every global generator that forward may draw from."""
    if torch.accelerator.is_available():
        torch.manual_seed(seed)
    else:  # the same, but for a note of who calls, kept for devices that are not there
        torch.default_generator.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002 - the global state is what forward may draw from


def _round_alike(first: Flat, second: Flat) -> bool:
    """Whether results differ by rounding only: LAPACK (gelsy) may start from memory as it finds it."""
    pairs = list(zip(first.tensors, second.tensors, strict=False))
    same = len(first.tensors) == len(second.tensors) and all(
        a.shape == b.shape and a.dtype == b.dtype for a, b in pairs
    )
    return same and all(_within_rounding(a, b) for a, b in pairs)


def _within_rounding(a: torch.Tensor, b: torch.Tensor) -> bool:
    if not a.is_floating_point() or not a.numel():
        return torch.equal(a, b)
    step = 32 * torch.finfo(a.dtype).eps
    return torch.allclose(a, b, rtol=step, atol=step * float(a.nan_to_num().abs().amax()), equal_nan=True)


def same_results(first: Flat, second: Flat) -> bool:
    """Whether two calls gave exactly the same."""
    numbers = [[repr(place.value) for place in constants(flat.tree)] for flat in (first, second)]
    return (
        len(first.tensors) == len(second.tensors)
        and numbers[0] == numbers[1]
        and all(
            a.shape == b.shape and a.dtype == b.dtype and torch.equal(_without_nan(a), _without_nan(b))
            for a, b in zip(first.tensors, second.tensors, strict=True)
        )
    )


def _without_nan(tensor: torch.Tensor) -> torch.Tensor:
    return tensor if tensor.is_quantized else torch.nan_to_num(tensor)
