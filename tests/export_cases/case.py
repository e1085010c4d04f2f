"""What an export is tried on: a module as its user has it, the sample it is exported with, and other calls of it."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

Call: TypeAlias = "tuple[Any, ...] | dict[str, Any]"
"""Positional or keyword arguments; the last member of a tuple may be neither: see ``entrepot.Sample``."""

CASES: list[Case] = []
"""Filled by ``case``, in the order in which the files of a corpus are imported."""


class Built(NamedTuple):
    """A case that has been built.

    Attributes:
        module: What is exported.
        calls: The sample, then calls with other sizes or values, which the module accepts as well.
    """

    module: Any
    calls: tuple[Call, ...]


@dataclass(frozen=True)
class Case:
    """One export.

    Attributes:
        name: ``recurrence/gru_loop``: the file, then the builder.
        corpus: ``"modules"`` or ``"architectures"``.
        make: Builds it under a fixed seed.
        dynamic: Axes that its user expects to vary, ``"x.0"``, where they are known.
    """

    name: str
    corpus: str
    make: Callable[[], Built]
    dynamic: frozenset[str] = frozenset()

    @property
    def family(self) -> str:
        """The cause that it was written for, or the kind of architecture."""
        return self.name.partition("/")[0]

    def build(self) -> Built:
        """The same module and calls at every time."""
        import torch

        with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.default_generator.manual_seed(20)
            return self.make()


def case(*dynamic: str) -> Callable[[Callable[[], tuple[Any, ...]]], Callable[[], tuple[Any, ...]]]:
    """Register a builder of ``(module, sample, other call, ...)``.

    Args:
        *dynamic: Axes that its user expects to vary, ``"x.0"``.
    """

    def register(builder: Callable[[], tuple[Any, ...]]) -> Callable[[], tuple[Any, ...]]:
        def make() -> Built:
            module, *calls = builder()
            return Built(module, tuple(calls))

        family = builder.__module__.rpartition(".")[2]
        CASES.append(Case(f"{family}/{builder.__name__}", "modules", make, frozenset(dynamic)))
        return builder

    return register
