"""Torch's own table of operators, exported: what torch.export captures, and what becomes of it.

Every operator of ``torch.testing``'s OpInfo table is called with a few of the samples that its own tests use. Complex
results are returned as pairs of numbers, since no ONNX runtime has complex types. A result is right if it has the
dtype and shape of torch's and is as close as ``parity`` asks for, or, where that is not so, no further from what torch
computes in float64 than 32 times the error of torch itself.

``benchmarks.opinfo`` runs them all and prints the table; the tests run a sample.
"""

from __future__ import annotations

import contextlib
import copy
import io
import itertools
import logging
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.utils import _pytree as pytree

import entrepot as ep
from entrepot.exporters.torch.arrays import TORCH
from entrepot.exporters.torch.running.errors import MODEL_ERRORS
from entrepot.parity.compare import compare

DTYPES = {"float32": torch.float32, "int64": torch.int64, "bool": torch.bool, "float16": torch.float16}
VERDICTS = ("right", "wrong", "refused", "lacking")
"""What may become of a sample; ``lacking`` says that a runtime has not all operators of a file."""
_OWN = 32

_TIES = {"sort": 0, "mode": 0, "median": 0, "nanmedian": 0, "topk": 1, "kthvalue": 1, "argsort": 0}
"""Functions that may return the place of any of several equal elements, and which of their arguments is the axis."""


class Call(torch.nn.Module):
    """One operator on one sample: its tensors are the inputs, all else is constant."""

    def __init__(
        self, function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], part: Callable[..., Any]
    ) -> None:
        super().__init__()
        self.function = function
        self.part = part  # what of the results is unique: not the signs of eigenvectors
        leaves, self._spec = pytree.tree_flatten((tuple(args), kwargs))
        self.places = [index for index, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
        self.tensors = tuple(leaves[index].detach().clone() for index in self.places)
        self._leaves = [None if index in self.places else leaf for index, leaf in enumerate(leaves)]

    def forward(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """The tensors among the results, complex ones as pairs."""
        leaves = list(self._leaves)
        for place, tensor in zip(self.places, tensors, strict=True):
            leaves[place] = tensor
        args, kwargs = pytree.tree_unflatten(leaves, self._spec)
        results = pytree.tree_leaves(self.part(self.function(*args, **kwargs)))
        tensors = tuple(each for each in results if isinstance(each, torch.Tensor))
        return tuple(torch.view_as_real(each.resolve_conj()) if each.is_complex() else each for each in tensors)


@dataclass
class Outcome:
    """What became of one operator for one dtype.

    Attributes:
        captured: How many samples torch.export captures.
        verdicts: The worst verdict over those samples, by who ran which file.
        reasons: Why, by the same names.
    """

    captured: int
    verdicts: dict[str, str]
    reasons: dict[str, str]


def operators(match: str = "") -> Iterator[Any]:
    """The OpInfos whose full name contains ``match``, or is one of those between commas."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch.testing._internal import common_methods_invocations as table
    table.wrapper_set_seed = lambda function, *args, **how: function(
        *args, **how
    )  # or random operators look like others
    wanted = set(match.split(","))
    for info in table.op_db:
        if not match or name_of(info) in wanted or ("," not in match and match in name_of(info)):
            yield info


def name_of(info: Any) -> str:
    """``linalg.norm.subgradients_at_zero``."""
    return f"{info.name}.{info.variant_test_name}".removesuffix(".")


def outcome(info: Any, kind: torch.dtype, *, most: int, peer: bool) -> Outcome | None:
    """Export the operator on a few samples; ``None`` where torch has none that give tensors, always the same."""
    found = Outcome(0, {}, {})
    asked = 0
    for call in _calls(info, kind, most):
        expected = _expected(call)
        if expected is None:
            continue
        asked += 1
        if not _captures(call):
            continue
        found.captured += 1
        _note(found, _ours(call), call, expected)
        if peer:
            _note(found, _peer(call), call, expected)
    return found if asked else None


def _by_value(info: Any) -> Callable[..., Any]:
    """The operator, with elements in place of their places where torch does not say which of equal ones it finds."""
    if name_of(info) not in _TIES:
        return info.op  # type: ignore[no-any-return]

    def call(input: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        result = info.op(input, *args, **kwargs)
        if not input.dim() or not (isinstance(result, tuple) or info.name == "argsort"):
            return result
        values, places = result if isinstance(result, tuple) else (result * 0, result)
        place = _TIES[name_of(info)]
        axis = kwargs.get("dim", args[place] if len(args) > place else -1)
        places = places if places.dim() == input.dim() else places.unsqueeze(axis)
        return values, input.gather(axis, places)

    return call


def _calls(info: Any, kind: torch.dtype, most: int) -> Iterator[Call]:
    torch.manual_seed(0)
    if kind not in info.supported_dtypes("cpu") or "empty" in info.name:  # whose elements are anything
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        samples = list(itertools.islice(info.sample_inputs("cpu", kind), 200))
    picked = {round(place) for place in np.linspace(0, len(samples) - 1, most)} if samples else set()
    for place in sorted(picked):
        sample = samples[place]
        call = Call(_by_value(info), (sample.input, *sample.args), dict(sample.kwargs), sample.output_process_fn_grad)
        if call.tensors and not any(tensor.is_complex() or tensor.layout != torch.strided for tensor in call.tensors):
            yield call


def _expected(call: Call) -> list[torch.Tensor] | None:
    """What torch gives, if it gives the same twice."""
    runs = []
    for seed in (0, 1):
        torch.manual_seed(seed)
        try:
            runs.append(_run(call))
        except MODEL_ERRORS:
            return None
    first, second = runs
    same = all(torch.equal(one.nan_to_num(), other.nan_to_num()) for one, other in zip(first, second, strict=True))
    return first if first and same and all(each.layout == torch.strided for each in first) else None


def _run(call: Call) -> list[torch.Tensor]:
    with torch.no_grad(), _silence():
        return [each.clone() for each in call(*(tensor.clone() for tensor in call.tensors))]


def _captures(call: Call) -> bool:
    try:
        with torch.no_grad(), _silence():
            torch.export.export(call, call.tensors, strict=False)
    except MODEL_ERRORS:
        return False
    return True


_Results = dict[str, "list[np.ndarray[Any, Any]] | str"]


def _ours(call: Call) -> _Results:
    try:
        with _silence():
            model = ep.export(call, call.tensors, dynamic=False, verify=False, progress=False)
    except ep.EntrepotError as error:
        return {"cpu": f"refused: {error.message}", "onnxruntime": f"refused: {error.message}"}
    return {name: _session(model, call, name) for name in ("cpu", *_elsewhere(call))}


def _elsewhere(call: Call) -> tuple[str, ...]:
    """onnxruntime (1.31) is wrong about empty inputs in several operators, and aborts in some."""
    return () if any(tensor.numel() == 0 for tensor in call.tensors) else ("onnxruntime",)


def _peer(call: Call) -> _Results:
    try:
        with torch.no_grad(), _silence():
            program = torch.onnx.export(call, call.tensors, dynamo=True, verbose=False)
        assert program is not None
        model = ep.load(program.model_proto, trust="trusted")
        return {"torch.onnx": _session(model, call, next(iter(_elsewhere(call)), "cpu"))}
    except (*MODEL_ERRORS, ep.EntrepotError) as error:
        return {"torch.onnx": f"refused: {error}"}


def _session(model: ep.Model, call: Call, provider: str) -> list[np.ndarray[Any, Any]] | str:
    feeds = dict(zip((spec.name for spec in model.inputs), map(_array, call.tensors), strict=False))
    try:
        with _silence():
            return list(ep.Session(model, providers=[provider]).run(feeds).values())
    except ep.EntrepotError as error:
        return f"{'refused' if provider == 'cpu' else 'lacking'}: {error.message}"


def _array(tensor: torch.Tensor) -> Any:
    return TORCH.to_numpy(tensor)


def _note(found: Outcome, results: _Results, call: Call, expected: list[torch.Tensor]) -> None:
    """Keep the worst verdict of each."""
    for name, result in results.items():
        if isinstance(result, str):
            verdict, _, reason = result.partition(": ")
        else:
            reason = _difference(call, expected, result)
            verdict = "wrong" if reason else "right"
        order = ("right", "lacking", "refused", "wrong")
        if order.index(verdict) >= order.index(found.verdicts.get(name, "right")):
            found.verdicts[name] = verdict
            found.reasons[name] = " ".join(reason.split())[:300]


def _difference(call: Call, expected: list[torch.Tensor], actual: list[np.ndarray[Any, Any]]) -> str:
    source = {str(index): TORCH.to_numpy(each) for index, each in enumerate(expected)}
    found = {str(index): np.asarray(each) for index, each in enumerate(actual)}
    comparison = compare(source, found)
    if comparison.ok or set(source) != set(found):
        return "" if comparison.ok else f"{len(found)} results instead of {len(source)}"
    exact = _in_double(call)
    if exact is not None and all(_close(source[key], exact[int(key)], found[key]) for key in source):
        return ""
    return comparison.summary() if hasattr(comparison, "summary") else str(comparison)


def _in_double(call: Call) -> list[np.ndarray[Any, Any]] | None:
    try:
        double = copy.copy(call)
        double.tensors = tuple(each.double() if each.is_floating_point() else each for each in call.tensors)
        return [TORCH.to_numpy(each) for each in _run(double)]
    except MODEL_ERRORS:
        return None


def _close(source: Any, exact: Any, actual: Any) -> bool:
    if source.dtype != actual.dtype or not source.shape == exact.shape == actual.shape:
        return False
    if source.dtype.kind != "f":
        return bool((source == actual).all())
    if np.isfinite(exact).all() and not np.isfinite(source).all():  # torch overflows on the way
        with np.errstate(over="ignore"):
            return compare([exact.astype(source.dtype)], [actual]).ok
    own = np.abs(source.astype(np.float64) - exact)
    error = np.abs(actual.astype(np.float64) - exact)
    same = (source == actual) | (np.isnan(source) & np.isnan(actual))
    return bool((same | (error <= _OWN * np.nanmax(own, initial=0))).all())


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    quiet = io.StringIO()
    logging.disable(logging.CRITICAL)
    with warnings.catch_warnings(), contextlib.redirect_stdout(quiet), contextlib.redirect_stderr(quiet):
        warnings.simplefilter("ignore")
        yield
