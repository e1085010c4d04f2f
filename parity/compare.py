"""Whether two sets of outputs agree, by one stated rule, with every figure that helps to judge that."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from entrepot.ir.errors import InputError
from entrepot.parity.leaves import leaves, named
from entrepot.parity.metrics import Metrics, holds, measure
from entrepot.parity.scale import typical_magnitude
from entrepot.parity.tolerance import Tolerance, ToleranceLike, classify, default_tolerance, dtype_name

if TYPE_CHECKING:
    import rich.console

__all__ = ["Comparison", "OutputComparison", "Tolerance", "compare", "leaves", "scales_of"]

NOISE = 32
"""The largest of many errors over their median (about 15 for 10,000 elements), twice."""


@dataclass(frozen=True)
class OutputComparison:
    """The verdict about one tensor; true when it agrees.

    Attributes:
        name: Its name; the elements of a sequence are ``name[0]``, ``name[1]``, …
        problem: Empty when it agrees, else what is wrong, as a short sentence.
        dtype: What the dtype should be.
        shape: What the shape should be; ``None`` for an output that is not a tensor.
        tolerance: The rule applied, ``atol`` made absolute; ``None`` when the two could not be compared.
        metrics: Every figure; ``None`` when the two could not be compared.
        noise: How far the expected values move when the inputs move by one rounding; 0 if that was not asked for.
    """

    name: str
    problem: str
    dtype: str | None = None
    shape: tuple[int, ...] | None = None
    tolerance: Tolerance | None = None
    metrics: Metrics | None = None
    noise: float = 0.0

    @property
    def ok(self) -> bool:
        """Whether the two agree."""
        return not self.problem

    @property
    def excess(self) -> float:
        """The largest error as a multiple of what is allowed: infinite when the two could not be compared."""
        if self.metrics is not None:
            return self.metrics.excess
        return 0.0 if self.ok else float("inf")

    @property
    def hollow(self) -> bool:
        """Whether it agrees without any finite element, which proves little."""
        return self.ok and self.metrics is not None and self.metrics.hollow

    def __bool__(self) -> bool:
        return self.ok


@dataclass(frozen=True, repr=False)
class Comparison:
    """The verdict about all outputs, in the order of the expected ones; true when all agree, and prints as a table."""

    outputs: tuple[OutputComparison, ...]

    @property
    def ok(self) -> bool:
        """Whether there are outputs, and every one agrees."""
        return bool(self.outputs) and all(output.ok for output in self.outputs)

    @property
    def worst(self) -> OutputComparison | None:
        """The output that is furthest off relative to what is allowed; ``None`` when there are no outputs."""
        return max(self.outputs, key=lambda output: (not output.ok, rank(output.excess)), default=None)

    @property
    def problems(self) -> tuple[str, ...]:
        """One sentence for each output that does not agree, or that there are none."""
        if not self.outputs:
            return ("nothing was compared: there are no outputs",)
        return tuple(f"output '{output.name}': {output.problem}" for output in self.outputs if not output.ok)

    @property
    def hollow(self) -> tuple[str, ...]:
        """Outputs that agree without a finite element; that NaN agrees with NaN proves little."""
        return tuple(output.name for output in self.outputs if output.hollow)

    def __bool__(self) -> bool:
        return self.ok

    def __repr__(self) -> str:
        from entrepot.parity.report.outputs import verdict

        return f"<Comparison: {verdict(self)}>"

    def __str__(self) -> str:
        from entrepot.parity.report.outputs import table

        return table(self)

    def __rich__(self) -> rich.console.Group:
        from entrepot.parity.report.outputs import renderable

        return renderable(self)


def rank(excess: float) -> float:
    """An excess to sort by: what was never measured (NaN) comes before everything that was."""
    return -1.0 if math.isnan(excess) else excess


def compare(
    expected: Any,
    actual: Any,
    tolerance: ToleranceLike | None = None,
    *,
    scales: Mapping[str, float] | None = None,
    noise: Mapping[str, float] | None = None,
) -> Comparison:
    """Compare outputs by name: ``|actual - expected| <= atol + rtol * |expected|`` for every element.

    Shape and dtype must match; NaN agrees with NaN and an infinity with the same infinity; a missing or an extra
    output is a failure. An output may be an array of any library, ``None``, or a sequence or mapping of these.

    Args:
        expected: The outputs to trust by name, any shapes. Without names: one array, or a sequence. If only one side
            has names, the other may be an array for a single output, or a tuple or list with all of them in order.
        actual: The outputs to judge, in the same forms.
        tolerance: The rule for every floating-point output: a ``Tolerance``, a number for both its parts,
            ``(atol, rtol)`` or a dict of them; ``None`` means ``default_tolerance`` of each dtype.
        scales: Typical magnitude by output name, when more is known than ``expected`` shows (as ``scales_of`` does
            over several runs).
        noise: How far each expected output moves by rounding alone, as ``sensitivity`` measures it; 32 times that is
            allowed where it is more than the default tolerance.

    Returns:
        The verdict with all metrics, computed in float64 whatever the rule says.

    Raises:
        InputError: An output has a dtype that no model produces, or cannot be read as an array.
    """
    tolerance = Tolerance.of(tolerance)
    _check_factors("scales", scales)
    _check_factors("noise", noise)
    left, right = (dict(leaves(outputs)) for outputs in named(expected, actual))
    names = [*left, *(name for name in right if name not in left)]
    known = {name: ((scales or {}).get(name, 0.0), (noise or {}).get(name, 0.0)) for name in names}
    judged = [_judge(name, left, right, tolerance, known[name]) for name in names]
    # lengths and keys are worth a line only where they differ, or there is nothing else
    shown = tuple(item for item in judged if not (item.ok and isinstance(left[item.name], int | list)))
    return Comparison(shown or tuple(judged))


def agree(
    expected: Mapping[str, Any],
    actual: Mapping[str, Any],
    tolerance: Tolerance | None = None,
    *,
    scales: Mapping[str, float] | None = None,
) -> bool:
    """Whether ``compare`` finds that outputs agree: no more than that, for values that nobody looks at."""
    left, right = dict(leaves(expected)), dict(leaves(actual))
    known = scales or {}
    return (
        bool(left)
        and left.keys() == right.keys()
        and all(_agrees(name, left, right, tolerance, known.get(name, 0.0)) for name in left)
    )


def _agrees(
    name: str, expected: Mapping[str, Any], actual: Mapping[str, Any], tolerance: Tolerance | None, scale: float
) -> bool:
    left, right = expected[name], actual[name]
    if not (isinstance(left, np.ndarray) and isinstance(right, np.ndarray)):
        return _equal_structure(left, right)
    if left.shape != right.shape or dtype_name(left.dtype) != dtype_name(right.dtype):
        return False
    # what is equal agrees by any rule; most nodes move elements, or round once
    return np.array_equal(left, right) or holds(left, right, _rule(left, tolerance, scale, 0.0))


def _check_factors(what: str, given: Mapping[str, float] | None) -> None:
    numbers = isinstance(given, Mapping) and all(isinstance(each, int | float | np.number) for each in given.values())
    if not (given is None or numbers):
        raise InputError(f"{what} is a {type(given).__name__}, expected numbers by output name")


def scales_of(runs: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """The typical magnitude of each floating-point output over several runs of one source.

    One small result near zero says little about how exact it can be; the other runs say more. The columns of a map are
    parts of one result, as the probabilities of classes are.
    """
    scales: dict[str, float] = {}
    for outputs in runs:
        for output, value in outputs.items():
            sizes = dict(_magnitudes({output: value}))
            together = max(sizes.values(), default=0.0)
            for name, size in sizes.items():
                scales[name] = max(scales.get(name, 0.0), together if isinstance(value, Mapping) else size)
    return scales


def _magnitudes(outputs: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    for name, leaf in leaves(outputs):
        if isinstance(leaf, np.ndarray) and default_tolerance(leaf.dtype).scaled:
            yield name, typical_magnitude(leaf)


def _judge(
    name: str,
    expected: Mapping[str, Any],
    actual: Mapping[str, Any],
    tolerance: Tolerance | None,
    known: tuple[float, float],
) -> OutputComparison:
    if name not in actual:
        return OutputComparison(name, "missing")
    if name not in expected:
        return OutputComparison(name, "not expected")
    left, right = expected[name], actual[name]
    if not (isinstance(left, np.ndarray) and isinstance(right, np.ndarray)):
        return OutputComparison(name, "" if _equal_structure(left, right) else _instead(right, left))
    return _judge_arrays(name, left, right, tolerance, known)


def _equal_structure(left: Any, right: Any) -> bool:
    return not isinstance(left, np.ndarray) and not isinstance(right, np.ndarray) and left == right


def _instead(actual: Any, expected: Any) -> str:
    got, wanted = ("an array" if isinstance(item, np.ndarray) else str(item) for item in (actual, expected))
    return f"is {got}, expected {wanted}"


def _judge_arrays(
    name: str, expected: np.ndarray, actual: np.ndarray, tolerance: Tolerance | None, known: tuple[float, float]
) -> OutputComparison:
    dtypes = dtype_name(expected.dtype), dtype_name(actual.dtype)
    if dtypes[0] != dtypes[1]:
        return OutputComparison(name, f"is {dtypes[1]}, expected {dtypes[0]}", dtypes[0], expected.shape)
    if expected.shape != actual.shape:
        problem = f"has shape {actual.shape}, expected {expected.shape}"
        return OutputComparison(name, problem, dtypes[0], expected.shape)
    rule = _rule(expected, tolerance, *known)
    metrics = measure(expected, actual, rule)
    return OutputComparison(name, _problem(metrics), dtypes[0], expected.shape, rule, metrics, known[1])


def _rule(expected: np.ndarray, tolerance: Tolerance | None, scale: float, noise: float) -> Tolerance:
    rule = default_tolerance(expected.dtype) if tolerance is None else tolerance
    if classify(expected.dtype) in {"bool", "string"}:
        return Tolerance(0.0, 0.0)
    if classify(expected.dtype) == "integer":
        return Tolerance(0.0, 0.0, steps=max(rule.steps, round(NOISE * noise)))
    if not rule.scaled:
        return rule
    # a tensor of zeros has no scale of its own: treat it like ordinary activations
    rule = rule.at_scale(scale or typical_magnitude(expected) or 1.0)
    return replace(rule, atol=max(rule.atol, NOISE * noise))


def _problem(metrics: Metrics) -> str:
    if not metrics.mismatched or metrics.worst is None:
        return ""
    worst = metrics.worst
    return (
        f"{metrics.mismatched} of {metrics.size} elements differ by more than allowed; "
        f"worst at {worst.index}: {worst.actual!r}, expected {worst.expected!r}"
    )
