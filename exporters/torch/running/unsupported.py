"""What cannot be exported yet, in plain words instead of those of the part of torch that happens to fail."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence

import torch

from entrepot.exporters.exporter import Refusal
from entrepot.exporters.torch.arrays import PACKED_HINT
from entrepot.exporters.torch.running.eager import Eager
from entrepot.exporters.torch.running.spotting import OperatorSpotter
from entrepot.exporters.torch.upstream import is_quantised_bag
from entrepot.ir.errors import ConversionError, UnsupportedOpError

_PACKED = "packed sequences cannot be exported"
_OPERATORS = {
    ("aten::_pack_padded_sequence", "aten::_pad_packed_sequence"): (_PACKED, PACKED_HINT),
}


def check_kernels(module: torch.nn.Module) -> None:
    """Raise for a module that may not be run on anything but its sample.

    Raises:
        UnsupportedOpError: There is such a part.
    """
    for name, part in module.named_modules():
        if is_quantised_bag(part):
            raise UnsupportedOpError(
                "a quantised EmbeddingBag cannot be exported: torch's kernel reads outside of its memory for offsets "
                "that do not fit, so it cannot be tried at other sizes",
                value=name or None,
                hint="leave the bag as it was before quantisation, or use a quantised Embedding and sum its rows",
            )


@contextlib.contextmanager
def plain_refusals(explanation: Callable[[], tuple[str, str] | None]) -> Iterator[None]:
    """Raise a plainer error than torch's if the module does something that is known not to work.

    Args:
        explanation: What that is, and a hint, or ``None``; asked for when something is refused.
    """
    try:
        yield
    except (ConversionError, UnsupportedOpError) as error:
        plainer = explanation()
        if plainer is None:
            raise
        raise UnsupportedOpError(plainer[0], hint=plainer[1]) from error


def known_not_to_work(eager: Eager, tensors: Sequence[torch.Tensor]) -> tuple[str, str] | None:
    """What a module does that cannot be exported, and a hint; ``None`` if that is nothing known."""
    for prefixes, (what, hint) in _OPERATORS.items():
        spotter = OperatorSpotter(prefixes=prefixes)
        try:
            with spotter:
                eager(tensors)
        except Refusal:
            return None
        for operator, line in spotter.found:
            return f"{what}: {operator}{f' at {line}' if line else ''}", hint
    return None
