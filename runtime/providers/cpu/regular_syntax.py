"""RE2's syntax of regular expressions, as far as it describes characters rather than bytes.

Only what a finite automaton can match is in it: no backreferences and no looking around, so that matching takes time in
proportion to the text. Source: https://github.com/google/re2/wiki/Syntax
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass, replace
from typing import NoReturn, TypeAlias

from entrepot.ir.errors import InputError, ResourceLimitError

MOST_REPEATS = 1000
MOST_NESTING = 100


@dataclass(frozen=True)
class Characters:
    """One character out of a set.

    Attributes:
        ranges: First and last of each range.
        categories: Unicode's general categories, such as ``Lu``, or their first letters.
        parts: Sets that belong to it.
        negated: Whether it is all the others.
        folded: Whether upper and lower case are the same.
    """

    ranges: tuple[tuple[str, str], ...] = ()
    categories: tuple[str, ...] = ()
    parts: tuple[Characters, ...] = ()
    negated: bool = False
    folded: bool = False

    def __contains__(self, character: str) -> bool:
        found = self._has(character)
        if not found and self.folded:
            found = any(self._has(other) for other in _other_cases(character))
        return found != self.negated

    def _has(self, character: str) -> bool:
        return (
            any(low <= character <= high for low, high in self.ranges)
            or any(character in part for part in self.parts)
            or (bool(self.categories) and unicodedata.category(character).startswith(self.categories))
        )


@dataclass(frozen=True)
class Place:
    """A place between characters: ``begin``, ``end``, ``line``, ``line end``, ``word`` or ``inside``."""

    kind: str


@dataclass(frozen=True)
class Sequence:
    """One thing after the other."""

    items: tuple[Tree, ...]


@dataclass(frozen=True)
class Choice:
    """One of several things."""

    options: tuple[Tree, ...]


@dataclass(frozen=True)
class Repeat:
    """A thing several times; without end where ``most`` is ``None``."""

    item: Tree
    least: int
    most: int | None


Tree: TypeAlias = "Characters | Place | Sequence | Choice | Repeat"


@dataclass(frozen=True)
class _Flags:
    fold: bool = False
    lines: bool = False
    dot_all: bool = False


_DIGIT = Characters((("0", "9"),))
_SPACE = Characters((("\t", "\n"), ("\f", "\r"), (" ", " ")))
_WORD = Characters((("0", "9"), ("A", "Z"), ("_", "_"), ("a", "z")))
_CLASSES = {"d": _DIGIT, "s": _SPACE, "w": _WORD}
_CONTROLS = {"a": "\a", "f": "\f", "t": "\t", "n": "\n", "r": "\r", "v": "\v"}
_PLACES = {"A": "begin", "z": "end", "b": "word", "B": "inside"}
_NAMED = {
    "alnum": (("0", "9"), ("A", "Z"), ("a", "z")),
    "alpha": (("A", "Z"), ("a", "z")),
    "ascii": (("\0", "\x7f"),),
    "blank": (("\t", "\t"), (" ", " ")),
    "cntrl": (("\0", "\x1f"), ("\x7f", "\x7f")),
    "digit": (("0", "9"),),
    "graph": (("!", "~"),),
    "lower": (("a", "z"),),
    "print": ((" ", "~"),),
    "punct": (("!", "/"), (":", "@"), ("[", "`"), ("{", "~")),
    "space": (("\t", "\r"), (" ", " ")),
    "upper": (("A", "Z"),),
    "word": _WORD.ranges,
    "xdigit": (("0", "9"), ("A", "F"), ("a", "f")),
}


def is_word(character: str) -> bool:
    r"""Whether ``\b`` counts a character to a word."""
    return character in _WORD


def _other_cases(character: str) -> tuple[str, ...]:
    return tuple(other for other in (character.lower(), character.upper()) if len(other) == 1)


def parse(pattern: str) -> Tree:
    """The tree of a pattern.

    Raises:
        InputError: It is not a regular expression in RE2's syntax.
        ResourceLimitError: It is nested too deeply.
    """
    return _Parser(pattern).whole()


class _Parser:
    def __init__(self, pattern: str) -> None:
        self._text = pattern
        self._at = 0
        self._depth = 0

    def whole(self) -> Tree:
        tree = self._choice(_Flags())
        if self._at < len(self._text):
            self._fail("an unexpected )")
        return tree

    def _fail(self, problem: str) -> NoReturn:
        raise InputError(
            f"the regular expression {self._text[:80]!r} has {problem} at {self._at}", hint="it is in RE2's syntax"
        )

    def _peek(self, text: str) -> bool:
        return self._text.startswith(text, self._at)

    def _take(self, text: str) -> bool:
        found = self._peek(text)
        self._at += len(text) if found else 0
        return found

    def _next(self) -> str:
        if self._at >= len(self._text):
            self._fail("no end")
        self._at += 1
        return self._text[self._at - 1]

    def _until(self, end: str) -> str:
        stop = self._text.find(end, self._at)
        if stop < 0:
            self._fail(f"no {end}")
        found, self._at = self._text[self._at : stop], stop + len(end)
        return found

    def _choice(self, flags: _Flags) -> Tree:
        self._depth += 1
        if self._depth > MOST_NESTING:
            raise ResourceLimitError(f"a regular expression is nested more than {MOST_NESTING} levels deep")
        options: list[Tree] = []
        items: list[Tree] = []
        while self._at < len(self._text) and not self._peek(")"):
            if self._take("|"):
                options.append(Sequence(tuple(items)))
                items = []
            elif self._peek("(?") and (changed := self._changed_flags(flags)) is not None:
                flags = changed
            else:
                items.extend(self._repeated(flags))
        self._depth -= 1
        last = Sequence(tuple(items))
        return Choice((*options, last)) if options else last

    def _changed_flags(self, flags: _Flags) -> _Flags | None:
        """The flags that ``(?i)`` leaves for the rest of the group; ``None`` where a group opens."""
        stop = self._text.find(")", self._at)
        letters = self._text[self._at + 2 : stop]
        if stop < 0 or not letters or letters.strip("imsU-"):
            return None
        self._at = stop + 1
        return self._with(flags, letters)

    def _with(self, flags: _Flags, letters: str) -> _Flags:
        on, _, off = letters.partition("-")
        for letter in on + off:
            if letter not in "imsU":
                self._fail(f"an unknown flag {letter!r}")
            name = {"i": "fold", "m": "lines", "s": "dot_all"}.get(letter)  # U changes what is found, not what matches
            flags = flags if name is None else replace(flags, **{name: letter in on})
        return flags

    def _repeated(self, flags: _Flags) -> list[Tree]:
        items = self._atom(flags)
        bounds = self._bounds() if items else None
        if bounds is not None:
            items[-1] = Repeat(items[-1], *bounds)
            if self._bounds() is not None:
                self._fail("a repetition of a repetition")
        return items

    def _bounds(self) -> tuple[int, int | None] | None:
        found: tuple[int, int | None] | None = None
        if self._take("*"):
            found = (0, None)
        elif self._take("+"):
            found = (1, None)
        elif self._take("?"):
            found = (0, 1)
        elif self._peek("{"):
            found = self._counted()
        if found is not None:
            self._take("?")
        return found

    def _counted(self) -> tuple[int, int | None] | None:
        """``{2}``, ``{2,}`` or ``{2,5}``; any other brace stands for itself."""
        inside, closed, _ = self._text[self._at + 1 :].partition("}")
        least, comma, most = inside.partition(",")
        if not closed or not least.isdecimal() or (most and not most.isdecimal()) or not inside.isascii():
            return None
        self._at += len(inside) + 2
        if len(least) > 4 or len(most) > 4 or max(int(least), int(most or 0)) > MOST_REPEATS:
            self._fail(f"more than {MOST_REPEATS} repetitions")
        last = (int(most) if most else None) if comma else int(least)
        if last is not None and last < int(least):
            self._fail("repetitions in the wrong order")
        return int(least), last

    def _atom(self, flags: _Flags) -> list[Tree]:
        if self._take("("):
            return [self._group(flags)]
        if self._take("["):
            return [self._set(flags)]
        if self._take("\\Q"):
            stop = self._text.find("\\E", self._at)
            text = self._text[self._at : stop if stop >= 0 else None]
            self._at += len(text) + (2 if stop >= 0 else 0)
            return [_one(character, flags) for character in text]
        if self._peek("{") and self._counted() is not None:
            self._fail("nothing to repeat")
        character = self._next()
        if character == "\\":
            return [self._escape(flags)]
        if character in "*+?":
            self._fail(f"nothing to repeat by {character}")
        return [self._plain(character, flags)]

    def _plain(self, character: str, flags: _Flags) -> Tree:
        if character == ".":
            return Characters((("\n", "\n"),) if not flags.dot_all else (), negated=True)
        if character in "^$":
            kinds = ("line", "line end") if flags.lines else ("begin", "end")
            return Place(kinds[character == "$"])
        return _one(character, flags)

    def _group(self, flags: _Flags) -> Tree:
        if self._take("?"):
            if self._take("P<") or (
                self._peek("<") and not self._peek("<=") and not self._peek("<!") and self._take("<")
            ):
                if not self._until(">").isidentifier():
                    self._fail("a bad name of a group")
            else:
                letters = self._until(":")
                if letters.strip("imsU-"):
                    self._fail("a group that RE2 does not know")
                flags = self._with(flags, letters)
        tree = self._choice(flags)
        if not self._take(")"):
            self._fail("a group without an end")
        return tree

    def _escape(self, flags: _Flags) -> Tree:
        character = self._next()
        if character in _PLACES:
            return Place(_PLACES[character])
        found = self._class(character)
        if found is not None:
            return replace(found, folded=flags.fold)
        return _one(self._literal(character), flags)

    def _class(self, character: str) -> Characters | None:
        r"""What ``\d``, ``\pL`` and the like stand for."""
        if character.lower() in _CLASSES:
            return replace(_CLASSES[character.lower()], negated=character.isupper())
        if character not in ("p", "P"):
            return None
        name = self._until("}") if self._take("{") else self._next()
        negated = (character == "P") != name.startswith("^")
        name = name.removeprefix("^")
        if name == "Any":
            return Characters(negated=not negated)
        if name not in _CATEGORIES:
            self._fail(f"an unknown class of characters {name!r}")
        return Characters(categories=(name,), negated=negated)

    def _literal(self, character: str) -> str:
        if character in _CONTROLS:
            return _CONTROLS[character]
        if character == "x":
            digits = self._until("}") if self._take("{") else self._next() + self._next()
            return self._code(digits, 16)
        if character in "01234567":
            digits = character
            while len(digits) < 3 and self._at < len(self._text) and self._text[self._at] in "01234567":
                digits += self._next()
            if len(digits) == 1 and digits != "0":
                self._fail("a backreference")
            return self._code(digits, 8)
        if not character.isascii() or character.isalnum():
            self._fail(f"an unknown escape \\{character}")
        return character

    def _code(self, digits: str, base: int) -> str:
        try:
            return chr(int(digits, base))
        except (ValueError, OverflowError):
            self._fail(f"a bad character code {digits!r}")

    def _set(self, flags: _Flags) -> Characters:
        negated = self._take("^")
        ranges: list[tuple[str, str]] = []
        parts: list[Characters] = []
        first = True
        while first or not self._peek("]"):
            first = False
            if self._take("[:"):
                parts.append(replace(self._named(), folded=flags.fold))
                continue
            low = self._next()
            if low == "\\":
                escaped = self._next()
                part = self._class(escaped)
                if part is not None:
                    parts.append(replace(part, folded=flags.fold))
                    continue
                low = self._literal(escaped)
            ranges.append((low, self._upper_end(low)))
        self._at += 1
        return Characters(tuple(ranges), (), tuple(parts), negated, flags.fold)

    def _upper_end(self, low: str) -> str:
        if not self._peek("-") or self._text[self._at + 1 : self._at + 2] in ("]", ""):
            return low
        self._at += 1
        high = self._next()
        high = self._literal(self._next()) if high == "\\" else high
        if high < low:
            self._fail(f"a bad range {low}-{high}")
        return high

    def _named(self) -> Characters:
        name = self._until(":]")
        negated, name = name.startswith("^"), name.removeprefix("^")
        if name not in _NAMED:
            self._fail(f"an unknown class of characters [:{name}:]")
        return Characters(_NAMED[name], negated=negated)


def _one(character: str, flags: _Flags) -> Characters:
    cases = {character, *_other_cases(character)} if flags.fold else {character}
    return Characters(tuple((case, case) for case in sorted(cases)), folded=flags.fold)


_CATEGORIES = frozenset(
    [
        "C", "Cc", "Cf", "Co", "Cs", "L", "Ll", "Lm", "Lo", "Lt", "Lu", "M", "Mc", "Me", "Mn", "N", "Nd", "Nl",
        "No", "P", "Pc", "Pd", "Pe", "Pf", "Pi", "Po", "Ps", "S", "Sc", "Sk", "Sm", "So", "Z", "Zl", "Zp", "Zs",
    ]
)  # fmt: skip
