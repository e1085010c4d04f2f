"""What a model is compared with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np

from entrepot.ir.computed import computed_types
from entrepot.ir.contributed.table import coarsest
from entrepot.ir.errors import EntrepotError
from entrepot.ir.model import Model
from entrepot.parity.leaves import with_columns
from entrepot.parity.tolerance import least_exact
from entrepot.parity.unsteady import MOVE, most_moved, rounds_to_steps, shaken
from entrepot.parity.untouched import Untouched, opened
from entrepot.runtime.session import Session

Outputs: TypeAlias = Mapping[str, Any]
"""Output name to array (a list for a sequence, ``None`` for an empty optional)."""


class SourceRefusal(EntrepotError):  # noqa: N818 - it is an answer, not a fault
    """The source itself cannot take these inputs, so the model need not either."""


class Source(Protocol):
    """What a model is compared with: the framework it came from, or another model."""

    @property
    def name(self) -> str:
        """What a report calls it."""

    def run(self, feeds: dict[str, np.ndarray], /) -> Outputs:
        """Outputs by the model's output names.

        Raises:
            SourceRefusal: The source cannot take inputs of these sizes or values.
        """


@runtime_checkable
class ExactSource(Source, Protocol):
    """A source that can also compute in float64."""

    def exact(self, feeds: dict[str, np.ndarray], /) -> Outputs | None:
        """What the source computes in float64 from the same inputs; ``None`` if it cannot be run that way."""


@runtime_checkable
class FollowingSource(ExactSource, Protocol):
    """A source that can be told what to choose where elements differ by less than single precision tells apart."""

    def choosing(self, feeds: dict[str, np.ndarray], choices: Sequence[np.ndarray], /) -> Outputs | None:
        """What the source computes, choosing these places where they are as good as its own choice.

        Args:
            feeds: Its inputs.
            choices: The places of each choice, in the order in which a graph makes them.

        Returns:
            Its outputs; ``None`` if it cannot be told, or refuses.
        """

    def exact_choosing(self, feeds: dict[str, np.ndarray], choices: Sequence[np.ndarray], /) -> Outputs | None:
        """The same in float64."""


@runtime_checkable
class SteppedSource(Source, Protocol):
    """A source that may round to steps inside, as quantised networks do."""

    def steps(self, feeds: dict[str, np.ndarray], /) -> Mapping[str, float]:
        """How far each output may move because a number between two steps is rounded to the other; empty if none is."""


@runtime_checkable
class ChoosingSource(Source, Protocol):
    """A source that may choose any of equal elements, and can be told to choose the first, as ONNX does."""

    def first_of_equal(self, feeds: dict[str, np.ndarray], /) -> Outputs | None:
        """What the source computes when it does; ``None`` if it cannot be told."""


@runtime_checkable
class CoarseSource(Source, Protocol):
    """A source that may compute in a type less exact than that of its results, as under a policy of mixed precision."""

    @property
    def precision(self) -> np.dtype | None:
        """The least exact floating-point type that it computes in; ``None`` if that is no other than its results'."""


class ModelSource:
    """Another model as the source: for comparing two models, two opsets or two providers.

    Args:
        model: The model to trust.
        provider: Who runs it.
    """

    def __init__(self, model: Model, provider: str = "cpu") -> None:
        self.name = f"{model_name(model)} on {provider}"
        self._runner = opened(model, provider)
        self._model, self._provider = model, provider
        self._others: dict[float, list[Session | Untouched]] = {}

    def run(self, feeds: dict[str, np.ndarray]) -> Outputs:
        """Outputs by name.

        Raises:
            SourceRefusal: The model cannot be run on these feeds.
        """
        try:
            return with_columns(self._runner.run(feeds))
        except EntrepotError as error:
            raise SourceRefusal(str(error)) from error

    @property
    def precision(self) -> np.dtype | None:
        """The least exact type that it computes in, or that nodes allow onnxruntime to compute in, if it does."""
        allowed = coarsest(self._model.ir.graph.all_nodes()) if self._provider == "onnxruntime" else None
        computed = {each.numpy() for each in computed_types(self._model.ir) if each.is_floating_point()}
        return least_exact(computed if allowed is None else {*computed, allowed})

    def steps(self, feeds: dict[str, np.ndarray], move: float = MOVE) -> Mapping[str, float]:
        """How far each output moves where the model rounds to steps and its weights are a little off."""
        if move not in self._others:
            others = shaken(self._model, move) if rounds_to_steps(self._model) else ()
            self._others[move] = [opened(other, self._provider) for other in others]
        if not self._others[move]:
            return {}
        return most_moved(self.run(feeds), (with_columns(other.run(feeds)) for other in self._others[move]))


def model_name(model: Model) -> str:
    """What a report calls a model: its file, or else its graph."""
    return str(model.path) if model.path is not None else model.ir.graph.name or "model"
