"""Who may say what an ONNX model computes: somebody who shares nothing with what is to be judged.

Our own runtime raises old models with the very adapters that wrote them, and folds with the very kernels that run the
result, so its word proves nothing here; it is asked last, and then says so.
"""

from __future__ import annotations

import contextlib
import functools
import locale
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from entrepot.ir.errors import EntrepotError, ExecutionError, UnsupportedOpError
from entrepot.ir.model import Model
from entrepot.ir.opset import OPSET
from entrepot.ir.opset.reading import reads_the_same
from entrepot.parity.compare import compare
from entrepot.parity.emptied import Emptied
from entrepot.parity.feeds import Feeds
from entrepot.parity.leaves import with_columns
from entrepot.parity.sources import ModelSource, Outputs, SourceRefusal, model_name
from entrepot.parity.spelled import spelled_out
from entrepot.parity.untouched import Untouched, is_loadable
from entrepot.runtime.feeds import feeds_of

_FAILURES = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    MemoryError,
    NotImplementedError,
    RuntimeError,
    TypeError,
    ValueError,
)
"""What onnx's reference raises about a model or its inputs: plain Python, with no errors of its own."""

_OWN = "nobody but our own runtime runs the original, with the kernels and adapters that are to be judged"


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Runs onnx's reference without its warnings, and with the process's locale as it was afterwards.

    Its StringNormalizer sets the locale and leaves it so; in ``C``, Python then reads text files as ASCII.
    """
    before = locale.setlocale(locale.LC_ALL)
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        locale.setlocale(locale.LC_ALL, before)


class OnnxRuntime:
    """onnxruntime on the untouched file.

    It may abort the process on empty inputs (1.31, LSTM): our own runtime is asked about those, whose agreement adds
    nothing to the proof, and whose disagreement is a failure.
    """

    doubt = ""

    def __init__(self, model: Model) -> None:
        if not is_loadable(model):
            raise UnsupportedOpError(f"onnxruntime does not load opset {model.opset}")
        self._source = ModelSource(model, "onnxruntime")
        self._emptied = Emptied(model)
        self._ours = functools.cache(lambda: Ourselves(model))
        self.name = self._source.name

    def run(self, feeds: dict[str, np.ndarray[Any, Any]]) -> Outputs:
        """Outputs by name.

        Raises:
            SourceRefusal: The model cannot be run on these feeds.
        """
        if self._emptied.by(feeds):
            return self._ours().run(feeds)
        return self._source.run(feeds)

    @property
    def precision(self) -> np.dtype[Any] | None:
        """The least exact type that it may compute in."""
        return self._source.precision

    def steps(self, feeds: dict[str, np.ndarray[Any, Any]]) -> Mapping[str, float]:
        """How far each output may move where the model rounds to steps."""
        return {} if self._emptied.by(feeds) else self._source.steps(feeds)


class NodeByNode:
    """onnxruntime on the untouched file, of which it fuses nothing: quantised nodes that it fuses round otherwise."""

    def __init__(self, model: Model) -> None:
        self._emptied = Emptied(model)
        self._runner = Untouched(model, literal=True)
        self.name = f"{model_name(model)} on onnxruntime, node by node"

    def run(self, feeds: dict[str, np.ndarray[Any, Any]]) -> Outputs:
        """Outputs by name.

        Raises:
            SourceRefusal: The model cannot be run on these feeds, or they are empty, on which it may abort.
        """
        if self._emptied.by(feeds):
            raise SourceRefusal("onnxruntime may abort the process on empty inputs")
        try:
            return with_columns(self._runner.run(feeds))
        except EntrepotError as error:
            raise SourceRefusal(str(error)) from error


class OnnxReference:
    """onnx's own evaluator, where it can be trusted.

    It gives many operators their newest meaning whatever version the file states, and is wrong about some: it judges
    only models that read the same at the newest opset, and only if our kernels agree with it about the original.

    Raises:
        UnsupportedOpError: It is not sound for this model, or cannot load it.
    """

    doubt = ""

    def __init__(self, model: Model) -> None:
        from onnx.reference import ReferenceEvaluator

        if not reads_the_same(model, OPSET):
            raise UnsupportedOpError(f"onnx.reference does not tell opset {model.opset} from newer ones everywhere")
        self._model = model
        self.name = f"{model_name(model)} on onnx.reference"
        try:
            self._evaluator = ReferenceEvaluator(model.to_proto())
        except _FAILURES as error:
            raise UnsupportedOpError(f"onnx.reference: {error}") from error

    def run(self, feeds: dict[str, np.ndarray[Any, Any]]) -> Outputs:
        """Outputs by name.

        Raises:
            SourceRefusal: It cannot run the model on these feeds.
        """
        try:
            with undisturbed():
                results = self._evaluator.run(None, feeds_of(self._model, feeds))
        except (*_FAILURES, EntrepotError) as error:
            raise SourceRefusal(f"onnx.reference: {error}") from error
        return with_columns(dict(zip((spec.name for spec in self._model.outputs), results, strict=True)))


class RuntimeOnBodies(OnnxRuntime):
    """onnxruntime on the model with its operators spelled out by the function bodies of the standard.

    Some of those bodies are wrong, so our kernels have to agree about the original.
    """

    def __init__(self, model: Model) -> None:
        super().__init__(spelled_out(model))
        self.name += " by its function bodies"


class ReferenceOnBodies(OnnxReference):
    """onnx's own evaluator on the same: what the bodies are made of changed less often than the operators."""

    def __init__(self, model: Model) -> None:
        super().__init__(spelled_out(model))
        self.name += " by its function bodies"


class Ourselves(ModelSource):
    """Our own runtime: a difference from it is a failure, agreement with it is no proof."""

    doubt = _OWN

    def after(self, errors: Sequence[EntrepotError]) -> Ourselves:
        """The same, with what the others said."""
        self.doubt = f"{_OWN} ({'; '.join(' '.join(str(error).split()) for error in errors)})"
        return self


Judge = OnnxRuntime | OnnxReference | Ourselves
_CANDIDATES = (OnnxRuntime, OnnxReference, RuntimeOnBodies, ReferenceOnBodies, Ourselves)
_CHECKED = (OnnxReference, RuntimeOnBodies)  # may be wrong: only if our own runtime says the same of the original


def judge_of(model: Model, feeds: Feeds) -> Judge:
    """The first that runs a model on ``feeds``, twice with the same result.

    Raises:
        EntrepotError: Nobody here can; this is what the last one said.
    """
    errors: list[EntrepotError] = []
    for candidate in _CANDIDATES:
        try:
            judge = _asked(candidate, model, feeds)
            return judge.after(errors) if isinstance(judge, Ourselves) else judge
        except EntrepotError as error:
            errors.append(error)
    raise errors[-1]


def _asked(candidate: Callable[[Model], Judge], model: Model, feeds: Feeds) -> Judge:
    judge = candidate(model)
    first, second = judge.run(dict(feeds)), judge.run(dict(feeds))
    if not compare(first, second).ok:
        raise UnsupportedOpError("its results are random: two runs on the same inputs differ")
    if isinstance(judge, _CHECKED) and not compare(first, Ourselves(model).run(dict(feeds))).ok:
        raise ExecutionError(f"{judge.name} and our own runtime disagree about the original")
    return judge


def doubt_about_runs(model: Model, providers: set[str]) -> str:
    """Why agreement of these providers proves nothing about a model; empty if that of one of them does.

    Args:
        model: What was judged.
        providers: Who ran it and agrees.
    """
    if ("onnxruntime" in providers and is_loadable(model)) or not providers or reads_the_same(model, OPSET):
        return ""
    return (
        f"nobody ran the file but {' and '.join(sorted(providers))}, which raises opset {model.opset} "
        f"to {OPSET} with adapters that may be wrong in the same way as those that wrote it"
    )
