"""What rewritten functions call: each step decides whether Python goes on, or the graph is given a branch or a loop."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable
from typing import Any

import torch

from entrepot.exporters.torch.messages import is_about_values
from entrepot.exporters.torch.rewriting.apart import Apart, picked
from entrepot.exporters.torch.rewriting.arithmetic import as_number, compared, plus
from entrepot.exporters.torch.rewriting.branches import branch as graph_branch
from entrepot.exporters.torch.rewriting.calls import callee, method, power
from entrepot.exporters.torch.rewriting.combining import keyed, transposed
from entrepot.exporters.torch.rewriting.endless import MOST_UNROLLED, NotFollowedError, counted, limited
from entrepot.exporters.torch.rewriting.environment import hint, is_often_one, known
from entrepot.exporters.torch.rewriting.links import ListError, NothingYetError, whole
from entrepot.exporters.torch.rewriting.lists import Columns, Grown, Piled, Tracked, Trailing, longer, repeated
from entrepot.exporters.torch.rewriting.looking_up import cut, item, store
from entrepot.exporters.torch.rewriting.loops import loop
from entrepot.exporters.torch.rewriting.part import State, inside
from entrepot.exporters.torch.rewriting.reaching import LEFT_OUT, SIZES, TAKEN
from entrepot.exporters.torch.rewriting.sequences import Chained, Span, Unfinished
from entrepot.exporters.torch.rewriting.shapes import as_tensor
from entrepot.exporters.torch.rewriting.substitution import substitute
from entrepot.exporters.torch.rewriting.texts import text
from entrepot.exporters.torch.rewriting.trees import UNDEFINED, AbsentError, UnlikeError
from entrepot.exporters.torch.rewriting.uneven import Lengthened
from entrepot.exporters.torch.upstream import FakeTensor, numpy_in_torch

__all__ = [
    "UNDEFINED",
    "State",
    "alike",
    "among",
    "as_number",
    "branch",
    "callee",
    "check",
    "choose",
    "compared",
    "cut",
    "each",
    "either",
    "item",
    "keyed",
    "listed",
    "listed_flat",
    "method",
    "negated",
    "pick",
    "plus",
    "power",
    "repeat",
    "repeated",
    "same",
    "spread",
    "state",
    "store",
    "substitute",
    "taken",
    "text",
    "transposed",
]


def _not_followed(what: str, variables: State, line: int, error: UnlikeError) -> NotFollowedError:
    return NotFollowedError(f"the {what} at {variables.place(line)} cannot be put into a graph: {error}")


def _passed_on(error: UnlikeError) -> bool:
    """Whether a block around this one may keep the list that is meant in another form."""
    return isinstance(error, ListError) and inside()


def state(get: Any, put: Any, names: tuple[str, ...], inner: tuple[str, ...]) -> State:
    """The variables of a part of a function."""
    return State(get, put, names, frozenset(inner))


def _told(test: Any, variables: State, line: int) -> Any:
    """A settled condition; of one on values, note what it says."""
    found = settled(test)
    if isinstance(found, bool) and not isinstance(test, (torch.SymBool, torch.SymInt)):
        TAKEN.add((variables.place(line), found))
    return found


def settled(test: Any) -> Any:
    """``True`` or ``False`` where Python can tell; else a condition on sizes, or a tensor."""
    if isinstance(test, numpy_in_torch.ndarray):
        test = test.tensor
    if isinstance(test, torch.SymInt):
        test = compared(test, "NotEq", 0)
    if isinstance(test, torch.SymFloat):
        test = test != 0.0
    if isinstance(test, torch.SymBool):
        found = known(test)
        return test if found is None else found
    if isinstance(test, FakeTensor) and test.numel() == 1 and getattr(test, "constant", None) is None:
        return (test if test.dtype is torch.bool else test != 0).reshape(())
    if isinstance(test, Grown):
        return bool(test.items)
    if isinstance(test, Trailing | Piled | Lengthened):
        return settled(compared(test.count, "NotEq", 0))
    if isinstance(test, Columns | Apart):
        return settled(compared(test.length, "NotEq", 0))
    if isinstance(test, Tracked):
        test.look()
    return bool(test)


def branch(test: Any, then: Any, otherwise: Any, variables: State, line: int, raises: tuple[bool, bool]) -> None:
    """``if`` without ``return``."""
    _branch(test, then, otherwise, variables, line, raises, returns=False)


def choose(test: Any, then: Any, otherwise: Any, variables: State, line: int, raises: tuple[bool, bool]) -> Any:
    """``if`` both of whose arms return."""
    return _branch(test, then, otherwise, variables, line, raises, returns=True)


def _branch(
    test: Any, then: Any, otherwise: Any, variables: State, line: int, raises: tuple[bool, bool], *, returns: bool
) -> Any:
    test = _told(test, variables, line)
    if isinstance(test, torch.Tensor) and any(raises):
        LEFT_OUT[variables.place(line)] = "check"
        return otherwise() if raises[0] else then()
    if isinstance(test, bool) or any(raises):
        return then() if test else otherwise()
    return _both("branch", test, (then, otherwise), variables, line, returns=returns)


def _both(what: str, test: Any, ways: tuple[Any, Any], variables: State, line: int, *, returns: bool) -> Any:
    """Two ways in the graph; the way that the sample takes where sizes decide and the two are not alike."""
    by_size = isinstance(test, torch.SymBool) and hint(test) is not None
    if by_size and SIZES.decide:
        return ways[0]() if test else ways[1]()
    SIZES.met |= by_size
    try:
        return graph_branch(test, ways, variables, line, returns=returns)
    except UnlikeError as error:
        if _passed_on(error):
            raise
        if isinstance(error, NothingYetError):
            return _possible(ways)
        if by_size and (isinstance(error, AbsentError) or not is_often_one(test)):
            holds = hint(test) if is_often_one(test) else test
            return ways[0]() if holds else ways[1]()
        raise _not_followed(what, variables, line, error) from error


def _possible(ways: tuple[Any, Any]) -> Any:
    """The way that can be gone in the first trial of a loop, which tells what its lists hold; the next tries both."""
    try:
        return ways[0]()
    except NothingYetError:
        return ways[1]()


def repeat(test: Callable[[], Any], body: Callable[[], Any], variables: State, line: int, plain: bool) -> None:
    """``while``; a plain test only compares variables, and may be asked at any time."""
    holds = test if plain else None

    def again() -> Any:
        return as_tensor(settled(test()))

    def turn(_: Any) -> None:
        body()

    for _ in range(MOST_UNROLLED):
        found = test()
        goes = settled(found)
        if goes is False:
            return None
        if goes is not True:
            _loop(variables, turn, line, going=again, starts=goes, holds=holds)
            return None
        if isinstance(found, torch.SymBool):  # some turns are made at each size, and more at larger ones
            before = variables.get()
            try:
                return loop(variables, turn, line, going=again, starts=True, holds=holds, give_up=False)
            except UnlikeError:  # the first turn differs
                variables.put(before)
        body()
    raise NotFollowedError(f"the loop at {variables.place(line)} goes on and on")


def each(items: Iterable[Any], body: Callable[[Any], Any], left: Any, variables: State, line: int) -> None:
    """``for``."""
    if isinstance(items, torch.Tensor):
        items = callee(torch.unbind)(items)
    items = whole(items)
    if isinstance(items, Chained) and left is None:  # which piece an item is in varies, so each is gone through
        for piece in items.pieces:
            each(piece, body, left, variables, line)
        return
    if isinstance(items, Unfinished) and not isinstance(items.length, int):
        _over(items, body, left, variables, line)
        return
    if isinstance(items, Grown):
        items = [items.at(index) for index in range(len(items))]
    items = counted(items)
    turns = limited(items)
    for at, turn in enumerate(turns):
        body(turn)
        gone = False if left is None else settled(left())
        if gone is True:
            return
        if gone is not False:
            rest = items[at + 1 :] if isinstance(items, range) else turns
            _unless_left(rest, body, left, gone, variables, line)
            return


def _unless_left(rest: Any, body: Callable[[Any], Any], left: Any, gone: Any, variables: State, line: int) -> None:
    """The turns of ``for`` after one that may have left it."""
    if isinstance(rest, range):
        if len(rest):
            _over(Span(rest.start, rest.step, len(rest)), body, left, variables, line, starts=negated(gone))
        return
    for other in rest:
        if _is_left(functools.partial(body, other), left, variables, line):
            return


def _is_left(turn: Callable[[], Any], left: Any, variables: State, line: int) -> bool:
    """Make another turn of a loop unless it has been left; whether it has been for sure then, as its flag says."""
    ends: list[Any] = []

    def then() -> None:
        turn()
        ends.append(settled(left()))

    branch(negated(left()), then, lambda: None, variables, line, (False, False))
    if not ends or ends[-1] is not True:
        return settled(left()) is True
    left.__closure__[0].cell_contents = True  # the flag, which was set before or is now
    return True


def _over(items: Unfinished, body: Any, left: Any, variables: State, line: int, starts: Any = True) -> None:
    going = None if left is None else lambda: as_tensor(settled(negated(left())))
    alone = starts is not True or (left is not None and items.length == 1)
    try:
        loop(variables, body, line, items=items, going=going, starts=starts, give_up=alone)
    except UnlikeError as error:
        if _passed_on(error):
            raise
        if alone:
            raise _not_followed("loop", variables, line, error) from error
        body(items.at(0))  # the first time differs: the variables have no values, or others, before it
        if left is not None:
            starts = settled(negated(left()))
            if starts is False:
                return
        try:
            loop(variables, body, line, items=items.sliced(slice(1, None)), going=going, starts=starts)
        except UnlikeError as second:
            if _passed_on(second):
                raise
            raise _not_followed("loop", variables, line, second) from second


def _loop(variables: State, body: Any, line: int, **how: Any) -> None:
    try:
        loop(variables, body, line, **how)
    except UnlikeError as error:
        if _passed_on(error):
            raise
        raise _not_followed("loop", variables, line, error) from error


def listed(items: Any, function: Callable[..., Any], wanted: Any, variables: State, line: int, *around: Any) -> Any:
    """``[f(x) for x in items if w(x)]``; see ``listed_flat``."""
    return listed_flat(items, lambda *values: [function(*values)], wanted, variables, line, *around)


def taken(items: Any, function: Callable[..., Any], wanted: Any, variables: State, line: int, *around: Any) -> Any:
    """``[x[key] for x in items]``, which takes nothing but one part out of each item; see ``listed_flat``."""
    found = picked(items, lambda item: function(item, *around)) if wanted is None else None
    return listed(items, function, wanted, variables, line, *around) if found is None else found


def listed_flat(
    items: Any, function: Callable[..., Any], wanted: Any, variables: State, line: int, *around: Any
) -> Any:
    """``[y for x in items if w(x) for y in f(x)]``.

    Args:
        items: What it runs over.
        function: Is called with an item, and what ``around`` holds.
        wanted: Says of an item, called likewise, whether it counts; ``None`` where all do.
        variables: Those of the function that are mentioned.
        line: Where it is.
        around: The items of lists around this one, which are variables of these alone.
    """
    if isinstance(items, torch.Tensor):
        items = callee(torch.unbind)(items)
    items = whole(items)
    held: list[Any] = [[], None, *around]

    def put(values: tuple[Any, ...]) -> None:
        held[:] = values

    both = variables.with_more([""] * len(held), lambda: tuple(held), put)

    def take() -> None:
        held[0] = longer(held[0], function(held[1], *held[2:]))

    def turn(item: Any) -> None:
        held[1] = item
        if wanted is None:
            take()
        else:
            branch(wanted(item, *held[2:]), take, lambda: None, both, line, (False, False))
        held[1] = None

    if isinstance(items, Unfinished) and not isinstance(items.length, int):
        _over(items, turn, None, both, line)
    else:
        for item in limited(items):
            turn(item)
    return held[0]


def spread(*pieces: Any) -> Any:
    """``[*xs, *ys]``."""
    if isinstance(pieces[0], Trailing | Piled):  # it may hold nothing yet that says what items are like
        return functools.reduce(operator.add, pieces)
    pieces = tuple(map(whole, pieces))
    if any(isinstance(each, Unfinished) and not isinstance(each.length, int) for each in pieces):
        return functools.reduce(operator.add, [each if isinstance(each, Unfinished) else list(each) for each in pieces])
    return [item for each in pieces for item in each]


def pick(test: Any, then: Callable[[], Any], otherwise: Callable[[], Any], line: int) -> Any:
    """``a if test else b``."""
    test = _told(test, _closed(then, otherwise), line)
    if isinstance(test, bool):
        return then() if test else otherwise()
    return _both("choice", test, (then, otherwise), _closed(then, otherwise), line, returns=True)


def _closed(then: Any, otherwise: Any) -> State:
    """The variables that two lambdas mention, by their cells."""
    cells = {
        name: cell
        for each in (then, otherwise)
        for name, cell in zip(each.__code__.co_freevars, each.__closure__ or (), strict=True)
    }
    cells = {name: cell for name, cell in cells.items() if name != "__class__" and not name.startswith("_ep_")}

    def get() -> tuple[Any, ...]:
        return tuple(cell.cell_contents for cell in cells.values())

    def put(values: tuple[Any, ...]) -> None:
        for cell, value in zip(cells.values(), values, strict=True):
            cell.cell_contents = value

    get.__code__ = get.__code__.replace(co_filename=then.__code__.co_filename)
    return State(get, put, tuple(cells), frozenset())


def check(test: Callable[[], Any], message: Callable[[], Any], line: int) -> None:
    """``assert``; one that is about the values of tensors, or sizes that these decide, is left out."""
    found = _asserted(test)
    decided_by_values = isinstance(found, torch.SymBool) and hint(found) is None
    if decided_by_values:
        torch._check(found)  # noqa: SLF001 - what is asserted may be relied upon
    if found is None or decided_by_values or isinstance(found, torch.Tensor):
        LEFT_OUT[State(test, message, (), frozenset()).place(line)] = "check"  # type: ignore[arg-type]
    elif not found:
        raise AssertionError(message())


def _asserted(test: Callable[[], Any]) -> Any:
    """A settled condition; ``None`` where Python itself asks for values on the way, as it compares lists of sizes."""
    try:
        return settled(test())
    except RuntimeError as error:
        if not is_about_values(str(error)):
            raise
    return None


def both(*parts: Callable[[], Any]) -> Any:
    """``and``."""
    return _joined(parts, ends=False, join=torch.logical_and)


def last(value: Callable[[], Any], *parts: Callable[[], Any]) -> Any:
    """``length > 1 and causal``: what the last says where the others hold; if that is nothing, they do not matter."""
    holds = both(*parts)
    if isinstance(holds, bool):
        return value() if holds else False
    found = value()
    if isinstance(found, bool):
        return holds if found else False
    return holds and found


def either(*parts: Callable[[], Any]) -> Any:
    """``or``."""
    return _joined(parts, ends=True, join=torch.logical_or)


def _joined(parts: Iterable[Callable[[], Any]], *, ends: bool, join: Any) -> Any:
    result: Any = not ends
    for part in parts:
        value = settled(part())
        if isinstance(value, bool):
            if value is ends:
                return ends
            continue
        if isinstance(result, bool):
            result = value
        elif isinstance(result, torch.SymBool) and isinstance(value, torch.SymBool):
            result = result | value if ends else result & value
        else:
            result = join(as_tensor(result), as_tensor(value))
    return result


def same(value: Any, truth: bool, holds: bool) -> Any:
    """``value is truth``, or ``is not`` where it does not hold."""
    if isinstance(value, torch.SymBool) or _is_truth(value):
        return value if truth is holds else negated(value)
    return (value is truth) is holds


def alike(one: Any, other: Any, holds: bool) -> Any:
    """``x.shape == y.shape``, or ``!=``: Python would ask size by size, and take the answers of the sample."""
    shapes = isinstance(one, tuple) and isinstance(other, tuple) and len(one) == len(other)
    if not shapes:
        return one == other if holds else one != other
    found = both(*(functools.partial(operator.eq, *pair) for pair in zip(one, other, strict=True)))
    return found if holds else negated(found)


def among(value: Any, items: Any, holds: bool) -> Any:
    """``size in (1, 3)``, or ``not in``; Python would take the answer of the sample."""
    sizes = isinstance(value, torch.SymInt) and type(items) in (list, tuple)
    if not sizes or not all(isinstance(each, int | torch.SymInt) for each in items):
        return (value in items) is holds
    found = either(*(functools.partial(operator.eq, value, each) for each in items)) if items else False
    return found if holds else negated(found)


def _is_truth(value: Any) -> bool:
    """Whether it stands for what Python read of a tensor."""
    return isinstance(value, FakeTensor) and value.dim() == 0 and value.dtype is torch.bool


def negated(value: Any) -> Any:
    """``not``."""
    value = settled(value)
    if isinstance(value, torch.Tensor):
        return torch.logical_not(value)
    return torch.sym_not(value) if isinstance(value, torch.SymBool) else not value
