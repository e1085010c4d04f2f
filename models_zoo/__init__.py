"""Small real models by framework and task, for tests, docs and benchmarks; listing them imports no framework."""

from __future__ import annotations

from entrepot.models_zoo.registry import ZooModel, build, names

__all__ = ["ZooModel", "build", "names"]
