"""A stretch of steps that becomes a module with a forward of its own; runs of such modules become loops."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TypeAlias

from entrepot.importers.torch.modules.scopes import Path
from entrepot.importers.torch.modules.state import State
from entrepot.runtime.planning.plan import Step, Value


@dataclass(eq=False)
class Part:
    """Steps of one module.

    Attributes:
        path: Where the module is.
        items: What it does, in order.
        inputs: What it is called with.
        outputs: What it returns.
    """

    path: Path
    items: list[Item]
    inputs: list[Value] = field(default_factory=list)
    outputs: list[Value] = field(default_factory=list)

    def uses(self) -> Iterator[Value]:
        """What it reads."""
        return iter(self.inputs)


@dataclass(eq=False)
class Run:
    """Items of a list, each of which takes what the one before it made.

    Attributes:
        path: Where the list is.
        first: The first item's index.
        items: The calls.
        shared: What every item takes besides.
        whole: Whether they are all that is in the list.
    """

    path: Path
    first: int
    items: list[Item]
    inputs: list[Value]
    outputs: list[Value]
    whole: bool = False

    def uses(self) -> Iterator[Value]:
        """What it reads."""
        return iter(self.inputs)


Item: TypeAlias = "Step | Part | Run"


def made_by(item: Item) -> list[Value]:
    """What an item produces."""
    return [value for value in item.outputs if value is not None]


def outlined(state: State, items: list[Item], path: Path, wanted: Sequence[Value | None]) -> list[Item]:
    """The same steps, of which those of modules further down became parts."""
    items = list(items)
    seen: set[Path] = set()
    pending = _below(state, items, path)
    while pending:
        place = pending.pop(0)
        if place in seen:
            continue
        seen.add(place)
        members = [item for item in items if scope(state, item)[: len(place)] == place]
        if len(members) < 2:
            continue
        node = state.tree.find(place)
        numbered = node is not None and bool(node.children) and node.is_numbered and not node.held
        if (
            numbered
            or all(_is_item(state, item, place) for item in members)
            or (node is not None and node.layer is not None)
            or not _is_convex(items, members)
        ):
            pending = [*_below(state, members, place), *pending]
            continue
        outside = {value for item in items if item not in set(members) for value in item.uses()}
        outside.update(value for value in wanted if value is not None)
        part = _part(state, members, place, outside)
        if not part.outputs:
            continue
        state.tree.at(place).part = part
        items = _with(items, part, members)
    return _runs(state, items, path, wanted)


def scope(state: State, item: Item) -> Path:
    """The module that an item belongs to."""
    return state.scopes[item] if isinstance(item, Step) else item.path


def _is_item(state: State, item: Item, place: Path) -> bool:
    """Whether it belongs to an item of the list that is at a place."""
    below = scope(state, item)[len(place) :]
    return bool(below) and below[0].isdecimal()


def _below(state: State, items: Sequence[Item], path: Path) -> list[Path]:
    found = [scope(state, item)[: len(path) + 1] for item in items if len(scope(state, item)) > len(path)]
    return [place for place in dict.fromkeys(found) if place[: len(path)] == path]


def _part(state: State, members: list[Item], path: Path, outside: set[Value]) -> Part:
    made = {value for item in members for value in made_by(item)}
    outputs = [value for item in members for value in made_by(item) if value in outside]
    items = outlined(state, members, path, outputs)
    inputs: dict[Value, None] = {}
    for item in items:
        for value in item.uses():
            if value not in made and _enters(state, value, path):
                inputs[value] = None
    return Part(path, items, list(inputs), outputs)


def _enters(state: State, value: Value, path: Path) -> bool:
    """Whether a value has to be passed to a module: it is computed, or kept elsewhere."""
    if value.constant is None:
        return True
    held = state.held.get(value)
    return held is not None and held[0][: len(path)] != path


def _is_convex(items: Sequence[Item], members: Sequence[Item]) -> bool:
    """Whether nothing that the members make comes back to them by way of other items."""
    inside, tainted = set(members), set[Value]()
    made = {value for item in members for value in made_by(item)}
    for item in items:
        reads = set(item.uses())
        if item in inside:
            if reads & tainted:
                return False
        elif reads & (made | tainted):
            tainted.update(made_by(item))
    return True


def ordered(items: list[Item]) -> list[Item]:
    """Items in an order in which they can run, otherwise as they are."""
    waiting = {value for item in items for value in made_by(item)}
    left, result = list(items), []
    while left:
        later = []
        for item in left:
            if any(value in waiting for value in item.uses()):
                later.append(item)
            else:
                result.append(item)
                waiting.difference_update(made_by(item))
        assert len(later) < len(left), "items wait for one another"
        left = later
    return result


def _runs(state: State, items: list[Item], path: Path, wanted: Sequence[Value | None]) -> list[Item]:
    """The items, of which those of one list that follow each other became runs; lists in lists first."""
    depth = max((len(scope(state, item)) for item in items), default=0)
    for length in range(depth, len(path), -1):  # the list may be the module itself
        lists: dict[Path, dict[int, list[Item]]] = {}
        for item in items:
            place = _place(state, item)
            if place is None or len(place) != length or not place[-1].isdecimal():
                continue
            if (above := state.tree.find(place[:-1])) is not None and above.is_indexed:
                lists.setdefault(place[:-1], {}).setdefault(int(place[-1]), []).append(item)
        for place, found in lists.items():
            items = _of_list(state, items, place, found, wanted)
    return items


def _of_list(
    state: State, items: list[Item], place: Path, found: dict[int, list[Item]], wanted: Sequence[Value | None]
) -> list[Item]:
    alone = {at: calls[0] for at, calls in found.items() if len(calls) == 1}
    node = state.tree.find(place)
    there = sorted(map(int, node.children)) if node is not None else []
    for stretch in _stretches(alone, there):
        run = _run(state, items, place, stretch, wanted)
        if run is not None:
            items = _with(items, run, run.items)
    return items


def _with(items: list[Item], one: Item, members: Sequence[Item]) -> list[Item]:
    """One item in the place of several."""
    inside = set(members)
    return ordered(
        [one if item is members[-1] else item for item in items if item is members[-1] or item not in inside]
    )


def _place(state: State, item: Item) -> Path | None:
    """The module that a call is of."""
    if isinstance(item, Step):
        found = state.layers.get(item)
        return found[1] if found is not None and found[0].is_plain else None
    return item.path if isinstance(item, Part) or (item.whole and len(item.inputs) == 1) else None


def _stretches(calls: dict[int, Item], there: list[int]) -> Iterator[list[tuple[int, Item]]]:
    """Calls whose numbers and values follow each other, as long as possible."""
    stretch: list[tuple[int, Item]] = []
    after = dict(pairwise(there))
    for at in sorted(calls):
        if stretch and (at != after.get(stretch[-1][0]) or not _follows(stretch[-1][1], calls[at])):
            yield stretch
            stretch = []
        stretch.append((at, calls[at]))
    if stretch:  # each call may be one of several of its layer
        yield stretch


def main(item: Item) -> tuple[Value | None, list[Value]]:
    """What an item transforms, and what it takes besides."""
    if isinstance(item, Step):
        position = 1 if item.is_a("Gather") else 0
        return item.inputs[position], []
    inputs = list(item.uses())
    return (inputs[0] if inputs else None), inputs[1:]


def _follows(before: Item, after: Item) -> bool:
    (given, others), made = main(after), before.outputs
    if len(made) != 1 or given is not made[0] or len(after.outputs) != 1 or made[0] in others:
        return False
    return others == main(before)[1]


def _run(
    state: State, items: list[Item], path: Path, stretch: list[tuple[int, Item]], wanted: Sequence[Value | None]
) -> Run | None:
    calls = [item for _, item in stretch]
    inner = {value for item in calls[:-1] for value in made_by(item)}
    outside = [value for item in items if item not in set(calls) for value in item.uses()]
    node = state.tree.find(path)
    if (len(calls) < 2 and (node is None or len(node.children) > 1)) or inner & {
        *outside,
        *(value for value in wanted if value is not None),
    }:
        return None
    if not _is_convex(items, calls):
        return None
    given, others = main(calls[0])
    if node is None or given is None or len(calls[-1].outputs) != 1:
        return None
    whole = len(node.children) == len(calls)
    if len(calls) == 1 and others:
        return None
    if not whole and [at for at, _ in stretch] != list(range(stretch[0][0], stretch[0][0] + len(calls))):
        return None
    return Run(path, stretch[0][0], calls, [given, *others], made_by(calls[-1]), whole)
