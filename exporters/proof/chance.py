"""The proof for models that draw random numbers: two runs never agree, but their distributions have to.

Source and model are run many times on the same inputs. Results that the source repeats whatever the seed are compared
as always. Of the others, each element is compared by its ranks, and each run as a whole by a few figures that notice
what no single element shows, such as one number drawn for all of them. Each comparison is a difference of means in
units of its standard error, and has to stay below a bound that equal distributions reach once in millions of exports.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from entrepot.exporters.options import Judging
from entrepot.exporters.proof.judge import doubt_about_runs
from entrepot.ir.errors import EntrepotError, UnsupportedOpError
from entrepot.ir.model import Model
from entrepot.parity.compare import compare
from entrepot.parity.feeds import Feeds
from entrepot.parity.plan import Case, plan_cases
from entrepot.parity.report.facts import ModelFacts
from entrepot.parity.report.report import Report, Run
from entrepot.parity.sources import ModelSource, SourceRefusal, model_name
from entrepot.parity.verify import default_providers

_MOST, _LEAST = 200, 24  # runs per case and side
_SECONDS = 2.0  # wanted per case and side
_BOUND = 7.0  # standard errors
_ELEMENTS = 512  # looked at one by one
_ROUNDING = 16
"""Units in the last place of an element by which figures of a run mean nothing.

The mean of what is normalised is nothing but rounding, which two kernels may do a unit or two apart in every run. Noise
of sixteen units has a standard deviation of nine, the means of two hundred runs with it differ by one by chance, and so
the bound allows six units. Fewer runs allow more; what is random differs by thousands of units."""


class RandomSource(Protocol):
    """A source that draws random numbers."""

    name: str

    def draw(self, feeds: Feeds, seed: int, /) -> Mapping[str, Any]:
        """Outputs by name, with all generators seeded.

        Raises:
            SourceRefusal: It does not take these feeds.
        """


def prove_chance(source: RandomSource, model: Model, sample: Feeds, judging: Judging) -> Report:
    """Run ``source`` and ``model`` on the sample and at one other size of each axis, many times each."""
    names = tuple(default_providers(model) if judging.providers is None else judging.providers)
    runs = [run for case in _cases(model, sample) for run in _runs(source, model, case, names, judging)]
    agreeing = {run.provider for run in runs if run.ok}
    doubt = doubt_about_runs(model, agreeing)
    return Report(source.name, model_name(model), names, tuple(runs), ModelFacts.of(model), doubt=doubt)


def _cases(model: Model, sample: Feeds) -> list[Case]:
    """The sample, and every symbol at one more than its size there."""
    first: dict[str, Case] = {}
    for case in plan_cases(model, sample):
        if case.label != "other values":
            first.setdefault(case.symbol or case.label, case)
    return list(first.values())


def _runs(source: RandomSource, model: Model, case: Case, names: Sequence[str], judging: Judging) -> list[Run]:
    label = f"{case.label}, drawn"
    try:
        theirs = _many(lambda seed: source.draw(case.feeds, seed))
    except SourceRefusal as refusal:
        verdict: Any = "refused" if case.symbol else "error"
        return [Run(label, "source", verdict, str(refusal), case.symbol)]
    return [_run(theirs, model, case, label, name, judging) for name in names]


def _run(
    theirs: Mapping[str, np.ndarray], model: Model, case: Case, label: str, provider: str, judging: Judging
) -> Run:
    if judging.progress is not None:
        judging.progress(f"verifying on {provider}: {label}")
    start = time.perf_counter()
    try:
        runner = ModelSource(model, provider)
        ours = _many(lambda _: runner.run(dict(case.feeds)))
    except EntrepotError as error:
        lacking = judging.providers is None and isinstance(error, UnsupportedOpError)
        return Run(label, provider, "declined" if lacking else "error", str(error), case.symbol)
    found = (f"output '{name}': {why}" for name in theirs if (why := _difference(theirs[name], ours[name], judging)))
    message = next(found, "")
    seconds = time.perf_counter() - start
    return Run(label, provider, "differs" if message else "agrees", message, case.symbol, seconds)


def _many(run: Callable[[int], Mapping[str, Any]]) -> dict[str, np.ndarray]:
    """The outputs of many runs, stacked along a new first axis, as many as there is time for."""
    start = time.perf_counter()
    results = [run(0)]
    count = int(np.clip(_SECONDS / max(time.perf_counter() - start, 1e-6), _LEAST, _MOST))
    results += [run(seed) for seed in range(1, count)]
    return {name: _stacked([result[name] for result in results]) for name in results[0]}


def _stacked(results: Sequence[Any]) -> np.ndarray:
    """Several arrays as one; those of different shapes as an array of objects."""
    arrays = [np.asarray(result) for result in results]
    if len({array.shape for array in arrays}) == 1:
        return np.stack(arrays)
    stacked = np.empty(len(arrays), object)
    stacked[:] = arrays
    return stacked


def _difference(first: np.ndarray, second: np.ndarray, judging: Judging) -> str:
    """How two samples of one output differ, or ""."""
    if object in (first.dtype, second.dtype):
        return "its shape is random, which no sample of runs can judge"
    if first.shape[1:] != second.shape[1:] or first.dtype != second.dtype:
        one, other = (f"{array.dtype}{array.shape[1:]}" for array in (second, first))
        return f"{one}, expected {other}"
    if (first == first[:1]).all() or first.size == 0:
        compared = compare([first[0]], [second[0]], judging.tolerance)
        if compared.ok and not (second == second[:1]).all():
            return "it is random in the model only"
        return "" if compared.ok else str(compared.worst)
    if (second == second[:1]).all():
        return "it is the same in every run of the model, but random in the source"
    return unlike(first, second)


def unlike(first: np.ndarray, second: np.ndarray) -> str:
    """What shows that two samples do not come from one distribution, or "".

    Args:
        first: Draws along the first axis.
        second: The same, perhaps with another number of them.
    """
    one, two = _numbers(first), _numbers(second)
    common = _commonest(np.concatenate([one, two]))
    rounding = _ROUNDING * _step(first.dtype) * float(np.median(np.abs(one), axis=0).mean())
    for what, (a, b) in {
        "elements": (one, two),
        "runs as a whole": (_figures(one, common), _figures(two, common)),
    }.items():
        worst = _standard_errors(a, b, rounding)
        if worst > _BOUND:
            return f"its distribution differs: {what} are {worst:.0f} standard errors apart"
    return ""


def _numbers(array: np.ndarray) -> np.ndarray:
    """Rows of finite numbers, one row per run."""
    flat = array.reshape(len(array), -1)[:, :_ELEMENTS].astype(np.float64)
    return np.nan_to_num(flat, nan=-1e30, posinf=1e30, neginf=-2e30)


def _figures(runs: np.ndarray, common: float) -> np.ndarray:
    """Of each run: mean, spread, extremes, how often the commonest value occurs, and what neighbours have in common."""
    nearby = [(runs[:, :-step] * runs[:, step:]).mean(1) for step in (1, 2) if runs.shape[1] > step]
    equal = [(runs[:, :-step] == runs[:, step:]).mean(1) for step in (1, 2) if runs.shape[1] > step]
    often = np.isclose(runs, common, rtol=1e-5).mean(1)
    return np.stack([runs.mean(1), runs.std(1), runs.min(1), runs.max(1), often, *nearby, *equal], axis=1)


def _commonest(values: np.ndarray) -> float:
    found, counts = np.unique(values, return_counts=True)
    return float(found[counts.argmax()])


def _step(dtype: np.dtype[Any]) -> float:
    """Between one and the next number of a type; that of single precision for types that NumPy does not know."""
    return float(np.finfo(dtype).eps) if dtype.kind == "f" else float(np.finfo(np.float32).eps)


def _standard_errors(first: np.ndarray, second: np.ndarray, rounding: float) -> float:
    """How far the means of ranks, and of their distances from the middle, are apart at worst."""
    ranks = _ranks(np.concatenate([first, second]), rounding)
    one, two = ranks[: len(first)], ranks[len(first) :]
    return max(_apart(one, two), _apart(np.abs(one - 0.5), np.abs(two - 0.5)))


def _ranks(values: np.ndarray, rounding: float) -> np.ndarray:
    """Ranks from 0 to 1 along the first axis.

    Values get noise of a thousandth of their scale, and no less than rounding makes of the elements, so that rounding,
    and which of two equal values comes first, mean nothing: the mean of what is normalised is nothing but rounding.
    """
    noise = np.random.default_rng(0).uniform(-1, 1, values.shape)
    noisy = values + noise * np.maximum(1e-3 * (values.std(0) + np.abs(values.mean(0)) + 1e-30), rounding)
    return noisy.argsort(0).argsort(0) / len(values)


def _apart(first: np.ndarray, second: np.ndarray) -> float:
    variance = first.var(0) / len(first) + second.var(0) / len(second)
    return float((np.abs(first.mean(0) - second.mean(0)) / np.sqrt(variance + 1e-12)).max())
