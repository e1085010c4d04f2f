"""A function traced at some sizes; it is compiled, once, when somebody reads its results."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.extend
import numpy as np

from entrepot.exporters.arrays import Array
from entrepot.exporters.calls import MODEL_ERRORS, user_line
from entrepot.exporters.exporter import Refusal
from entrepot.exporters.jax.upstream import UnexpectedDimVar
from entrepot.exporters.tree import Flat

_ERRORS: tuple[type[Exception], ...] = (
    *MODEL_ERRORS,
    jax.errors.InconclusiveDimensionOperation,
    UnexpectedDimVar,  # of what is computed while a function is traced
)


def model_errors() -> tuple[type[Exception], ...]:
    """What a function of a user may raise; JAX's own errors are among them, and flax has a class of its own."""
    flax = sys.modules.get("flax.errors")
    return _ERRORS if flax is None else (*_ERRORS, flax.FlaxError)


_QUICKLY: Any = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}


class Run:
    """A function at certain sizes.

    Args:
        function: From flat arrays to a flat result.
        arrays: Arrays of the sizes, or what describes them.
    """

    def __init__(self, function: Callable[[Sequence[Any]], Flat], arrays: Sequence[Array]) -> None:
        self._flat: list[Flat] = []
        self._compiled: Any = None

        def traced(*leaves: Any) -> list[Any]:
            flat = function(leaves)
            self._flat.append(flat)
            return flat.tensors

        specs = [jax.ShapeDtypeStruct(each.shape, each.dtype) for each in arrays]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._traced = jax.jit(traced).trace(*specs)
            if len(self._traced.jaxpr.in_avals) > len(specs):
                raise jax.errors.UnexpectedTracerError("the function holds a tracer of an earlier trace")
            self._lowered = self._traced.lower()  # which refuses some sizes that tracing lets pass

    def promised(self, arrays: Sequence[Array]) -> Flat:
        """The result for arrays of these sizes, computed when it is read."""
        flat, later = self._flat[0], _Later(self, arrays)
        outs = self._traced.jaxpr.out_avals
        tensors = [Promised(later, at, tuple(each.shape), np.dtype(each.dtype)) for at, each in enumerate(outs)]
        return Flat(flat.tree, tensors, flat.names, flat.numbers)

    def computes_in(self) -> set[np.dtype[Any]]:
        """The types of all results, those within loops and branches included."""
        return set(_dtypes(self._traced.jaxpr.jaxpr))

    def __call__(self, arrays: Sequence[Array]) -> list[np.ndarray]:
        """The results."""
        if self._compiled is None:
            self._compiled = self._lowered.compile(_QUICKLY)
        return [np.asarray(each) for each in self._compiled(*arrays)]


def _dtypes(jaxpr: Any) -> Iterator[np.dtype[Any]]:
    for eqn in jaxpr.eqns:
        yield from (each.aval.dtype for each in eqn.outvars if isinstance(getattr(each.aval, "dtype", None), np.dtype))
        for given in jax.tree.leaves(list(eqn.params.values())):
            inner = getattr(given, "jaxpr", given)
            if isinstance(inner, jax.extend.core.Jaxpr):
                yield from _dtypes(inner)


class _Later:
    """The results for some arrays, computed once."""

    def __init__(self, run: Run, arrays: Sequence[Array]) -> None:
        self._run, self._arrays = run, list(arrays)
        self._found: list[np.ndarray] | None = None

    def __getitem__(self, at: int) -> np.ndarray:
        if self._found is None:
            self._found = self._run(self._arrays)
        return self._found[at]


class Promised:
    """One result that is not computed yet; ``np.asarray`` computes it."""

    def __init__(self, later: _Later, at: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self._later, self._at, self.shape, self.dtype = later, at, shape, dtype

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """The values."""
        return np.asarray(self._later[self._at], dtype)


def refusal(error: BaseException) -> Refusal:
    """A function's error as a refusal, with the user's line."""
    return Refusal(error, user_line(error))
