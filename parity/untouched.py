"""onnxruntime on a file exactly as it is: none of our adapters, passes or kernels stands between the two."""

from __future__ import annotations

import importlib.util
from typing import Any

from entrepot.ir.errors import MissingDependencyError, UnsupportedOpError
from entrepot.ir.model import Model
from entrepot.ir.operators import uses_defined
from entrepot.ir.opset.convert import convert_opset
from entrepot.ir.opset.reading import reads_the_same
from entrepot.runtime.feeds import feeds_of
from entrepot.runtime.session import Session


def is_loadable(model: Model) -> bool:
    """Whether onnxruntime can be handed the file, which needs no Python, at most with another opset number."""
    from entrepot.runtime.providers.onnxruntime.provider import OPSET

    if uses_defined(model.ir):
        return False
    return model.opset <= OPSET or reads_the_same(model, OPSET)


class Untouched:
    """Runs a model on onnxruntime as any user would who is given the file.

    A session may do otherwise: what onnxruntime refuses as a whole, it hands over in parts that our adapters have
    brought to another opset.

    Args:
        model: The model.
        literal: Whether each node is run as it stands: what onnxruntime fuses, it may round or even compute otherwise.

    Raises:
        UnsupportedOpError: onnxruntime refuses the file.
        MissingDependencyError: onnxruntime is not installed.
    """

    def __init__(self, model: Model, *, literal: bool = False) -> None:
        from entrepot.runtime.providers.onnxruntime.provider import OPSET

        if importlib.util.find_spec("onnxruntime") is None:
            raise MissingDependencyError(
                "provider 'onnxruntime' needs the onnxruntime package", hint="pip install 'entrepot[onnxruntime]'"
            )
        if not is_loadable(model):
            raise UnsupportedOpError(f"onnxruntime loads opset {OPSET}, where this model means something else")
        self._model = model
        self._literal = literal
        self._loadable = model if model.opset <= OPSET else convert_opset(model, OPSET)
        self._outputs = [spec.name for spec in model.outputs]
        self._engines: dict[tuple[str, ...], Any] = {}
        self._engine(tuple(spec.name for spec in model.inputs))

    def run(self, feeds: Any) -> dict[str, Any]:
        """Outputs by name.

        Raises:
            InputError: The feeds do not fit.
            ExecutionError: onnxruntime fails as it runs.
        """
        taken = feeds_of(self._model, feeds)
        results = self._engine(tuple(taken)).run(*taken.values())
        return dict(zip(self._outputs, results, strict=True))

    def _engine(self, inputs: tuple[str, ...]) -> Any:
        """One for each choice of inputs: those with default values may be fed or not."""
        from entrepot.runtime.providers.onnxruntime.engine import Engine, RefusedError

        if inputs not in self._engines:
            try:
                self._engines[inputs] = Engine(
                    self._loadable, inputs, self._outputs, None, frugal=True, literal=self._literal
                )
            except RefusedError as error:
                raise UnsupportedOpError(f"onnxruntime refuses the model: {error}") from error
        return self._engines[inputs]


def opened(model: Model, provider: str) -> Session | Untouched:
    """A provider with the model: onnxruntime with the file as it is, where it can load that."""
    if provider == "onnxruntime" and is_loadable(model):
        return Untouched(model)
    return Session(model, providers=(provider,))
