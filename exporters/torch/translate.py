"""An ``ExportedProgram`` as an ``onnx_ir.Model``, by torch.onnx's translation with additions of ours."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from typing import Any

import onnx_ir
import torch
from torch.onnx._internal.exporter import _core, _registration

from entrepot.exporters.torch.custom import onnx_translations
from entrepot.exporters.torch.eager import MODEL_ERRORS
from entrepot.exporters.torch.guard import quiet
from entrepot.exporters.torch.translations import translations
from entrepot.ir.errors import ConversionError, EntrepotError, UnsupportedOpError

NATURAL_OPSET = 20
"""What torch.onnx is asked for: its newest nodes that our default file opset has."""


def translate(program: torch.export.ExportedProgram) -> onnx_ir.Model:
    """Translate node by node; weights are the program's own, not copies.

    Raises:
        UnsupportedOpError: An operator has no translation; the message names the user's line.
        ConversionError: A translation failed.
    """
    try:
        with quiet():
            # its own optimizer would fold transposed copies of weights and merge equal parameters under one name
            result = _core.export(
                program,
                registry=_registry(onnx_translations()),
                verbose=False,
                optimize=False,
                opset_version=NATURAL_OPSET,
            )
    except MODEL_ERRORS as error:
        raise _refusal(error, program) from error
    return result.model


@functools.lru_cache(maxsize=2)
def _registry(custom: tuple[tuple[Any, Callable[..., Any]], ...]) -> _registration.ONNXRegistry:
    """torch.onnx's translations, ours, and those that users have registered.

    ``torch.onnx.export`` makes this table anew at each call (2.13), which takes longer than most translations.
    """
    registry = _registration.ONNXRegistry().from_torchlib(opset_version=NATURAL_OPSET)
    for operator, function in (*translations().items(), *custom):
        registry.register_op(operator, function, is_complex=False)
    return registry


def _refusal(error: BaseException, program: torch.export.ExportedProgram) -> EntrepotError:
    causes = list(_causes(error))
    ours = next((cause for cause in causes if isinstance(cause, EntrepotError)), None)
    if ours is not None:
        return ours
    root = causes[-1]
    missing = re.search(r"No ONNX function found for <OpOverload\(op='([^']+)', overload='([^']+)'\)>", str(root))
    if missing:
        name = f"{missing[1]}.{missing[2]}".removesuffix(".default")
        operator = missing[1].replace(".", "::", 1)
        return UnsupportedOpError(
            f"no ONNX translation for torch operator {name}{_places(program, missing[1])}",
            hint=f'write that line with other operators, or ep.register_translation("{operator}", ...)',
        )
    first = next(iter(str(root).splitlines()), "")
    return ConversionError(f"torch.onnx cannot translate the captured graph: {type(root).__name__}: {first}")


def _causes(error: BaseException) -> Iterator[BaseException]:
    current: BaseException | None = error
    while current is not None:
        yield current
        current = current.__cause__


def _places(program: torch.export.ExportedProgram, name: str) -> str:
    from entrepot.exporters.torch.repair import source_of

    lines = [
        source_of(node.meta.get("stack_trace") or "") for node in program.graph.nodes if name in _qualified(node.target)
    ]
    found = [line for line in dict.fromkeys(lines) if line]
    return f", used at {'; '.join(found[:3])}" if found else ""


def _qualified(target: object) -> str:
    return str(target)
