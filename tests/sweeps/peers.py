"""Whether a file of another exporter does what ours does: wrong where ours is right, it is no measure for it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from tests.export_cases.case import Call, Case
from tests.sweeps.exports import arrays, bound, replaced, tensors

_FAR = 3e-3
"""Of the largest number of a result: what is further off is wrong, not rounded."""

Run = Callable[[Sequence[np.ndarray]], Sequence[Any]]


def failures(case: Case, run: Run, prepare: Callable[[Any], Any] = lambda module: module) -> set[str]:
    """The runs of a case for which a file does not return what the module returns.

    They are the case's calls, with other sizes, and the sample a hundredfold and ten thousandfold, with zeros, with
    something that is no number, as logarithms of small numbers, the first of which is 0, and with the axes that differ
    between calls longer, all alike or each by another factor; those that the module itself refuses do not count.

    Args:
        case: What was exported.
        run: Runs the file on arrays, in order.
        prepare: Changes the module as before it was exported.
    """
    failed = set()
    for name, call in _runs(case):
        try:
            feeds, wanted = _answers(case, call, prepare)
        except Exception:  # noqa: BLE001 - whatever a module raises, it does not take the call
            continue
        try:
            found = run(feeds)
        except Exception:  # noqa: BLE001 - nor do runtimes agree on what to raise
            failed.add(name)
            continue
        if not is_near(found, wanted):
            failed.add(name)
    return failed


def is_near(found: Sequence[Any], wanted: Sequence[Any]) -> bool:
    """Whether a file has the results of a module, whose Python numbers it may leave out."""
    if len(found) != len(wanted):
        wanted = [each for each in wanted if isinstance(each, np.ndarray)]
    return len(found) == len(wanted) and all(map(_is_near, map(np.asarray, found), map(np.asarray, wanted)))


def _is_near(found: np.ndarray, wanted: np.ndarray) -> bool:
    if found.shape != wanted.shape:
        return False
    if wanted.dtype.kind not in "fc":
        return np.array_equal(found, wanted)
    scale = np.abs(np.where(np.isfinite(wanted), wanted, 0)).max(initial=0)
    return np.allclose(found, wanted, rtol=_FAR, atol=_FAR * scale, equal_nan=True)


def _runs(case: Case) -> Iterator[tuple[str, Call]]:
    calls = case.build().calls
    yield from ((f"call {at}", call) for at, call in enumerate(calls))
    yield "zeros", _changed(calls[0], torch.zeros_like)
    yield "a hundredfold", _changed(calls[0], lambda each: each * 100)
    yield "ten thousandfold", _changed(calls[0], lambda each: each * 10_000)
    yield "no number", _changed(calls[0], _with_a_hole)
    yield "ruled out", _changed(calls[0], _without_the_first)
    groups = _varying(calls)
    if groups:
        yield "longer", _longer(calls[0], {place: 3 for group in groups for place in group})
    if len(groups) > 1:
        factors = {place: at for at, group in enumerate(groups, 2) for place in group}
        yield "in other proportions", _longer(calls[0], factors)


_Place = tuple[int, int]
"""Which tensor of a call, and which of its axes."""


def _varying(calls: Sequence[Call]) -> list[list[_Place]]:
    """The axes that differ between calls, those together that have one size in each."""
    shapes = [[tuple(each.shape) for each in tensors(call)] for call in calls]
    if len({tuple(map(len, each)) for each in shapes}) > 1:
        return []
    groups: dict[tuple[int, ...], list[_Place]] = {}
    for at, shape in enumerate(shapes[0]):
        for axis in range(len(shape)):
            groups.setdefault(tuple(each[at][axis] for each in shapes), []).append((at, axis))
    return [places for sizes, places in groups.items() if len({*sizes}) > 1]


def _longer(call: Call, factors: Mapping[_Place, int]) -> Call:
    """The sample repeated along axes, with other numbers each time."""
    generator = torch.Generator().manual_seed(1)
    fresh = []
    for at, each in enumerate(tensors(call)):
        repeated = each.repeat([factors.get((at, axis), 1) for axis in range(each.dim())])
        if each.is_floating_point() and not torch.equal(each, each.round()):
            repeated = repeated * (0.8 + 0.4 * torch.rand(repeated.shape, generator=generator)).to(each.dtype)
        fresh.append(repeated)
    changed: Call = replaced(call, iter(fresh))
    return changed


def _changed(call: Call, change: Callable[[torch.Tensor], torch.Tensor]) -> Call:
    fresh = [change(each) if each.is_floating_point() else each for each in tensors(call)]
    changed: Call = replaced(call, iter(fresh))
    return changed


def _with_a_hole(tensor: torch.Tensor) -> torch.Tensor:
    flat = tensor.flatten().clone()
    flat[len(flat) // 2 :][:1] = torch.nan
    return flat.reshape(tensor.shape)


def _without_the_first(tensor: torch.Tensor) -> torch.Tensor:
    flat = -100 * (1 + tensor.abs()).flatten()
    flat[:1] = -torch.inf
    return flat.reshape(tensor.shape)


def _answers(case: Case, call: Call, prepare: Callable[[Any], Any]) -> tuple[list[np.ndarray], list[Any]]:
    module = prepare(case.build().module)
    if isinstance(module, torch.nn.Module):
        module.eval()
    feeds = [np.array(each) for each in arrays(bound(module, call))]
    args, kwargs = ((), call) if isinstance(call, dict) else (call, {})
    with torch.no_grad(), torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return feeds, list(arrays(module(*args, **kwargs), numbers=True))
