"""What cannot be exported yet, in plain words instead of those of the part of torch that happens to fail."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

import torch

from entrepot.exporters.exporter import Refusal
from entrepot.exporters.torch.arrays import PACKED_HINT
from entrepot.exporters.torch.running.eager import Eager
from entrepot.exporters.torch.running.spotting import OperatorSpotter
from entrepot.exporters.torch.upstream import is_quantised_class, script_type
from entrepot.ir.errors import ConversionError, UnsupportedOpError

_PACKED = "packed sequences cannot be exported"
_QUANTISED = "modules that torch has quantised cannot be exported"
_QUANTISED_HINT = "export the module as it was before quantisation, and quantise the ONNX file"
_OPERATORS = {
    ("aten::_pack_padded_sequence", "aten::_pad_packed_sequence"): (_PACKED, PACKED_HINT),
    ("quantized::", "aten::quantize_per_"): (_QUANTISED, _QUANTISED_HINT),
}


def check_quantised(module: torch.nn.Module) -> None:
    """Raise for a module with quantised parts: no exporter can reach their weights.

    Raises:
        UnsupportedOpError: There is such a part.
    """
    for name, part in _quantised(module):
        raise UnsupportedOpError(f"{_QUANTISED}: it is a {part}", value=name or None, hint=_QUANTISED_HINT)


@contextlib.contextmanager
def plain_refusals(eager: Eager, tensors: Sequence[torch.Tensor]) -> Iterator[None]:
    """Raise a plainer error than torch's if the module does something that is known not to work."""
    try:
        yield
    except (ConversionError, UnsupportedOpError) as error:
        plainer = _explanation(eager, tensors)
        if plainer is None:
            raise
        raise plainer from error


def _explanation(eager: Eager, tensors: Sequence[torch.Tensor]) -> UnsupportedOpError | None:
    for prefixes, (what, hint) in _OPERATORS.items():
        spotter = OperatorSpotter(prefixes=prefixes)
        try:
            with spotter:
                eager(tensors)
        except Refusal:
            return None
        for operator, line in spotter.found:
            return UnsupportedOpError(f"{what}: {operator}{f' at {line}' if line else ''}", hint=hint)
    return None


def _quantised(module: torch.nn.Module) -> Iterator[tuple[str, str]]:
    """Name and kind of every quantised part."""
    for name, part in module.named_modules():
        if is_quantised_class(type(part)):
            yield name, f"{type(part).__module__}.{type(part).__qualname__}"
        for key, value in (
            *vars(part).items(),
            *part.named_parameters(recurse=False),
            *part.named_buffers(recurse=False),
        ):
            path = f"{name}.{key}" if name else key
            if isinstance(value, torch.Tensor) and value.is_quantized:
                yield path, f"tensor of {value.dtype}"
            elif isinstance(value, torch.ScriptObject) and "PackedParams" in script_type(value):
                yield path, "set of packed weights"
