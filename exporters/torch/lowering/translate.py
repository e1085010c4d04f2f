"""An ``ExportedProgram`` as an ``onnx_ir.Model``, by torch.onnx's translation with additions of ours."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import onnx_ir
import torch

from entrepot.exporters.torch.capture.rounding import remainders_by_nothing
from entrepot.exporters.torch.capture.settings import capture_settings
from entrepot.exporters.torch.lowering.complex_numbers import split_complex
from entrepot.exporters.torch.lowering.custom import onnx_translations
from entrepot.exporters.torch.lowering.decomposing import decomposed
from entrepot.exporters.torch.lowering.failed import remove_failed
from entrepot.exporters.torch.lowering.fractions import settle_fractions
from entrepot.exporters.torch.lowering.known_sizes import settle_sizes
from entrepot.exporters.torch.lowering.promotion import promote_types
from entrepot.exporters.torch.lowering.signatures import functions_unparsed, signatures_once
from entrepot.exporters.torch.lowering.size_arithmetic import settle_divisions, settle_strides, settle_sums
from entrepot.exporters.torch.messages import untranslated
from entrepot.exporters.torch.running.errors import MODEL_ERRORS
from entrepot.exporters.torch.running.guard import quiet
from entrepot.exporters.torch.translations import decompositions, translations
from entrepot.exporters.torch.upstream import (
    FakeTensor,
    ONNXRegistry,
    convert_version,
    create_onnx_friendly_decomposition_table,
    get_onnx_implemented_overloads,
    remove_assertion_nodes,
    to_onnx_program,
    unchecked,
)
from entrepot.ir.errors import ConversionError, EntrepotError, UnsupportedOpError

NATURAL_OPSET = 20
"""The opset asked of torch.onnx: the newest whose nodes our default file opset has."""


def translate(program: torch.export.ExportedProgram) -> onnx_ir.Model:
    """Translate node by node; weights are the program's own, not copies.

    Raises:
        UnsupportedOpError: An operator has no translation; the message names the user's line.
        ConversionError: A translation failed.
    """
    try:
        # its own optimizer would fold transposed copies of weights and merge equal parameters under one name
        with quiet(), signatures_once():
            varying = _varying(program)
            program, registry = _decomposed(program), _registry(onnx_translations())
            check_constants(program)
            _check_sizes(program, varying)
            result = to_onnx_program(program, registry=registry)
            _settle_versions(result.model)
            _settle_numbers(result.model.graph)
            return convert_version(result.model, NATURAL_OPSET)
    except MODEL_ERRORS as error:
        raise _refusal(error, program) from error


def check_constants(program: torch.export.ExportedProgram) -> None:
    """Refuse constants without values: what code reads of a tensor by NumPy, or stores in itself, while it is traced.

    Raises:
        ConversionError: There are some.
    """
    held = {**program.constants, **program.state_dict}
    hollow = [name for name, value in held.items() if isinstance(value, FakeTensor)]
    if hollow:
        name = hollow[0].removeprefix("module.")
        raise ConversionError(f"the capture has no values for the constant '{name}'", hint="make it in __init__")


def _varying(program: torch.export.ExportedProgram) -> dict[str, list[int]]:
    """The axes of each input whose size is no number."""
    inputs = (node for node in program.graph.nodes if node.op == "placeholder")
    tensors = ((node.name, node.meta.get("val")) for node in inputs)
    return {
        name: [axis for axis, size in enumerate(value.shape) if _varies(size)]
        for name, value in tensors
        if isinstance(value, torch.Tensor)
    }


def _varies(size: Any) -> bool:
    return isinstance(size, torch.SymInt) and not size.node.expr.is_number


def _check_sizes(program: torch.export.ExportedProgram, varying: Mapping[str, Sequence[int]]) -> None:
    """Refuse what takes a size for a number that the capture left open: the file would work for no other.

    Raises:
        ConversionError: There is such a size.
    """
    found = _varying(program)
    lost = [f"{name}.{axis}" for name, axes in varying.items() for axis in axes if axis not in found.get(name, axes)]
    if lost:
        raise ConversionError(f"the translation takes the sizes {', '.join(lost)} for numbers")


def _settle_versions(model: onnx_ir.Model) -> None:
    """One version of the domains of functions: torch.onnx (2.13) gives calls in nested loops that of ai.onnx."""
    domains = {function.domain for function in model.functions.values()}
    scopes: list[onnx_ir.Graph | onnx_ir.Function] = [model.graph, *model.functions.values()]
    for graph in scopes:
        graph.opset_imports.update(dict.fromkeys(domains & graph.opset_imports.keys(), 1))


def _settle_numbers(graph: onnx_ir.Graph) -> None:
    """Sizes that torch.export found to be numbers are numbers: torch.onnx (2.13) makes symbols of them, such as "7"."""
    inner = (value for node in onnx_ir.traversal.RecursiveGraphIterator(graph) for value in node.outputs)
    for value in (*graph.inputs, *inner):
        if value.shape is not None:
            value.shape = onnx_ir.Shape([_number(dim) for dim in value.shape])


def _number(dim: int | onnx_ir.SymbolicDim) -> int | onnx_ir.SymbolicDim:
    text = dim.value if isinstance(dim, onnx_ir.SymbolicDim) else None
    return int(text) if text is not None and text.isdecimal() else dim


def _decomposed(program: torch.export.ExportedProgram) -> torch.export.ExportedProgram:
    """What torch.onnx does before it translates, with our decompositions before torch's."""
    with unchecked(), capture_settings(), remainders_by_nothing():
        table = _decompositions(onnx_translations())
        remove_failed(program)
        settle_sizes(program)
        program = decomposed(program, table)
        split_complex(program, table)
        settle_strides(program)
        settle_divisions(program)
        settle_sums(program)
        settle_fractions(program)
        promote_types(program.graph_module)
        remove_assertion_nodes(program.graph_module)
    return program


_Custom: TypeAlias = tuple[tuple[Any, Callable[..., Any]], ...]


@functools.lru_cache(maxsize=2)
def _decompositions(custom: _Custom) -> dict[Any, Any]:
    """What torch decomposes for lack of a translation, and what we do; what users translate stays whole."""
    translated = set(get_onnx_implemented_overloads(_registry(custom)))
    ours = {operator: function for operator, function in decompositions().items() if operator not in dict(custom)}
    return {**create_onnx_friendly_decomposition_table(translated), **ours}


@functools.lru_cache(maxsize=2)
def _registry(custom: _Custom) -> ONNXRegistry:
    """torch.onnx's translations, ours, and those that users have registered.

    ``torch.onnx.export`` rebuilds this table at each call (2.13), which takes longer than most translations.
    """
    with functions_unparsed():
        registry = ONNXRegistry().from_torchlib(opset_version=NATURAL_OPSET)
    for operator, function in (*translations().items(), *custom):
        registry.register_op(operator, function, is_complex=False)
    return registry


def _refusal(error: BaseException, program: torch.export.ExportedProgram) -> EntrepotError:
    causes = list(_causes(error))
    ours = next((cause for cause in causes if isinstance(cause, EntrepotError)), None)
    if ours is not None:
        return ours
    root = causes[-1]
    missing = untranslated(str(root))
    if missing:
        name = ".".join(missing).removesuffix(".default")
        operator = missing[0].replace(".", "::", 1)
        return UnsupportedOpError(
            f"no ONNX translation for torch operator {name}{_places(program, missing[0])}",
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
    from entrepot.exporters.torch.lowering.repair import source_of

    lines = [
        source_of(node.meta.get("stack_trace") or "") for node in program.graph.nodes if name in _qualified(node.target)
    ]
    found = [line for line in dict.fromkeys(lines) if line]
    return f", used at {'; '.join(found[:3])}" if found else ""


def _qualified(target: object) -> str:
    return str(target)
