"""What every source of torch shares: a module that is called eagerly, under guard."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import numpy as np
import onnx_ir
import torch

from entrepot.exporters.axes.groups import Axis
from entrepot.exporters.axes.relations import Relation
from entrepot.exporters.counting import follow_sizes, has_state, uncounted, unreturned
from entrepot.exporters.exporter import Callee, Refusal, Source
from entrepot.exporters.notes import listed
from entrepot.exporters.options import State
from entrepot.exporters.structure import Flat
from entrepot.exporters.torch.arrays import TORCH
from entrepot.exporters.torch.capture.relations import suggested_relations
from entrepot.exporters.torch.lowering.weights import refer_to_weights, settle_weights
from entrepot.exporters.torch.running.checks import check_results, check_tensors
from entrepot.exporters.torch.running.chosen import ChoosingAs
from entrepot.exporters.torch.running.eager import Eager
from entrepot.exporters.torch.running.first import FirstOfEqual
from entrepot.exporters.torch.running.guard import ModuleState, untouched
from entrepot.exporters.torch.running.shadowed import shadowed_left_out
from entrepot.exporters.torch.running.stepping import Stepper
from entrepot.exporters.torch.sources.checkpoint import Checkpoint
from entrepot.exporters.torch.sources.function import FunctionModule
from entrepot.exporters.torch.sources.state import found_stepper, with_state
from entrepot.exporters.torch.upstream import is_quantised_class
from entrepot.exporters.weight_store import WeightStore
from entrepot.ir.errors import InputError


class TorchSource(Source):
    """A module with a flat sample.

    Args:
        module: What is called.
        call: Its sample.

    Raises:
        InputError: ONNX has no type for an input.

    Attributes:
        keeps: What becomes of state that forward changes; see ``Options``.
        training: Whether the module is called in its own mode.
        random: Whether it may draw random numbers.
        stepper: What is called instead of the module, where it has such state.
        checkpoint: The weights of a module that was built without any.
    """

    framework = f"torch {torch.__version__}"
    noun = "module"
    arrays = TORCH
    keeps: State = "refuse"
    training = False
    random = False

    def __init__(self, module: Any, call: Flat) -> None:
        check_tensors(call)
        kind = type(module)
        self.module = module
        self.call = call
        self.name, self.origin = kind.__name__, f"{kind.__module__}:{kind.__qualname__}"
        if isinstance(module, FunctionModule):
            self.name, self.origin = module.name, module.origin
        self.parameters = {name for name, _ in (*module.named_parameters(), *module.named_buffers())}
        self._eager: Eager | None = None
        self._state: ModuleState | None = None
        self.stepper: Stepper | None = None
        self.checkpoint: Checkpoint | None = None
        self.store = WeightStore()
        self.state_notes: list[str] = []
        self._followed = False
        self._random: bool | None = None
        self._rounds = True

    @contextlib.contextmanager
    def guard(self) -> Iterator[None]:
        """Evaluation mode without gradients; afterwards weights, buffers, attributes and random state are as before."""
        has_weights = contextlib.nullcontext() if self.checkpoint is None else self.checkpoint.inside()
        left_out = shadowed_left_out(self.module)
        with has_weights, left_out, untouched(self.module, training=self.training) as self._state:
            self._eager = Eager(self.module, self.call.tree, self._state)
            self._take_state()
            self._follow_state()
            yield

    def _take_state(self) -> None:
        """Make state that forward changes part of the call, if that is asked for."""
        if self.keeps == "refuse" or self.stepper is not None:
            return
        returned = self.keeps == "outputs"
        with contextlib.suppress(Refusal):  # the next call will say so
            self.stepper = found_stepper(self.eager, self.call, self.state, returned=returned)
        if self.stepper is None:
            return
        if returned:
            self.call = with_state(self.call, self.stepper)
            self.parameters = {*self.parameters} - {place.name for place in self.stepper.places}
            if changing := self.stepper.changing:
                self.state_notes = [
                    f"one step only, as in the sample: other tensors are in {listed(changing)} after it; for steps "
                    "after that, export the module once it has been called"
                ]
        else:
            names = listed([place.name for place in self.stepper.places])
            self.state_notes = [f'state="freeze": kept as in the sample: {names}']
        self._eager = Eager(self.module, self.call.tree, self.state, stepper=self.stepper)

    def _follow_state(self) -> None:
        """Let numbers that count what is in an argument follow its size; without objects nothing is run."""
        if self._followed or not has_state(self.call.tree):
            return
        with contextlib.suppress(Refusal, InputError):  # the next call will say so
            result, left = self.eager.with_arguments(self.call.tensors)
            self.call.tree = self.eager.tree = follow_sizes(self.call, left)
            lost = unreturned(self.call, left, result, TORCH)
            notes = _fixed_note(uncounted(self.call.tree, left)), _lost_note(lost)
            self.state_notes += [note for note in notes if note]
            self._followed = True

    @property
    def eager(self) -> Eager:
        """The module as it is called, under guard."""
        assert self._eager is not None
        self._eager.numbers, self._eager.required = self.numbers, self.required
        return self._eager

    @property
    def state(self) -> ModuleState:
        """What the module was like before, under guard."""
        assert self._state is not None
        return self._state

    def __call__(self, arrays: Sequence[torch.Tensor], /) -> Flat:
        """Call the module."""
        try:
            return self.eager(arrays, seed=self.seed)
        finally:
            if self.checkpoint is not None:
                self.checkpoint.release()

    def is_random(self) -> bool:
        """Whether results differ from seed to seed, where that is asked for."""
        if self._random is None:
            self._random = self.random and self.eager.is_random(self.call.tensors)
        return self._random

    def takes_shapes(self, arrays: Sequence[torch.Tensor], shapes: Sequence[Sequence[int]]) -> bool:
        """Tried on tensors without values."""
        return self.eager.takes_shapes(arrays, shapes)

    def relations(self, arrays: Sequence[torch.Tensor], equal: Sequence[Collection[Axis]]) -> Sequence[Relation] | None:
        """What a run on tensors without values notes."""
        return suggested_relations(self.eager, arrays, equal)

    def in_double(self, most: int) -> Callee:
        """A copy that computes in float64."""
        return self.eager.in_double(most)

    @staticmethod
    def first_of_equal() -> FirstOfEqual:
        """While it is on, the module chooses the first of equal elements, as ONNX does."""
        return FirstOfEqual()  # type: ignore[no-untyped-call]

    @staticmethod
    def choosing_as(choices: Sequence[np.ndarray]) -> ChoosingAs:
        """While it is on, the module chooses as a graph has, among what single precision does not tell apart."""
        return ChoosingAs(choices)

    def unsteadiness(self, arrays: Sequence[torch.Tensor]) -> Sequence[float]:
        """How far results may move because something is rounded to the other of two steps.

        Once a call has rounded nothing, no other is asked: at worst, less is allowed than could be.
        """
        from entrepot.exporters.torch.quantised.steps import unsteadiness

        found = unsteadiness(self.eager, arrays) if self._rounds else []
        self._rounds = bool(found)
        return found

    def settled(self) -> Flat:
        """The result for the sample, also with other seeds if the module draws random numbers."""
        return self.eager.require_function(self.call.tensors, random=self.random)

    def check(self, result: Flat) -> None:
        """Refuse results for which ONNX has no type."""
        check_results(result)

    def own_weights(self, graph: onnx_ir.Model, *, share: bool) -> None:
        """Leave the weights in their files, copy them, or link them to those of the module."""
        if self.checkpoint is not None:
            refer_to_weights(graph, self.checkpoint.reference)
        settle_weights(graph, self.store, share=share)


def _fixed_note(names: Sequence[str]) -> str:
    """That numbers in the state of arguments are those of the sample, although the module changes them."""
    several = len(names) > 1
    what = "numbers that forward changes, but constants" if several else "a number that forward changes, but a constant"
    return f"{what} of the graph: {listed(names)}" if names else ""


def _lost_note(names: Sequence[str]) -> str:
    return f"forward changes, but does not return, so no output has: {listed(names)}" if names else ""


def mode_note(module: torch.nn.Module) -> str:
    """That the module was exported in evaluation mode, if it was in training mode before."""
    training = [
        name
        for name, part in module.named_modules()
        if getattr(part, "training", False) and not is_quantised_class(type(part))
    ]
    if not training:
        return ""
    which = "the module was" if "" in training else f"{listed(training)} {'were' if len(training) > 1 else 'was'}"
    return f"exported in evaluation mode, though {which} in training mode"
