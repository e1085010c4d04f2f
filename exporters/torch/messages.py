"""The texts of torch's errors (2.13), where nothing but the text says what is the matter; nobody else reads them.

``tests/exporters/torch/test_upstream.py`` has a canary for each.
"""

from __future__ import annotations

import re

_SIZE = re.compile(r"L\['tensors'\]\[(\d+)\]\.size\(\)\[(\d+)\]")
_UNMET = re.compile(r"Not all values of (\w+) = .*? satisfy the generated guard (.*)")
_CONSTANT = re.compile(r"You marked (\w+) as dynamic but your code specialized it")
_FIX = re.compile(r"^\s*(\w+)\s*=\s*(.+?)\s*$", flags=re.MULTILINE)
_UNTRANSLATED = re.compile(r"No ONNX function found for <OpOverload\(op='([^']+)', overload='([^']+)'\)>")
_DATA_DEPENDENT = re.compile(r"data-dependent|GuardOnDataDependent|unbacked symint|\bu\d+\b", re.IGNORECASE)


def axis_of(size: str) -> tuple[int, int] | None:
    """The tensor and the axis that a size is of, as torch.export writes it; ``None`` if it writes of something else."""
    found = _SIZE.fullmatch(size)
    return None if found is None else (int(found[1]), int(found[2]))


def of_size(condition: str, axes: frozenset[tuple[int, int]]) -> str | None:
    """A condition as torch.export writes it, ``2 <= L['tensors'][0].size()[1]``, in terms of the one name ``size``.

    Args:
        condition: Perhaps with a full stop.
        axes: The axes that have this size; a condition on others as well is ``None``.
    """
    if any((int(index), int(axis)) not in axes for index, axis in _SIZE.findall(condition)):
        return None
    return _SIZE.sub("size", condition.strip().rstrip("."))


def unmet_conditions(message: str) -> list[tuple[str, str]]:
    """Symbols, and what torch.export needs of each."""
    return _UNMET.findall(message)


def specialised(message: str) -> list[str]:
    """Symbols that the capture turned into constants."""
    return _CONSTANT.findall(message)


def suggested_fixes(message: str) -> list[tuple[str, str]]:
    """Symbols, and what torch.export suggests for each: a range, a number, another symbol."""
    return _FIX.findall(message.partition("Suggested fixes:")[2])


def suggested_bounds(value: str) -> dict[str, int]:
    """``Dim('x', min=3, max=9)``, or ``4 <= L['tensors'][1].size()[1] and ...``, as keyword arguments of Dim."""
    if value.startswith("Dim("):
        return {key: int(number) for key, number in re.findall(r"(min|max)=(\d+)", value)}
    least, most = re.match(r"(\d+) <= ", value), re.search(r" <= (\d+)$", value)
    return ({"min": int(least[1])} if least else {}) | ({"max": int(most[1])} if most else {})


def is_about_sizes(message: str) -> bool:
    """Whether torch.export refuses a dynamic axis."""
    return "Constraints violated" in message


def is_about_transforms(message: str) -> bool:
    """Whether the capture stopped at a tensor of torch.func's, or of gradients that forward itself computes."""
    return "'Tensor' object has no attribute 'constant'" in message or "fake tensor in the exported program" in message


def is_about_values(message: str) -> bool:
    """Whether the capture stopped because Python asked for the value of a tensor."""
    return bool(_DATA_DEPENDENT.search(message))


def untranslated(message: str) -> tuple[str, str] | None:
    """The operator and overload that torch.onnx has no translation for."""
    found = _UNTRANSLATED.search(message)
    return None if found is None else (found[1], found[2])
