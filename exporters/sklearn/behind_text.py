"""An estimator from behind its steps on text: what those return are further inputs of it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import joblib  # type: ignore[import-untyped]
import numpy as np
from onnx_ir.passes import common

from entrepot.exporters.axes.groups import Axis, Group
from entrepot.exporters.axes.probe import Prober
from entrepot.exporters.building import Builder, typed
from entrepot.exporters.cutting import REFUSALS, Beginning, free_name, may_be_cut, refuse_rest
from entrepot.exporters.exporter import Captured
from entrepot.exporters.options import Options
from entrepot.exporters.sklearn.array import Array
from entrepot.exporters.sklearn.columns import Columns
from entrepot.exporters.sklearn.source import EstimatorSource, dense
from entrepot.exporters.sklearn.table import CUT_OFF, Results
from entrepot.exporters.sklearn.upstream import makes_frames
from entrepot.exporters.steady import check_rest
from entrepot.exporters.structure import flatten_named
from entrepot.ir.errors import ConversionError


@dataclass
class _Step:
    """A transformer that stays in Python.

    Attributes:
        model: It.
        path: The names of the steps that it is in, its own last.
        made: What it returned for the sample, as it is: dense, sparse, or a data frame.
        array: The same as an array; ``None`` where a graph has no type for it.
    """

    model: Any
    path: Sequence[str]
    made: Any = None
    array: np.ndarray[Any, Any] | None = None

    @property
    def word(self) -> str:
        return self.path[-1] if self.path else type(self.model).__name__.lower()

    def __str__(self) -> str:
        return f"{type(self.model).__name__} '{'/'.join(self.path) or self.word}'"

    def like(self, array: np.ndarray[Any, Any]) -> Any:
        """An array in the form in which it returns its results."""
        if hasattr(self.made, "toarray"):
            return type(self.made)(array)
        if hasattr(self.made, "columns"):
            return type(self.made)(array, columns=self.made.columns)
        return array


class _Refused(Exception):  # noqa: N818 - an answer, not a fault
    """A transformer has no formula for the text that it is given."""

    def __init__(self, model: Any, path: Sequence[str]) -> None:
        super().__init__()
        self.step = _Step(model, path)


class _Hidden:
    """What a step returns for which a graph has no type; another step has to take it."""

    def __init__(self, build: Any) -> None:
        self.build = build

    def __getattr__(self, name: str) -> NoReturn:
        raise ConversionError("a step on text returns what is neither numbers nor text, and a formula reads it")


class BehindText(EstimatorSource):
    """What a cut leaves of a source.

    Args:
        source: It.
        steps: All that stay in Python.
        named: Those of them whose results are inputs, by their names.
        kept: The inputs of the source that are left.
        beginnings: Those that the cut made.
    """

    def __init__(
        self,
        source: EstimatorSource,
        steps: Sequence[_Step],
        named: Mapping[str, _Step],
        kept: Sequence[str],
        beginnings: Sequence[Beginning] = (),
    ) -> None:
        self.__dict__.update(source.__dict__)
        self._whole, self._steps, self._named, self._beginnings = source.table, steps, named, beginnings
        self._kept = [name for name in source.call.names if name in kept]
        columns = dict(zip(source.call.names, source.call.tensors, strict=True))
        inputs = [(name, columns[name]) for name in self._kept]
        self.call = flatten_named([*inputs, *((name, step.array) for name, step in named.items())], {})
        self.table = replace(source.table, call=self.call, rebuild=self._rebuilt)
        self._given: dict[int, Any] = {}
        self._values: dict[int, Any] = {}

    def __call__(self, arrays: Sequence[Any], /) -> Any:
        """Call its methods; steps on text return what is given."""
        with _answering(self._named.values(), lambda step, transform, args: self._given[id(step.model)]):
            return super().__call__(arrays)

    def _rebuilt(self, arrays: Sequence[Any]) -> Any:
        if len({len(array) for array in arrays}) > 1:
            raise ValueError("the results of steps on text have a row for each of the data")
        given = dict(zip(self.call.names, arrays, strict=True))
        self._given = {id(step.model): step.like(given[name]) for name, step in self._named.items()}
        columns = zip(self._whole.call.names, self._whole.call.tensors, strict=True)
        count = len(arrays[0])
        return self._whole.rebuild(
            [
                given[name] if name in self._kept else np.resize(unread, (count, *unread.shape[1:]))
                for name, unread in columns
            ]
        )

    def capture(self, prober: Prober, groups: list[Group], options: Options) -> Captured:
        """See ``Source``; text that nothing reads any more is no input."""
        captured = super().capture(prober, groups, options)
        inputs = captured.graph.graph.inputs
        for value in [each for each in inputs if each.name not in self.call.names]:
            inputs.remove(value)
        return captured

    def inputs(self, build: Builder, base: Sequence[Any], symbols: Mapping[Axis, str]) -> Any:
        """See ``EstimatorSource``; besides, what the steps on text would return."""
        made = {
            name: _input(build, name, at, array, symbols)
            for at, (name, array) in enumerate(zip(self.call.names, base, strict=True))
        }
        columns = [
            made[name] if name in self._kept else _input(build, f"unread_{name}", -1, array, symbols)
            for name, array in zip(self._whole.call.names, self._whole.call.tensors, strict=True)
        ]
        self._values = {id(step.model): _Hidden(build) for step in self._steps}
        self._values |= {id(step.model): made[name] for name, step in self._named.items()}
        names = self._whole.names
        return columns[0] if names is None else Columns(names, columns, self._whole.categorical)

    def formulas(self, x: Any) -> Mapping[str, Any]:
        """See ``EstimatorSource``."""
        before = CUT_OFF.set(self._result)
        try:
            return super().formulas(x)
        finally:
            CUT_OFF.reset(before)

    def _result(self, model: Any, x: Any, write: Callable[[Any, Any], Results]) -> Results:
        if id(model) in self._values:
            return {"transform": self._values[id(model)]}
        path = x.build.path
        try:
            return write(model, x)
        except REFUSALS as error:
            if may_be_cut(error) or (isinstance(x, _Hidden) and hasattr(model, "transform")):
                raise _Refused(model, path) from error
            raise

    def behind_text(self, options: Options) -> EstimatorSource:
        """It is."""
        return self

    def notes(self) -> Sequence[str]:
        """What stays in Python."""
        return [*super().notes(), *map(str, self._beginnings)]


def _input(build: Any, name: str, at: int, array: np.ndarray[Any, Any], symbols: Mapping[Axis, str]) -> Array:
    dims = [symbols.get((at, axis), size) for axis, size in enumerate(array.shape)]
    value = build.input(name, array.dtype, dims)
    made = Array(build, value, array.dtype, [dim if isinstance(dim, int) else None for dim in dims])
    typed(value, array.dtype, dims)
    return made


def behind_text(source: EstimatorSource, options: Options) -> EstimatorSource:
    """The source, without those steps on text that have no formula, and what only they need.

    Raises:
        ConversionError: Nothing but text is left, or a step returns what can be no input.
    """
    result = source.settled()
    steps: list[_Step] = []
    while True:
        named = {f"step_{at}": step for at, step in enumerate(steps) if step.array is not None}
        trial = BehindText(source, steps, named, source.call.names)
        try:
            graph = trial.capture(Prober(trial, trial.call.tensors, result), [], options).graph
        except _Refused as refused:
            if refused.step.model is source.model:
                raise refuse_rest(source.noun) from refused
            steps.append(refused.step)
            _run(source, steps)
        else:
            break
    if not steps:
        return source
    common.RemoveUnusedNodesPass()(graph)
    if all(node.op_type == "Identity" for node in graph.graph):
        raise refuse_rest(source.noun)
    read = {value.name for value in graph.graph.inputs if value.uses()}
    kept = [name for name in source.call.names if name in read]
    inputs = {name: step for name, step in named.items() if name in read}
    made = BehindText(source, steps, *_called(inputs, steps, kept))
    check_rest(made, result)
    return made


def _called(
    inputs: Mapping[str, _Step], steps: Sequence[_Step], kept: Sequence[str]
) -> tuple[dict[str, _Step], Sequence[str], list[Beginning]]:
    """The inputs by the names that they get, those that there were, and what is to be said of them."""
    named = dict[str, _Step]()
    for step in inputs.values():
        named[free_name(step.word, {*kept, *named})] = step
    unread = [step for step in steps if all(step is not each for each in named.values())]
    found = [
        Beginning(name, f"the result of {step}", [str(each) for each in unread if each.path[:-1] == step.path[:-1]])
        for name, step in named.items()
    ]
    return named, kept, found


def _run(source: EstimatorSource, steps: Sequence[_Step]) -> None:
    """Note what steps return for the sample."""
    made: dict[int, list[Any]] = {id(step): [] for step in steps}

    def noting(step: _Step, transform: Callable[..., Any], args: Any) -> Any:
        made[id(step)].append(transform(*args))
        return made[id(step)][-1]

    with _answering(steps, noting):
        rows = len(source.call.tensors[0])
        source(source.call.tensors)
    for step in steps:
        if not made[id(step)]:
            raise ConversionError(f"{step} is not called for the sample, so that its result is not known")
        arrays = [_feedable(step, each, rows) for each in made[id(step)]]
        first = arrays[0]
        if any(first is not None and not np.array_equal(first, each) for each in arrays):
            raise ConversionError(f"{step} is called with several texts, and its results cannot be one input")
        step.made, step.array = made[id(step)][0], first


def _feedable(step: _Step, made: Any, rows: int) -> Any:
    """What a step returned as an array that can be an input, if it can."""
    if hasattr(made, "columns") and not makes_frames(step.model):
        return None
    array = made if isinstance(made, list) else dense(made, rows)
    if not isinstance(array, np.ndarray) or array.ndim > 2 or array.shape[:1] != (rows,):
        return None
    plain = array.dtype.kind in "fiub" or (array.dtype == object and all(isinstance(item, str) for item in array.flat))
    return array if plain else None


@contextlib.contextmanager
def _answering(steps: Any, answer: Callable[[_Step, Callable[..., Any], Any], Any]) -> Iterator[None]:
    """Inside, ``transform`` of steps returns what ``answer`` does for a step, its own ``transform``, the arguments."""
    own = {id(step): step.model.transform for step in steps}
    try:
        for step in steps:
            step.model.__dict__["transform"] = _asking(step, own[id(step)], answer)
        with joblib.parallel_config(backend="sequential"):  # in other processes, they would be other objects
            yield
    finally:
        for step in steps:
            step.model.__dict__.pop("transform", None)


def _asking(step: _Step, transform: Callable[..., Any], answer: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args, **kwargs: answer(step, transform, args)
