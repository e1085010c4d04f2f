"""Lines of Python broken as formatters break them: at the brackets that come last, then item by item."""

from __future__ import annotations

import re

_OPEN, _CLOSE = "([{", ")]}"


_CALLED = re.compile(r"[\w\])]$")
_OPERATOR = re.compile(r" (?=[-+*/%@&|<>=!]+ )")


def wrapped(line: str, width: int) -> list[str]:
    """A statement on as many lines as it takes to keep them within a width, where brackets allow it.

    Before: ``y = conv(x, w, pads=(1, 1, 1, 1))``. After: ``y = conv(``, the arguments on one line, ``)``; each argument
    on a line of its own, with a comma, where they are still too long.
    """
    if len(line) <= width or line.lstrip().startswith("#"):
        return [line]
    if line.lstrip().startswith("return ") and len(_split(line.strip()[7:])) > 1:
        indent = line[: len(line) - len(line.lstrip())]
        return [f"{indent}return (", *_items(indent, _split(line.strip()[7:]), width), f"{indent})"]
    indent = line[: len(line) - len(line.lstrip())]
    targets, _, values = line.strip().partition(" = ")
    if len(_split(values)) > 1 and _last_bracket(targets) is None:
        return _parallel(indent, targets, values, width)
    place = _last_bracket(line)
    if place is None:
        return _operated(indent, targets, values, width) if values else [line]
    start, end = place
    body, head, tail = line[start + 1 : end], line[: start + 1], indent + line[end:]
    one = f"{indent}    {body}"
    fits = len(one) <= width and not body.endswith(",")
    return [head, *([one] if fits else _clauses(indent, body, width, grouped=_only_groups(line, start, body))), tail]


def _operands(text: str) -> list[str]:
    """What operators outside of brackets and strings separate, each with the operator before it."""
    depth, start, parts = 0, 0, []
    for place, character in _code(text):
        depth += (character in _OPEN) - (character in _CLOSE)
        if depth == 0 and _OPERATOR.match(text, place):
            parts.append(text[start:place])
            start = place + 1
    return [*parts, text[start:]]


def _only_groups(line: str, start: int, body: str) -> bool:
    """Whether a bracket holds one operand, and opens neither a call nor a subscript, a list or a tuple."""
    return line[start] == "(" and not _CALLED.search(line[:start]) and len(_split(body)) == 1 and body[-1] != ","


def _operated(indent: str, target: str, value: str, width: int) -> list[str]:
    """An expression without brackets, in brackets: in one line, or with a line for each operator."""
    one = f"{indent}    {value}"
    parts = [one] if len(one) <= width else [f"{indent}    {part}" for part in _OPERATOR.split(value)]
    return [f"{indent}{target} = (", *parts, f"{indent})"] if " " in value else [f"{indent}{target} = {value}"]


def _parallel(indent: str, targets: str, values: str, width: int) -> list[str]:
    """A parallel assignment: the values one by one, the targets too where they are long."""
    head = f"{indent}{targets} = ("
    if len(head) <= width:
        return [head, *_items(indent, _split(values), width), f"{indent})"]
    left, right = (_items(indent, _split(side), width) for side in (targets, values))
    return [f"{indent}(", *left, f"{indent}) = (", *right, f"{indent})"]


def _items(indent: str, items: list[str], width: int) -> list[str]:
    return [line for item in items for line in wrapped(f"{indent}    {item},", width)]


def _clauses(indent: str, body: str, width: int, *, grouped: bool) -> list[str]:
    """What is in brackets: the two parts of a comprehension, or what operators join, without a comma; else items."""
    depth = 0
    for place, character in _code(body):
        depth += (character in _OPEN) - (character in _CLOSE)
        if depth == 0 and body.startswith(" for ", place):
            parts = (body[:place], body[place + 1 :])
            return [line for part in parts for line in wrapped(f"{indent}    {part}", width)]
    if grouped:  # with a comma it would be a tuple
        return [line for part in _operands(body) for line in wrapped(f"{indent}    {part}", width)]
    return _items(indent, _split(body), width)


def _last_bracket(line: str) -> tuple[int, int] | None:
    """Where the last pair of brackets opens and closes that no other pair holds, and that is not empty."""
    found: list[tuple[int, int]] = []
    opened: list[int] = []
    for place, character in _code(line):
        if character in _OPEN:
            opened.append(place)
        elif character in _CLOSE and opened:
            start = opened.pop()
            if not opened and place > start + 1:
                found.append((start, place))
    return found[-1] if found else None


def _split(text: str) -> list[str]:
    """What commas separate, outside of brackets and strings."""
    depth, start, items = 0, 0, []
    for place, character in _code(text):
        depth += (character in _OPEN) - (character in _CLOSE)
        if character == "," and depth == 0:
            items.append(text[start:place].strip())
            start = place + 1
    rest = text[start:].strip()
    return [*items, rest] if rest else items


def _code(text: str) -> list[tuple[int, str]]:
    """The characters that are not inside a string, with their places."""
    found, quote, skip = [], "", False
    for place, character in enumerate(text):
        if quote:
            if skip:
                skip = False
            elif character == "\\":
                skip = True
            elif character == quote:
                quote = ""
        elif character in "\"'":
            quote = character
        else:
            found.append((place, character))
    return found
