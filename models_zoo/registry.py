"""Which models there are, and how to build one; frameworks are imported by ``build`` only."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any, NamedTuple


class Entry(NamedTuple):
    """A line of a framework's catalogue: enough to list a model without building it."""

    name: str
    task: str
    family: str
    """Module beside the catalogue that holds a builder called ``name``."""
    description: str


class Built(NamedTuple):
    """What a builder returns."""

    module: Any
    samples: tuple[tuple[Any, ...] | dict[str, Any], ...]
    dynamic: frozenset[str]


@dataclass(frozen=True)
class ZooModel:
    """A model with weights, and inputs it can be called with.

    Attributes:
        name: Its name in the zoo.
        framework: ``"torch"``, ...
        task: What it is for: ``"image-classification"``, ``"token-classification"``, ...
        description: One sentence.
        module: The framework's own object, ready for inference.
        samples: Inputs, each a tuple of positional or a dict of keyword arguments: the first of batch 1, then larger.
        dynamic: Axes that a reader of the code expects to be free: ``"x.0"``, and ``"user.id.0"`` for a nested input.
    """

    name: str
    framework: str
    task: str
    description: str
    module: Any
    samples: tuple[tuple[Any, ...] | dict[str, Any], ...]
    dynamic: frozenset[str]

    @property
    def sample(self) -> tuple[Any, ...] | dict[str, Any]:
        """The first of ``samples``."""
        return self.samples[0]


FRAMEWORKS = ("torch", "jax", "sklearn", "keras", "tensorflow")


def names(framework: str = "torch", task: str | None = None) -> list[str]:
    """Names of the models of one framework, in the order of its catalogue.

    Args:
        framework: The framework they are written in.
        task: Only those of this task.
    """
    return [entry.name for entry in _catalogue(framework) if task in (None, entry.task)]


def build(name: str, framework: str = "torch", **parameters: Any) -> ZooModel:
    """Build a model: the same weights and samples at every call, and every global random state as it was.

    Args:
        name: One of ``names(framework)``.
        framework: The framework it is written in.
        **parameters: Passed to the builder: ``build("resnet50", size=224)``, ``build("bert", width=768, layers=12)``.

    Raises:
        KeyError: There is no such model.
    """
    entry = next((entry for entry in _catalogue(framework) if entry.name == name), None)
    if entry is None:
        raise KeyError(f"no {framework} model '{name}' in the zoo; known: {', '.join(names(framework))}")
    package = f"{__package__}.{framework}"
    builder = getattr(importlib.import_module(f"{package}.{entry.family}"), name)
    built: Built = importlib.import_module(f"{package}.make").make(builder, parameters)
    return ZooModel(name, framework, entry.task, entry.description, *built)


def _catalogue(framework: str) -> tuple[Entry, ...]:
    if framework not in FRAMEWORKS:
        raise KeyError(f"no zoo for framework '{framework}'; known: {', '.join(FRAMEWORKS)}")
    catalogue: tuple[Entry, ...] = importlib.import_module(f"{__package__}.{framework}.catalogue").CATALOGUE
    return catalogue
