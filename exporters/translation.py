"""How users teach the exporters operators that they do not know."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any, Literal, Self

from entrepot.ir.errors import MissingDependencyError


class Translation:
    """A registered translation; ``remove`` undoes it, and so does the end of a ``with`` block."""

    def __init__(self, entry: Any, remove: Callable[[Any], None]) -> None:
        self._entry = entry
        self._remove = remove

    def remove(self) -> None:
        """Undo the registration: what was in force before is in force again. A second call changes nothing."""
        self._remove(self._entry)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.remove()

    def __repr__(self) -> str:
        return f"entrepot.Translation {self._entry.name} into {self._entry.into}"


def register_translation(
    operator: Any, function: Callable[..., Any], *, into: Literal["torch", "onnx"] = "torch"
) -> Translation:
    """Say how an operator is exported; what is exported with it is verified like everything else.

    Args:
        operator: A torch operator, ``"mylib::scale"`` or ``torch.ops.mylib.scale``, with or without its overload; a
            custom operator; for ``into="torch"`` also any function of torch that ``forward`` calls. Or a primitive of
            JAX, ``"jax::erf"``.
        function: What takes its place; it is called with the same arguments.
        into: ``"torch"``: the function computes with torch, and that is exported instead. ``"onnx"``: it builds ONNX
            nodes of opset 20 with ``onnxscript.opset20``, from values for tensors and Python values for the rest, like
            those in the ``custom_translation_table`` of ``torch.onnx.export``. For a primitive of JAX it is called with
            a builder, ``build.op("Erf", x)``, the values, and the primitive's parameters by name.

    Returns:
        A handle to undo it, also as a context manager. The latest registration counts.

    Raises:
        InputError: There is no such operator, or it cannot be translated in this way.
        MissingDependencyError: torch is not installed.
    """
    from entrepot.exporters.jax import custom as of_jax

    if of_jax.is_of_jax(operator):
        return Translation(of_jax.add(operator, function, into), of_jax.remove)
    try:
        from entrepot.exporters.torch.lowering import custom
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("entrepot"):
            raise
        raise MissingDependencyError(
            f"'{error.name}' is needed to translate its operators", hint="pip install 'entrepot[torch]'"
        ) from error
    return Translation(custom.add(operator, function, into), custom.remove)
