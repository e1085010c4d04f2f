"""A function of JAX with its sample, as the pipeline sees it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import jax
import numpy as np
import onnx_ir

from entrepot.exporters.arrays import Array
from entrepot.exporters.axes.fewer import widest
from entrepot.exporters.axes.groups import Group
from entrepot.exporters.axes.probe import Prober
from entrepot.exporters.calls import call
from entrepot.exporters.exporter import Captured, Source
from entrepot.exporters.jax.arrays import JAX, JaxArrays
from entrepot.exporters.jax.capture import capture
from entrepot.exporters.jax.followed.copies import Copies
from entrepot.exporters.jax.keys import is_key
from entrepot.exporters.jax.models import Model
from entrepot.exporters.jax.running import Run, model_errors, refusal
from entrepot.exporters.options import Options
from entrepot.exporters.sample import Sample
from entrepot.exporters.structure import Flat, flatten, flatten_call, unflatten
from entrepot.ir.errors import InputError


class JaxSource(Source):
    """A function or a module, called with arrays."""

    framework = f"jax {jax.__version__}"
    arrays = JAX
    counts_turns = False  # it is compiled

    def __init__(self, model: Model, sample: Any) -> None:
        self.model, self.name, self.origin, self.noun = model, model.name, model.origin, model.noun
        noting = _Noting()
        self.call = flatten_call(Sample.of(sample, model.function), model.function, noting)
        self._keys = noting.keys
        self.parameters = sorted(set(model.weights.values()))
        self._runs: dict[Any, Run] = {}
        _check(self.call)

    def flat(self, leaves: Sequence[Any]) -> Flat:
        """Call the model with arrays, or what stands for them; the result flat."""
        return self._flat(self.model.function, leaves)

    def followed(self, leaves: Sequence[Any], copies: Copies | None = None) -> Flat:
        """The same by what is traced to be translated, or by copies of it."""
        plain = self.model.followed or self.model.function
        return self._flat(plain if copies is None else self.model.by_copies(copies), leaves)

    def _flat(self, function: Callable[..., Any], leaves: Sequence[Any]) -> Flat:
        whole = [
            jax.random.wrap_key_data(leaf, impl=self._keys[at]) if at in self._keys else leaf
            for at, leaf in enumerate(leaves)
        ]
        args, kwargs = unflatten(self.call.tree, whole)
        return flatten(call(function, args, kwargs, model_errors()), numbers=self.numbers, arrays=JAX)

    def __call__(self, arrays: Sequence[Array], /) -> Flat:
        """Trace the model for these sizes; it is compiled and run when a result is read."""
        key = (tuple((each.shape, str(each.dtype)) for each in arrays), self.numbers)
        if key not in self._runs:
            try:
                self._runs[key] = Run(self.flat, arrays)
            except model_errors() as error:
                raise refusal(error) from error
        return self._runs[key].promised(arrays)

    def computes_in(self) -> Iterable[np.dtype[Any]]:
        """The types of everything that is computed on the sample."""
        run = next(iter(self._runs.values()), None)
        return () if run is None else run.computes_in()

    def takes_shapes(self, arrays: Sequence[Array], shapes: Sequence[Sequence[int]]) -> bool:
        """Tried without values."""
        specs = [jax.ShapeDtypeStruct(tuple(shape), each.dtype) for shape, each in zip(shapes, arrays, strict=True)]
        try:
            Run(self.flat, specs)
        except model_errors():
            return False
        return True

    def check(self, result: Flat) -> None:
        """Refuse results for which ONNX has no type."""
        super().check(result)
        for name, array in zip(result.names, result.tensors, strict=True):
            if array.dtype.kind == "c":
                raise InputError(
                    f"the {self.noun} returns {array.dtype}, which ONNX graphs cannot return",
                    value=name or None,
                    hint="return its real and imaginary part: y.real, y.imag",
                )

    def own_weights(self, graph: onnx_ir.Model, *, share: bool) -> None:
        """Nothing to be done: JAX's arrays never change."""
        return

    def weight_name(self, array: Any) -> str:
        """What a captured array is called; empty for one that is no weight."""
        return self.model.weights.get(id(array), "")

    def capture(self, prober: Prober, groups: list[Group], options: Options) -> Captured:
        """Trace the model with symbols for sizes; translate."""
        options.tell(f"tracing the {self.noun}, and translating to ONNX")
        return widest(lambda kept: capture(self, prober, kept, options), groups, prober.base)


class _Noting(JaxArrays):
    """The same arrays; notes which of them hold keys."""

    def __init__(self) -> None:
        self.keys: dict[int, Any] = {}
        self._count = 0

    def leaf(self, value: Any, name: str) -> Array | None:
        """See ``JaxArrays``."""
        found = super().leaf(value, name)
        if found is not None:
            if is_key(value):
                self.keys[self._count] = jax.random.key_impl(value)
            self._count += 1
        return found


def _check(call: Flat) -> None:
    if not call.tensors:
        raise InputError(
            "the sample contains no array",
            hint="give the arrays that it is called with; a number is a constant of the graph: jnp.asarray(1.0)",
        )
    for name, array in zip(call.names, call.tensors, strict=True):
        if array.dtype.kind == "c":
            raise InputError(
                f"its dtype is {array.dtype}, which ONNX graphs cannot take as an input",
                value=name,
                hint="take its real and imaginary part, and jax.lax.complex(re, im) inside",
            )
