"""What ``jax.export`` makes of the cases of JAX, with sizes that vary where it can follow them."""

from __future__ import annotations

import functools
import itertools
from typing import Any

import jax
import jax.export
import numpy as np

from tests.export_cases.case import Built
from tests.export_cases.jax.catalogue import catalogue as of_jax
from tests.export_cases.jax.making import JaxCase, callee


def catalogue() -> list[JaxCase]:
    """A case for each of JAX, in the same order at every time."""
    return [JaxCase(each.name, "exported", functools.partial(_built, each)) for each in of_jax()]


def _built(case: JaxCase) -> Built:
    module, calls = case.build()
    function = callee(module)
    try:
        return Built(_exported(function, _open_specs(calls)), calls)
    except Exception:  # noqa: BLE001 - JAX does not follow every function with sizes that vary
        return Built(_exported(function, _specs(calls[0])), calls[:1])


def _exported(function: Any, specs: Any) -> jax.export.Exported:
    def called(*args: Any) -> Any:
        return function(*args)

    made = jax.export.export(jax.jit(called))(*specs)
    return jax.export.deserialize(made.serialize())


def _specs(call: Any) -> Any:
    return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(np.shape(leaf), leaf.dtype), call)


def _open_specs(calls: Any) -> Any:
    """What every call fits, with a letter for sizes that differ from call to call."""
    letters, scope = map("size_{}".format, itertools.count()), jax.export.SymbolicScope()
    symbols: dict[Any, str] = {}

    def spec(*leaves: Any) -> jax.ShapeDtypeStruct:
        texts = []
        for sizes in zip(*map(np.shape, leaves), strict=True):
            differ = len(set(sizes)) > 1
            texts.append((symbols.get(sizes) or symbols.setdefault(sizes, next(letters))) if differ else str(sizes[0]))
        shape = jax.export.symbolic_shape(", ".join(texts) + ",", scope=scope) if texts else ()
        return jax.ShapeDtypeStruct(shape, leaves[0].dtype)

    return jax.tree.map(spec, *calls)
