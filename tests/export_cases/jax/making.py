"""Cases of JAX: a function or a module, and arguments whose sizes are letters, so that it is called at several."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax.export
import jax.numpy as jnp
import numpy as np
from flax import nnx

from tests.export_cases.case import Built, Case

SIZES = ({"b": 3, "t": 5}, {"b": 4, "t": 7}, {"b": 1, "t": 6})
"""What letters stand for: in the sample, and in the other calls."""

FOUND: list[JaxCase] = []
"""Filled while the files of the corpus are imported."""


@dataclass(frozen=True)
class Arg:
    """An array of random numbers.

    Attributes:
        dims: Sizes, numbers or letters.
        dtype: Its type.
        low: The least element.
        high: What no element reaches.
        whole: Whether elements are whole numbers.
    """

    dims: tuple[int | str, ...]
    dtype: str = "float32"
    low: float = -2.0
    high: float = 2.0

    def make(self, sizes: dict[str, int], seed: int) -> np.ndarray:
        """The array at certain sizes."""
        shape = [sizes[dim] if isinstance(dim, str) else dim for dim in self.dims]
        rng = np.random.default_rng(seed)
        if self.dtype == "bool":
            return rng.integers(0, 2, shape).astype(bool)
        if self.dtype.startswith(("int", "uint")):
            return rng.integers(int(self.low), int(self.high), shape).astype(self.dtype)
        return rng.uniform(self.low, self.high, shape).astype(self.dtype)


def f32(*dims: int | str, low: float = -2.0, high: float = 2.0) -> Arg:
    """Floating-point numbers."""
    return Arg(dims, low=low, high=high)


def i32(*dims: int | str, low: int = 0, high: int = 5, dtype: str = "int32") -> Arg:
    """Whole numbers."""
    return Arg(dims, dtype, low, high)


def flag(*dims: int | str) -> Arg:
    """Truth values."""
    return Arg(dims, "bool")


@dataclass(frozen=True)
class JaxCase(Case):
    """A case that is built without torch."""

    def build(self) -> Built:
        """The same model and calls at every time."""
        return self.make()


def add(family: str, name: str, make: Callable[[], Any], *arguments: Arg) -> None:
    """Register a case.

    Args:
        family: The file.
        name: What it is called in it.
        make: Makes what is exported.
        arguments: What it is called with.
    """

    def built() -> Built:
        letters = any(isinstance(dim, str) for each in arguments for dim in each.dims)
        calls = tuple(
            tuple(
                jnp.asarray(each.make(sizes, zlib.crc32(f"{name}{at}{call}".encode())))
                for at, each in enumerate(arguments)
            )
            for call, sizes in enumerate(SIZES if letters else SIZES[:2])
        )
        return Built(make(), calls)

    FOUND.append(JaxCase(f"{family}/{name}", "jax", built))


def callee(module: Any) -> Any:
    """What a user calls."""
    if isinstance(module, tuple):
        return lambda *args: module[0].apply(module[1], *args)
    if isinstance(module, jax.export.Exported):
        return module.call
    if isinstance(module, nnx.Module):  # whose generators jit does not let a call write to
        graph, state = nnx.split(module)
        return lambda *args: nnx.merge(graph, state, copy=True)(*args)
    return module


def functions(family: str, table: dict[str, tuple[Any, ...]]) -> None:
    """Register functions, each with its arguments."""
    for name, (function, *arguments) in table.items():
        add(family, name, lambda function=function: function, *arguments)
