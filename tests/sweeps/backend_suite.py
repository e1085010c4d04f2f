"""ONNX's own backend tests: which a provider passes, fails, and refuses, and why."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from onnx.backend.test.loader import load_model_tests

import entrepot as ep
from entrepot.ir.opset import OPSET

KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator")

RANDOM = ("test_bernoulli",)
"""Expected values are one draw of NumPy's generator: no other implementation can make them."""

ATOL = 1e-6
"""onnx's own runner uses 1e-7, and loosens it to this where its reference needs it (DFT, STFT)."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of one test: ``passed``, ``wrong``, ``failed`` (an error) or ``unsupported`` (a typed refusal)."""

    name: str
    status: str
    reason: str = ""
    operators: tuple[str, ...] = ()


def load_tests(kind: str) -> Iterator[tuple[str, onnx.ModelProto, list[tuple[list[Any], list[Any]]], float]]:
    """Name, model, data sets and relative tolerance of each test of one kind."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tests = load_model_tests(kind=kind)
    for test in tests:
        if test.model is not None:
            yield test.name, test.model, test.data_sets, test.rtol
        else:
            folder = Path(test.model_dir)
            model = onnx.load(folder / "model.onnx")
            yield (
                test.name,
                model,
                [_read_set(path, model) for path in sorted(folder.glob("test_data_set_*"))],
                test.rtol,
            )


def _read_set(folder: Path, model: onnx.ModelProto) -> tuple[list[Any], list[Any]]:
    inputs = [_read(folder / f"input_{n}.pb", value) for n, value in enumerate(_fed(model, folder))]
    outputs = [_read(folder / f"output_{n}.pb", value) for n, value in enumerate(model.graph.output)]
    return inputs, outputs


def _fed(model: onnx.ModelProto, folder: Path) -> list[onnx.ValueInfoProto]:
    return list(model.graph.input)[: len(list(folder.glob("input_*.pb")))]


def _read(path: Path, value: onnx.ValueInfoProto) -> Any:
    data = path.read_bytes()
    if value.type.HasField("sequence_type"):
        return onnx.numpy_helper.to_list(onnx.SequenceProto.FromString(data))
    if value.type.HasField("optional_type"):
        return onnx.numpy_helper.to_optional(onnx.OptionalProto.FromString(data))
    return onnx.numpy_helper.to_array(onnx.TensorProto.FromString(data))


def plain(value: Any) -> Any:
    """A test's value as a session takes it: protos decoded, scalars as arrays."""
    if isinstance(value, onnx.TensorProto):
        return onnx.numpy_helper.to_array(value)
    if isinstance(value, onnx.SequenceProto):
        return onnx.numpy_helper.to_list(value)
    if isinstance(value, onnx.OptionalProto):
        return onnx.numpy_helper.to_optional(value)
    if isinstance(value, list | tuple):
        return [plain(member) for member in value]
    if value is None:
        return None
    array = np.asarray(value)
    return array.astype(object) if array.dtype.kind in "US" else array


def difference(expected: Any, actual: Any, rtol: float) -> str:
    """Empty when they agree; else what differs."""
    if isinstance(expected, list):
        if not isinstance(actual, list) or len(actual) != len(expected):
            return f"expected a sequence of {len(expected)}, got {type(actual).__name__}"
        return next(filter(None, (difference(e, a, rtol) for e, a in zip(expected, actual, strict=True))), "")
    if expected is None:
        return "" if actual is None else "expected an empty optional"
    if isinstance(actual, list) or actual is None:
        return f"expected an array, got {type(actual).__name__}"
    if expected.dtype != actual.dtype:
        return f"expected {expected.dtype}, got {actual.dtype}"
    if expected.shape != actual.shape:
        return f"expected shape {expected.shape}, got {actual.shape}"
    if expected.dtype == object or expected.dtype.kind in "biu":
        return "" if np.array_equal(expected, actual) else "values differ"
    return _distance(expected, actual, rtol)


def _distance(expected: Any, actual: Any, rtol: float) -> str:
    wide = np.complex128 if expected.dtype.kind == "c" else np.float64
    if expected.dtype.itemsize == 2:  # one unit in the last place, where onnx's own sums are rounded at every step
        rtol = max(rtol, 2 * float(ml_dtypes.finfo(expected.dtype).eps))
    a, b = expected.astype(wide), actual.astype(wide)
    with np.errstate(all="ignore"):
        close = np.isclose(b, a, rtol=rtol, atol=ATOL, equal_nan=True)
    if close.all():
        return ""
    return (
        f"{int((~close).sum())} of {close.size} values differ, by up to {float(np.nanmax(np.abs(a - b)[~close])):.3g}"
    )


def run_test(provider: str, model: onnx.ModelProto, sets: Sequence[Any], rtol: float) -> tuple[str, str]:
    """Status and reason of one test."""
    try:
        session = _opened(provider, ep.load(model))
        names = [value.name for value in model.graph.input]
        for inputs, outputs in sets:
            feeds = {name: plain(value) for name, value in zip(names, inputs, strict=False)}
            results = list(session.run(feeds).values())
            for expected, actual in zip(outputs, results, strict=True):
                reason = difference(plain(expected), actual, rtol)
                if reason:
                    return "wrong", reason
    except (ep.UnsupportedOpError, ep.ConversionError) as error:
        return "unsupported", str(error)
    except ep.EntrepotError as error:
        return "failed", f"{type(error).__name__}: {error}"
    except Exception as error:  # noqa: BLE001 - an untyped error is a defect to be counted, not a reason to stop
        return "failed", f"UNTYPED {type(error).__name__}: {error}"
    return "passed", ""


def _opened(provider: str, model: ep.Model) -> Any:
    """Whatever runs a model: a session, or ``to_torch`` for the module that it becomes."""
    if provider != "to_torch":
        return ep.Session(model, providers=[provider])
    from entrepot.importers.torch.proof import ModuleSource

    return ModuleSource(ep.to_torch(model, verify=False), model)


def outcomes(provider: str, kinds: Sequence[str], match: str = "", *, hub_only: bool = False) -> Iterator[Outcome]:
    """Run the tests whose name contains ``match``."""
    for kind in kinds:
        for name, model, sets, rtol in load_tests(kind):
            opset = next((each.version for each in model.opset_import if each.domain == ""), 0)
            if match not in name or (hub_only and opset not in (0, OPSET)):
                continue
            operators = tuple(dict.fromkeys(node.op_type for node in model.graph.node))
            if name.startswith(RANDOM):
                yield Outcome(name, "random", "", operators)
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                yield Outcome(name, *run_test(provider, model, sets, rtol), operators)
