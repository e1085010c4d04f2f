"""A fitted estimator with the data that it is called with."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from entrepot.exporters.axes.groups import Axis, Group
from entrepot.exporters.axes.probe import Prober
from entrepot.exporters.building import Builder, typed
from entrepot.exporters.calls import call, user_line
from entrepot.exporters.exporter import Captured, Refusal, Source
from entrepot.exporters.notes import CAPTURED, Fixed
from entrepot.exporters.options import Options
from entrepot.exporters.sklearn.array import Array, lifted
from entrepot.exporters.sklearn.columns import Columns, matrix
from entrepot.exporters.sklearn.loops import Scope
from entrepot.exporters.sklearn.samples import Table
from entrepot.exporters.sklearn.table import results
from entrepot.exporters.sklearn.upstream import framework_of, methods_of, names_of, raised
from entrepot.exporters.structure import Flat, flatten
from entrepot.ir.computed import rounded_types
from entrepot.ir.errors import InputError


class EstimatorSource(Source):
    """An estimator, a pipeline or a booster.

    Args:
        model: It.
        sample: Some rows of its data.
        only: The one method that is exported, if not all of them.

    Raises:
        InputError: It is not fitted, has nothing that could be exported, or does not take the sample.
    """

    noun = "estimator"

    def __init__(self, model: Any, sample: Any, only: str = "") -> None:
        self.model = model
        self.table = Table.of(sample, names_of(model))
        self.call, self.name = self.table.call, type(model).__name__
        self.origin = f"{type(model).__module__}:{type(model).__qualname__}"
        self.framework = framework_of(model)
        self._methods = {name: each for name, each in methods_of(model, only).items() if only or self._has(each[1])}
        self._refusals = raised()
        self._rounded: set[ir.DataType] = set()

    def _has(self, method: Any) -> bool:
        """Whether a method is more than a name: some depend on how the estimator was fitted, and say so when called."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                call(method, (self.table.rebuild(self.call.tensors),), {}, raised())
        except NotImplementedError:
            return False
        except raised():  # of which the first call will say more
            return True
        return True

    def __call__(self, arrays: Sequence[Any], /) -> Flat:
        """Call all of its methods, each output under its name."""
        self._count_columns(arrays)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of names of columns, of versions: they were there when it was fitted
                x = self.table.rebuild(arrays)
                found = {
                    name: dense(call(method, (x,), {}, self._refusals), len(arrays[0]))
                    for name, (_, method) in self._methods.items()
                }
        except self._refusals as error:
            raise Refusal(error, user_line(error)) from error
        return flatten(found)

    def _count_columns(self, arrays: Sequence[Any]) -> None:
        """Refuse another number of columns before a library does so on the console, as LightGBM would."""
        for array, sample in zip(arrays, self.call.tensors, strict=True):
            if array.shape[1:] != sample.shape[1:]:
                raise Refusal(ValueError(f"it has {array.shape[1]} columns instead of {sample.shape[1]}"))

    def capture(self, prober: Prober, groups: list[Group], options: Options) -> Captured:
        """The formulas of its methods as a graph, for any number of rows."""
        options.tell("writing the formulas of the estimator")
        rows = [group for group in groups if all(axis == 0 for _, axis in group.axes)]
        symbols = {axis: group.symbol for group in rows for axis in group.axes}
        build: Any = Scope(Builder(self.name))
        found = self.formulas(self.inputs(build, prober.base, symbols))
        rows_called = next(iter(symbols.values()), None)
        outputs = [
            typed(part.value, part.dtype, [rows_called if dim is None else dim for dim in part.shape])
            for name, (method, _) in self._methods.items()
            for part in _parts(build, found, method, name, prober.result)
        ]
        lost = {axis: Fixed(CAPTURED, "formulas are for any number of rows only") for axis in _others(groups, rows)}
        written = build.model(outputs)
        self._rounded = rounded_types(written)
        return Captured(written, rows, lost, weights=())

    def formulas(self, x: Any) -> Mapping[str, Any]:
        """What its methods return, written into the graph of ``x``."""
        return results(self.model, x)

    def behind_text(self, options: Options) -> Source:
        """See ``Source``."""
        from entrepot.exporters.sklearn.behind_text import behind_text

        return behind_text(self, options)

    def precision(self) -> np.dtype[Any] | None:
        """See ``Source``; boosted trees ask what they start from about rows in single precision, and add to doubles."""
        single = ir.DataType.FLOAT
        return single.numpy() if single in self._rounded else super().precision()

    def inputs(self, build: Builder, base: Sequence[Any], symbols: Mapping[Axis, str]) -> Any:
        """What the formulas are of: inputs of a graph, shaped as ``base``, arranged as the model takes them."""
        arrays = []
        for at, (name, array) in enumerate(zip(self.call.names, base, strict=True)):
            dims = [symbols.get((at, axis), size) for axis, size in enumerate(array.shape)]
            value = build.input(name, array.dtype, dims)
            made = Array(build, value, array.dtype, [dim if isinstance(dim, int) else None for dim in dims])
            typed(value, array.dtype, dims)
            arrays.append(made)
        return arrays[0] if self.table.names is None else Columns(self.table.names, arrays, self.table.categorical)

    def own_weights(self, graph: Any, *, share: bool) -> None:
        """Nothing is shared: constants are written when the formulas are."""


def _others(groups: Sequence[Group], rows: Sequence[Group]) -> set[Axis]:
    return {axis for group in groups if group not in rows for axis in group.axes}


def dense(result: Any, rows: int) -> Any:
    """A result as arrays."""
    if hasattr(result, "toarray"):
        return result.toarray()
    if hasattr(result, "to_numpy"):
        return result.to_numpy()
    if isinstance(result, list | tuple):
        return [dense(item, rows) for item in result]
    array = np.asarray(result)
    if array.ndim == 1 and rows == 1 != len(array):
        return array[None]  # SparsePCA (scikit-learn 1.9) drops the axis of rows where there is one
    return array.astype(object) if array.dtype.kind in "UT" else array


def _parts(build: Builder, found: Mapping[str, Any], method: str, name: str, expected: Flat) -> list[Array]:
    """The results of one method, of the types that the estimator gives."""
    if method not in found:
        raise InputError(
            f"no converter for {method}", hint="export another method by itself: ep.export(model.predict, X)"
        )
    parts = found[method] if isinstance(found[method], list | tuple) else [found[method]]
    wanted = [array for path, array in zip(expected.names, expected.tensors, strict=True) if _below(path, name)]
    return [
        lifted(build, matrix(part)).astype(array.dtype).op("Identity")
        for part, array in zip(parts, wanted, strict=True)
    ]


def _below(path: str, name: str) -> bool:
    return path == name or path.startswith(f"{name}.")
