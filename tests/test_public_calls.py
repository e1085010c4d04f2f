"""Whatever is passed to whatever is public: a result, or an error of ours that says what was wrong.

Nothing here names a function or a method: they are found from the public names and what their calls return. A new
one is covered without an edit, unless it has a parameter of a new name, for which ``GOOD`` may hold what makes sense.
"""

from __future__ import annotations

import contextlib
import inspect
import itertools
import math
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
import torch

import entrepot as ep
from entrepot.runtime.generation.manifest import Manifest

PROTO = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["": 17]>
net (float[N, 3] x) => (float[N, 3] y) { h = Softmax<axis = 1>(x)  y = Add(h, h) }""")
X = np.ones((2, 3), np.float32)
LINEAR = torch.nn.Linear(3, 2)

GOOD: dict[str, Callable[[], Any]] = {
    "obj": lambda: LINEAR,
    "source": lambda: ep.load(PROTO),
    "sample": lambda: X,
    "path": lambda: "out.onnx",
    "verify": lambda: False,
    "model": lambda: ep.load(PROTO),
    "target": lambda: 13,
    "expected": lambda: {"y": X},
    "actual": lambda: {"y": X},
    "feeds": lambda: {"x": X},
    "arrays": lambda: X,
    "given": lambda: None,
    "described": dict,
    "prompt": lambda: 3,
    "operator": lambda: "aten::relu",
    "function": lambda: torch.relu,
    "scale": lambda: 1.0,
    "framework": lambda: "numpy",
    "reason": lambda: "it changed",
    "progress": lambda: False,
    "graphs": lambda: {"model": ep.load(PROTO)},
    "manifest": Manifest,
    "role": lambda: "model",
    "kind": lambda: Plain,
}
"""Arguments that make sense, by the name of the parameter; a parameter that is not here keeps its default."""


class Plain:
    """Nothing in particular."""


ZOO: dict[str, Callable[[], Any]] = {
    "None": lambda: None,
    "True": lambda: True,
    "0": lambda: 0,
    "-1": lambda: -1,
    "18": lambda: 18,
    "huge": lambda: 10**400,
    "2.5": lambda: 2.5,
    "nan": lambda: math.nan,
    "inf": lambda: math.inf,
    "1j": lambda: 1j,
    "text": lambda: "x",
    "number as text": lambda: "17",
    "no text": lambda: "",
    "text with NUL": lambda: "a\0b",
    "long text": lambda: "x" * 5000,
    "bytes": lambda: b"x",
    "bytearray": lambda: bytearray(b"x"),
    "empty list": list,
    "list": lambda: [1, 2],
    "list of texts": lambda: ["x"],
    "list of None": lambda: [None],
    "list of arrays": lambda: [X],
    "ragged list": lambda: [[1.0], [2.0, 3.0]],
    "nested list": lambda: [[[[[]]]]],
    "empty tuple": tuple,
    "pair": lambda: (1e-3, 1e-3),
    "empty dict": dict,
    "dict": lambda: {"x": 1},
    "dict of None": lambda: {"x": None},
    "dict of numbers": lambda: {0: "batch"},
    "nested dict": lambda: {"x": {"x": {"x": 1}}},
    "set": lambda: {1, 2},
    "range": lambda: range(3),
    "endless": itertools.count,
    "generator": lambda: (each for each in ("cpu",)),
    "object": object,
    "class": lambda: Plain,
    "instance": Plain,
    "function": lambda: lambda *_, **__: None,
    "module": lambda: math,
    "exception": lambda: ValueError("x"),
    "ellipsis": lambda: ...,
    "array": lambda: X,
    "array of another type": lambda: X.astype(np.int16),
    "empty array": lambda: X[:0],
    "array of rank 0": lambda: np.array(17),
    "array of texts": lambda: np.array(["x"]),
    "array of objects": lambda: np.array([object(), None]),
    "array of dates": lambda: np.array(["2020"], "datetime64[Y]"),
    "structured array": lambda: np.zeros(2, [("a", "f4")]),
    "masked array": lambda: np.ma.masked_array(X, X > 0),
    "scalar": lambda: np.float32(1e-3),
    "narrow array": lambda: X.astype(ml_dtypes.bfloat16),
    "tensor": lambda: torch.ones(2, 3),
    "tensor with a gradient": lambda: torch.ones(2, 3, requires_grad=True),
    "narrow tensor": lambda: torch.ones(2, 3).to(torch.float8_e4m3fn),
    "sparse tensor": lambda: torch.eye(3).to_sparse(),
    "tensor elsewhere": lambda: torch.ones(2, 3, device="meta"),
    "proto": lambda: PROTO,
    "graph": lambda: ep.load(PROTO).ir,
    "empty proto": onnx.ModelProto,
    "module of torch": lambda: LINEAR,
    "model": lambda: ep.load(PROTO),
    "session": lambda: ep.Session(PROTO),
    "sample": lambda: ep.Sample((X,)),
    "tolerance": lambda: ep.Tolerance(1.0, 1.0),
    "limits": lambda: ep.Limits(nodes=1),
    "missing file": lambda: Path("missing.onnx"),
    "folder": Path,
}


CALLBACKS = ("progress", "observe")
"""Parameters that take a function: what the caller's own function raises is theirs, so no others are passed."""


NEEDS_INPUTS = ("Package.generate", "Package.start", "Package.forward", "export_transformer")
"""What takes a model's inputs under the model's own names, or a model of another kind."""


def functions() -> dict[str, Callable[..., Any]]:
    """The public callables; errors are there to be caught."""
    named = {name: getattr(ep, name) for name in ep.__all__}
    return {
        name: call for name, call in named.items() if not (isinstance(call, type) and issubclass(call, BaseException))
    }


def call(function: Callable[..., Any], changes: dict[str, Any]) -> Any:
    """Call with what makes sense, except for the changes."""
    positional, named = [], {}
    for name, parameter in inspect.signature(function).parameters.items():
        needed = parameter.default is parameter.empty and parameter.kind is not parameter.VAR_KEYWORD
        if name not in changes and not (needed or name in ("verify", "sample")):
            continue
        value = changes[name] if name in changes else GOOD.get(name, lambda: None)()
        if parameter.kind is parameter.KEYWORD_ONLY:
            named[name] = value
        elif parameter.kind is parameter.VAR_KEYWORD:
            named["x"] = value
        elif positional is not None:
            positional.append((name, value))
    before = list(inspect.signature(function).parameters)
    skipped = positional and [name for name, _ in positional] != before[: len(positional)]
    if skipped:  # a parameter before it keeps its default
        return function(**dict(positional), **named)
    return function(*(value for _, value in positional), **named)


def ours(value: Any) -> bool:
    return type(value).__module__.startswith("entrepot.")


def reached(start: Any, seen: dict[type, Any]) -> None:
    """One object of each class of ours that can be reached by attributes, and from containers."""
    for value in start if isinstance(start, tuple | list) else [start]:
        if ours(value) and type(value) not in seen:
            seen[type(value)] = value
            for name in attributes(value):
                if not callable(getattr(type(value), name, None)):
                    reached(getattr(value, name), seen)


def attributes(value: Any) -> list[str]:
    return [name for name in dir(value) if not name.startswith("_")]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def objects() -> dict[str, Any]:
    """One object of each class that a user meets."""
    seen: dict[type, Any] = {}
    session = ep.Session(PROTO, threads=1)
    proof = ep.verify(ep.load(PROTO), ep.convert_opset(PROTO, 13), providers="cpu")
    found: list[Any] = [session, session.plan(), session.profile(X), proof, ep.compare({"y": X}, {"y": X})]
    found += [call(function, {}) for function in functions().values() if isinstance(function, type)]
    reached(found, seen)
    return {kind.__name__: value for kind, value in seen.items()}


OBJECTS = objects()


def methods() -> Iterator[tuple[str, Callable[..., Any]]]:
    for kind, value in OBJECTS.items():
        for name in [*attributes(value), "__call__"]:
            method = getattr(value, name, None)
            if callable(method) and getattr(method, "__module__", "").startswith("entrepot."):
                yield f"{kind}.{name}", method


CALLS = {**functions(), **dict(methods())}
PLACES = [(name, parameter) for name, function in CALLS.items() for parameter in inspect.signature(function).parameters]


def test_the_face_and_what_it_gives_are_found() -> None:
    assert {"export", "load", "Session", "compare", "Session.run", "Session.__call__", "Model.save"} <= set(CALLS)
    assert {"Report", "Run", "Comparison", "OutputComparison", "Metrics", "Tolerance", "Sample", "Plan"} <= set(OBJECTS)


def taken_back(result: Any) -> Any:
    """What a call left behind, such as a registration, is removed at the end of the block."""
    return result if hasattr(result, "__enter__") and ours(result) else contextlib.nullcontext(result)


def answer(function: Callable[..., Any], changes: dict[str, Any]) -> str | None:
    """What is wrong about a call: ``None`` for a result or a public error."""
    changes = {name: value for name, value in changes.items() if not (name in CALLBACKS and callable(value))}
    try:
        with taken_back(call(function, changes)) as result:
            if ours(result):
                repr(result), str(result)
    except ep.EntrepotError as error:
        public = type(error).__name__ in ep.__all__ and str(error)
        return None if public else f"not public or without words: {type(error)}: {error}"
    except Exception as error:  # noqa: BLE001 - that there is no other is what is tested
        return f"{type(error).__name__}: {error}"
    return None


@pytest.mark.parametrize(("name", "parameter"), PLACES, ids=lambda each: each)
def test_any_argument_gives_a_result_or_an_error_of_ours(name: str, parameter: str) -> None:
    answers = {kind: answer(CALLS[name], {parameter: make()}) for kind, make in ZOO.items()}
    assert {kind: said for kind, said in answers.items() if said is not None} == {}


@pytest.mark.parametrize("name", CALLS)
def test_nonsense_in_every_place_gives_a_result_or_an_error_of_ours(name: str) -> None:
    function = CALLS[name]
    parameters = list(inspect.signature(function).parameters)
    answers = {kind: answer(function, {each: make() for each in parameters}) for kind, make in ZOO.items()}
    assert {kind: said for kind, said in answers.items() if said is not None} == {}


@pytest.mark.parametrize("name", [name for name in CALLS if name not in NEEDS_INPUTS])
def test_what_makes_sense_is_taken(name: str) -> None:
    with taken_back(call(CALLS[name], {})):
        pass


@pytest.mark.parametrize("kind", OBJECTS)
def test_everything_a_user_is_given_prints_and_pickles(kind: str) -> None:
    value = OBJECTS[kind]
    assert repr(value)
    assert len(repr(value)) < 1000
    other = pickle.loads(pickle.dumps(value))
    assert type(other) is type(value)
    assert repr(other) == repr(value)


@pytest.mark.parametrize("kind", [kind for kind, value in OBJECTS.items() if hasattr(value, "ok")])
def test_what_answers_a_question_is_as_true_as_its_answer(kind: str) -> None:
    assert "__bool__" in dir(OBJECTS[kind])
    assert bool(OBJECTS[kind]) is OBJECTS[kind].ok
