"""A jaxpr as nodes of a graph: equation by equation, each by its rule."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from entrepot.exporters.building import Builder, typed
from entrepot.exporters.jax.custom import registered
from entrepot.exporters.jax.dims import Sizes, stated
from entrepot.exporters.jax.keys import is_key, packed_key
from entrepot.exporters.jax.step import Step
from entrepot.exporters.jax.table import Operand, Pair, complex_rules, rules
from entrepot.exporters.jax.upstream import scope_of
from entrepot.ir.errors import UnsupportedOpError

Name = Callable[[Any], str]


class Lowering:
    """One graph that is being written: the outermost, or a body.

    Args:
        build: Where nodes go.
        symbols: Values of sizes that vary.
        name: What a captured array is called; empty for one that is no weight.
    """

    def __init__(self, build: Builder, symbols: Mapping[str, ir.Value], name: Name) -> None:
        self.build, self._symbols, self._name = build, symbols, name
        self.sizes = Sizes(build, symbols)

    def body(self, name: str = "body") -> Lowering:
        """The same for a body, which may use every value of this graph."""
        return Lowering(self.build.body(name), self._symbols, self._name)

    def inline(self, closed: Any, operands: Sequence[Operand]) -> list[Operand]:
        """The results of a closed jaxpr."""
        return self.run(closed.jaxpr, [self.captured(each) for each in closed.consts], operands)

    def run(self, jaxpr: Any, consts: Sequence[Operand], operands: Sequence[Operand]) -> list[Operand]:
        """The results of a jaxpr."""
        values: dict[Any, Operand] = dict(zip(jaxpr.constvars, consts, strict=True))
        values |= dict(zip(jaxpr.invars, operands, strict=True))
        for eqn in _needed(jaxpr):
            given = [self._read(values, each) for each in eqn.invars]
            with self._module(self._scope(eqn, given)):
                results = self._results(eqn, given)
            values |= {out: self._stated(value, out.aval) for out, value in zip(eqn.outvars, results, strict=True)}
        return [self._read(values, each) for each in jaxpr.outvars]

    def captured(self, array: Any) -> Operand:
        """An array that the program holds: a weight, or a constant."""
        if is_key(array):
            return self.build.constant(packed_key(array))
        name = self._name(array)
        whole = np.asarray(array)
        if whole.dtype.kind == "c":
            return Pair(*(self._array(f"{name}.{part}" if name else "", each) for part, each in _parts(whole)))
        return self._array(name, array)

    def _array(self, name: str, array: Any) -> ir.Value:
        return self.build.weight(name, array) if name else self.build.constant(np.asarray(array))

    def _read(self, values: Mapping[Any, Operand], variable: Any) -> Operand:
        if not hasattr(variable, "val"):
            return values[variable]
        return self.captured(np.asarray(variable.val, variable.aval.dtype))

    def _module(self, path: str) -> contextlib.AbstractContextManager[None]:
        return self.build.module(path) if path else contextlib.nullcontext()

    def _results(self, eqn: Any, given: Sequence[Operand]) -> Sequence[Operand]:
        name, step = eqn.primitive.name, Step(self, eqn)
        custom = registered(name)
        complex_ones = any(isinstance(each, Pair) for each in given) or any(_is_complex(each) for each in step.outs)
        found = custom or (complex_rules() if complex_ones else rules()).get(name)
        if found is None:
            what = " on complex numbers" if complex_ones and name in rules() else ""
            raise UnsupportedOpError(
                f"no rule for the JAX primitive '{name}'{what}{step.place}",
                hint=f"teach it: ep.register_translation('jax::{name}', function, into='onnx')",
            )
        result = found(step, *given)
        return result if isinstance(result, list) else [result]

    def _stated(self, value: Operand, aval: Any) -> Operand:
        """The value, with what JAX says of its type and shape."""
        if isinstance(value, Pair):
            real = np.empty(0, aval.dtype).real.dtype
            return Pair(*(typed(part, real, stated(aval.shape)) for part in value))
        if is_key(aval):
            return typed(value, np.uint64, stated(aval.shape))
        return typed(value, aval.dtype, stated(aval.shape)) if hasattr(aval, "dtype") else value

    def _scope(self, eqn: Any, given: Sequence[Operand]) -> str:
        """Where an equation is from: what JAX notes, or else the place of a weight that it takes."""
        weights = (each.name or "" for each in given if isinstance(each, ir.Value) and each.const_value is not None)
        return scope_of(eqn) or next((name.rpartition("/")[0] for name in weights if "/" in name), "")


def _is_complex(aval: Any) -> bool:
    return not is_key(aval) and hasattr(aval, "dtype") and np.dtype(aval.dtype).kind == "c"


def _parts(array: np.ndarray) -> list[tuple[str, np.ndarray]]:
    return [("real", np.asarray(array.real, order="C")), ("imag", np.asarray(array.imag, order="C"))]


def is_random(jaxpr: Any) -> bool:
    """Whether results depend on bits that a generator draws."""
    return any(
        eqn.primitive.name in _RANDOM or any(is_random(getattr(each, "jaxpr", each)) for each in _programs(eqn))
        for eqn in _needed(jaxpr)
    )


_RANDOM = frozenset({"random_bits", "threefry2x32", "random_gamma", "rng_bit_generator"})


def _programs(eqn: Any) -> list[Any]:
    """The programs in the parameters of an equation."""
    held = [each for value in eqn.params.values() for each in (value if isinstance(value, tuple | list) else [value])]
    return [each for each in held if hasattr(each, "eqns")]


def _needed(jaxpr: Any) -> list[Any]:
    """The equations that results depend on; what only prints or checks is left out."""
    wanted = {each for each in jaxpr.outvars if not hasattr(each, "val")}
    kept = []
    for eqn in reversed(jaxpr.eqns):
        if any(out in wanted for out in eqn.outvars):
            kept.append(eqn)
            wanted |= {each for each in eqn.invars if not hasattr(each, "val")}
    return kept[::-1]
