"""A Keras model with calls at other sizes, built from a layer or a whole model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.export_cases.case import Built, Case

CASES: list[KerasCase] = []

BATCHES, SIZES = (2, 3, 1), (9, 6, 12)
"""Sizes of axes that are open, in the sample and in the other calls."""


@dataclass(frozen=True)
class Given:
    """An input.

    Attributes:
        shape: Without the batch; ``None`` is open.
        dtype: As Keras calls it.
        most: Integers are below it.
        padded: Whether every row ends in zeros.
        positive: Whether numbers are above zero.
        words: What text is made of.
        open: The size of open axes in each call.
    """

    shape: tuple[int | None, ...]
    dtype: str = "float32"
    most: int = 8
    padded: bool = False
    positive: bool = False
    words: tuple[str, ...] = ()
    open: tuple[int, ...] = SIZES

    def array(self, at: int, seed: int) -> np.ndarray:
        """What is given in call ``at``."""
        random = np.random.default_rng([at, seed])
        shape = (BATCHES[at], *(self.open[at] if size is None else size for size in self.shape))
        if self.words:
            return random.choice(np.array(self.words, object), shape)
        if self.dtype == "bool":
            return random.random(shape) < 0.6
        if "int" in self.dtype:
            found = random.integers(1 if self.padded else 0, self.most, shape).astype(self.dtype)
        else:
            found = random.standard_normal(shape).astype("float32").astype(self.dtype)
            found = np.abs(found) + np.asarray(0.1, self.dtype) if self.positive else found
        if self.padded:
            for row in range(shape[0]):
                found[row, max(1, shape[1] - 1 - 2 * row) :] = 0
        return found


@dataclass(frozen=True)
class KerasCase(Case):
    """One export: ``convolutions/Conv2D same``, the file, the class, the configuration.

    Attributes:
        inputs: What the model takes.
        sample: Whether it is exported with a sample, or without.
    """

    inputs: tuple[Given, ...] = ()
    sample: bool = True

    @property
    def subject(self) -> str:
        """The class that it is about."""
        return self.name.partition("/")[2].partition(" ")[0]

    def build(self) -> Built:
        """The same model, with the same weights, and calls at every time."""
        import keras

        keras.utils.set_random_seed(20)
        model = self.make()
        stir(model, deep=self.corpus == "applications")
        calls = ([each.array(at, place) for place, each in enumerate(self.inputs)] for at in range(3))
        return Built(model, tuple(map(tuple, calls)))


def stir(model: Any, *, deep: bool = False) -> None:
    """Give statistics, offsets and scales values that matter: as they are made, they are zeros and ones.

    Args:
        model: What they are variables of.
        deep: Whether scales shrink. If they grow, so does everything from block to block: EfficientNetV2B1 itself then
            computes results that are a quarter of their size away from those in double precision.
    """
    random = np.random.default_rng(7)
    for variable in model.variables:
        if variable.dtype.startswith("float") and len(variable.shape) and "seed" not in variable.path:
            value = np.asarray(variable.numpy() if hasattr(variable, "numpy") else variable)
            if np.ptp(value.astype("float64")) == 0:
                change = random.uniform(0.05, 0.5, value.shape).astype(value.dtype)
                variable.assign(value - change if deep and "gamma" in variable.path else value + change)


def layer(
    family: str, title: str, make: Callable[[], Any], *inputs: Given | tuple[int | None, ...], **call: Any
) -> None:
    """A layer in a functional model.

    Args:
        family: The file.
        title: The class, and what is unusual.
        make: The layer.
        *inputs: What it is called on, as a list if there are several.
        **call: Further arguments of the call.
    """
    given = tuple(each if isinstance(each, Given) else Given(each) for each in inputs)

    def build() -> Any:
        import keras

        tensors = [keras.Input(each.shape, dtype=each.dtype) for each in given]
        results = make()(tensors[0] if len(tensors) == 1 else tensors, **call)
        return keras.Model(tensors[0] if len(tensors) == 1 else tensors, results)

    CASES.append(KerasCase(f"{family}/{title}", "keras", build, inputs=given))


def model(family: str, title: str, *inputs: Given | tuple[int | None, ...], corpus: str = "keras") -> Any:
    """A builder of a whole model."""
    given = tuple(each if isinstance(each, Given) else Given(each) for each in inputs)

    def register(make: Callable[[], Any]) -> Callable[[], Any]:
        CASES.append(KerasCase(f"{family}/{title}", corpus, make, inputs=given, sample=corpus == "keras"))
        return make

    return register


def indices(*shape: int | None, most: int = 8, padded: bool = False) -> Given:
    """Numbers of members of a table."""
    return Given(shape, "int32", most, padded)


def sequences(*shape: int | None, padded: bool = True) -> Given:
    """Steps, the last ones of which are zeros."""
    return Given(shape, padded=padded)
