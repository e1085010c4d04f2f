"""Regular expressions matched by a finite automaton: time in proportion to the text, whatever the pattern.

The automaton is made while texts are read, one state at a time. Source: Thompson, "Regular expression search
algorithm", 1968; Cox, https://swtch.com/~rsc/regexp/regexp1.html
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from entrepot.ir.errors import ResourceLimitError
from entrepot.runtime.providers.cpu.regular_syntax import (
    Characters,
    Choice,
    Place,
    Repeat,
    Sequence,
    Tree,
    is_word,
    parse,
)

MOST_STEPS = 10_000
"""Size of a program: it bounds the time per character."""

_MOST_STATES = 10_000
"""States that are kept; with more of them, the automaton is begun anew."""


class _Step(NamedTuple):
    """Read a character of ``test``, or check a place, or just go on; then to each of ``after``."""

    test: Characters | Place | None
    after: tuple[int, ...]


class _Program:
    """Steps of a pattern; they are written from the end, since each names what comes after it."""

    def __init__(self, tree: Tree) -> None:
        self.steps: list[_Step] = [_Step(None, ())]  # the first one is the end
        self.start = self._write(tree, 0)

    def _add(self, test: Characters | Place | None, *after: int) -> int:
        if len(self.steps) >= MOST_STEPS:
            raise ResourceLimitError(f"a regular expression takes more than {MOST_STEPS} steps")
        self.steps.append(_Step(test, after))
        return len(self.steps) - 1

    def _write(self, tree: Tree, after: int) -> int:
        """Write a tree that goes on to ``after``; where it begins."""
        if isinstance(tree, Characters | Place):
            return self._add(tree, after)
        if isinstance(tree, Sequence):
            for item in reversed(tree.items):
                after = self._write(item, after)
            return after
        if isinstance(tree, Choice):
            return self._add(None, *[self._write(option, after) for option in tree.options])
        return self._repeat(tree, after)

    def _repeat(self, tree: Repeat, after: int) -> int:
        if tree.most is None:
            again = self._add(None, after)
            self.steps[again] = _Step(None, (self._write(tree.item, again), after))
            after = again
        else:
            for _ in range(tree.most - tree.least):
                after = self._add(None, self._write(tree.item, after), after)
        for _ in range(tree.least):
            after = self._write(tree.item, after)
        return after


class _State:
    """Where a program may be before the next character, and what the last one was."""

    def __init__(self, steps: frozenset[int], before: str) -> None:
        self.steps = steps
        self.before = before
        self.then: dict[str, _State] = {}


class _Automaton:
    def __init__(self, program: _Program) -> None:
        self._program = program
        self._begin()

    def _begin(self) -> None:
        self._states: dict[tuple[frozenset[int], str], _State] = {}
        self._first = self._state(frozenset([self._program.start]), "")

    def _state(self, steps: frozenset[int], before: str) -> _State:
        return self._states.setdefault((steps, before), _State(steps, before))

    def matches(self, text: str) -> bool:
        """Whether the whole text is in the language."""
        state = self._first
        for character in text:
            after = state.then.get(character)
            if after is None:
                after = self._advanced(state, character)
            if not after.steps:
                return False
            state = after
        return 0 in self._reached(state, "")

    def _advanced(self, state: _State, character: str) -> _State:
        if len(self._states) > _MOST_STATES:
            self._begin()
        reached = (self._program.steps[step] for step in self._reached(state, character))
        passed = [step.after for step in reached if isinstance(step.test, Characters) and character in step.test]
        before = "\n" if character == "\n" else "w" if is_word(character) else "-"
        after = state.then[character] = self._state(frozenset(step for steps in passed for step in steps), before)
        return after

    def _reached(self, state: _State, following: str) -> set[int]:
        """The steps that can be got to without reading, when ``following`` (nothing at the end) comes next."""
        reached: set[int] = set()
        waiting = list(state.steps)
        while waiting:
            at = waiting.pop()
            if at in reached:
                continue
            reached.add(at)
            test, after = self._program.steps[at]
            if test is None or (isinstance(test, Place) and _HOLDS[test.kind](state.before, following)):
                waiting.extend(after)
        return reached


def _is_border(before: str, following: str) -> bool:
    return (before == "w") != (following != "" and is_word(following))


_HOLDS: dict[str, Callable[[str, str], bool]] = {
    "begin": lambda before, following: before == "",
    "end": lambda before, following: following == "",
    "line": lambda before, following: before in ("", "\n"),
    "line end": lambda before, following: following in ("", "\n"),
    "word": _is_border,
    "inside": lambda before, following: not _is_border(before, following),
}


@lru_cache(maxsize=64)
def full_match(pattern: str) -> Callable[[str], bool]:
    """A function that tells whether a whole text matches.

    Raises:
        InputError: The pattern is not a regular expression in RE2's syntax.
        ResourceLimitError: It is too large.
    """
    return _Automaton(_Program(parse(pattern))).matches
