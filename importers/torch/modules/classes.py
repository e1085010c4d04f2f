"""Parts that are alike become one class: what differs between them are arguments."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx_ir as ir

from entrepot.importers.torch.dtypes import NAMES
from entrepot.importers.torch.layers.layer import Layer
from entrepot.importers.torch.modules.part import Part
from entrepot.importers.torch.modules.tree import Held, Node, is_attribute
from entrepot.importers.torch.text.sizes import literal
from entrepot.runtime.emitting.layout import wrapped
from entrepot.runtime.emitting.names import Names

WIDTH = 88

Draw = Callable[[Part, Sequence[str] | None], list[str]]
"""The text of a part's forward, with names for its inputs or those of its values."""


@dataclass(eq=False)
class Made:
    """A class, and the places that it stands for."""

    key: Any
    nodes: list[Node] = field(default_factory=list)
    paths: list[tuple[str, ...]] = field(default_factory=list)
    slots: list[list[tuple[str, str]]] = field(default_factory=list)
    name: str = ""
    parameters: dict[str, int] = field(default_factory=dict)
    """Argument to the first slot that it fills."""
    filled: dict[int, str] = field(default_factory=dict)
    """Slot to the argument that fills it."""


class Classes:
    """All classes of one file.

    Args:
        root: The whole tree.
        generic: The text of a part's forward that is the same for all that do the same.
        taken: Names that are taken.
    """

    def __init__(self, root: Node, generic: Callable[[Part], str], taken: Names) -> None:
        self._generic = generic
        self._names = taken
        self._by_key: dict[Any, Made] = {}
        self.of: dict[Node, Made] = {}
        self._collect(root, ())

    def _collect(self, node: Node, path: tuple[str, ...]) -> tuple[Any, list[tuple[str, str]]]:
        """A class for a place, after those below it."""
        keys, slots = [], []
        for name, child in node.entries():
            key, found = self._entry(child, (*path, name))
            keys.append((name, key))
            slots += found
        key = (None if node.part is None else self._generic(node.part), node.chained, tuple(keys))
        made = self._by_key.setdefault(key, Made(key))
        made.nodes.append(node)
        made.paths.append(path)
        made.slots.append(slots)
        self.of[node] = made
        return made, slots

    def _entry(self, child: Node | Held, path: tuple[str, ...]) -> tuple[Any, list[tuple[str, str]]]:
        if isinstance(child, Held):
            kind = str(child.array.dtype)
            if child.is_written:
                return ("written", kind), [("values", _values(child))]
            return ("held", kind, child.is_buffer, child.is_saved, child.array.ndim), [
                ("size", str(size)) for size in child.array.shape
            ]
        if child.layer is not None:
            arguments = child.layer.arguments
            shown = tuple((each.name, each.keyword) for each in arguments)
            return ("layer", child.layer.kind, shown), [(each.name, each.text) for each in arguments]
        if child.is_list:
            pairs = [self._entry(item, (*path, name)) for name, item in child.children.items()]
            names = tuple(child.children)
            return ("list", child.chained, names, tuple(key for key, _ in pairs)), [
                s for _, found in pairs for s in found
            ]
        made, slots = self._collect(child, path)
        return ("class", id(made)), slots

    def settle(self, root_name: str) -> list[Made]:
        """Give every class a name and its arguments; classes in the order in which they are defined."""
        found = list(self._by_key.values())
        for made in found:
            is_root = () in made.paths
            made.name = self._fresh(root_name if is_root else _class_name(made.paths[0]))
            columns = list(zip(*[[text for _, text in row] for row in made.slots], strict=True))
            groups: dict[tuple[str, ...], str] = {}
            taken = Names(("self", "torch", "nn"))
            for at, column in enumerate(columns):
                if len(set(column)) > 1:
                    if column not in groups:
                        groups[column] = taken.fresh(made.slots[0][at][0])
                        made.parameters[groups[column]] = at
                    made.filled[at] = groups[column]
        return found

    def _fresh(self, wanted: str) -> str:
        """A name for a class, with a number where it is taken."""
        name, number = wanted, 1
        while not self._names.claim(name):
            number += 1
            name = f"{wanted}{number}"
        return name

    def constructor(self, made: Made, ties: Sequence[str] = ()) -> list[str]:
        """The text of ``__init__``."""
        node = made.nodes[0]
        texts = [made.filled.get(at, text) for at, (_, text) in enumerate(made.slots[0])]
        slots = iter(texts)
        head = [f"    def __init__({', '.join(['self', *made.parameters])}):"]
        if node.is_indexed:
            items = self._items(node, slots)
            given = ", ".join(items) if node.chained else f"[{', '.join(items)}]"
            return [*head, *wrapped(f"        super().__init__({given})", WIDTH), *(f"        {tie}" for tie in ties)]
        own = "" if node.layer is None else ", ".join(map(str, node.layer.arguments))
        lines = [*head, f"        super().__init__({own})"]
        for name, child in node.entries():
            lines += self._line(name, child, slots)
        lines += [f"        {tie}" for tie in ties]
        return [each for line in lines for each in wrapped(line, WIDTH)]

    def base(self, made: Made) -> str:
        """What a class derives from: what is numbered is a list."""
        node = made.nodes[0]
        if node.layer is not None:
            return f"nn.{node.layer.kind}"
        return "nn.Module" if not node.is_indexed else "nn.Sequential" if node.chained else "nn.ModuleList"

    def _line(self, name: str, child: Node | Held, slots: Iterator[str]) -> list[str]:
        if isinstance(child, Held) and child.is_written:
            return [f'        self.register_buffer("{name}", {next(slots)}, persistent=False)']
        if isinstance(child, Held):
            return [f"        {_tensor(f'self.{name}', child, slots, name)}"]
        made = self._expression(child, slots)
        return [f"        self.{name} = {made}" if is_attribute(name) else f'        self.add_module("{name}", {made})']

    def _expression(self, child: Node, slots: Iterator[str]) -> str:
        if child.layer is not None:
            return _layer(child.layer, slots)
        if child.is_list:
            return self._list(child, slots)
        made = self.of[child]
        given = [next(slots) for _ in made.slots[0]]
        return f"{made.name}({', '.join(given[at] for at in made.parameters.values())})"

    def _items(self, node: Node, slots: Iterator[str]) -> list[str]:
        items = {int(name): self._expression(item, slots) for name, item in node.children.items()}
        return [items.get(at, "nn.Identity()") for at in range(max(items) + 1)]

    def _list(self, child: Node, slots: Iterator[str]) -> str:
        kind = "nn.Sequential" if child.chained else "nn.ModuleList"
        texts = self._items(child, slots)
        if len(texts) > 2 and len(set(texts)) == 1:
            many = f"{texts[0]} for _ in range({len(texts)})"
            return f"{kind}(*({many}))" if child.chained else f"{kind}({many})"
        return f"{kind}({', '.join(texts)})" if child.chained else f"{kind}([{', '.join(texts)}])"


def _layer(layer: Layer, slots: Iterator[str]) -> str:
    given = [f"{each.name}={next(slots)}" if each.keyword else next(slots) for each in layer.arguments]
    return f"nn.{layer.kind}({', '.join(given)})"


def _values(held: Held) -> str:
    """A few numbers as the tensor that they are."""
    kind = ir.DataType.from_numpy(held.array.dtype)
    dtype = "" if held.array.dtype in (np.float32, np.int64, np.bool_) else f", dtype={NAMES[kind]}"
    return f"torch.tensor({_nested(held.array)}{dtype})"


def _nested(array: np.ndarray) -> str:
    return f"[{', '.join(map(_nested, array))}]" if array.ndim else literal(array[()], array.dtype)


def _tensor(target: str, held: Held, slots: Iterator[str], name: str) -> str:
    sizes = ", ".join(next(slots) for _ in held.array.shape) or "()"
    kind = ir.DataType.from_numpy(held.array.dtype)
    dtype = "" if held.array.dtype == np.float32 else f", dtype={NAMES[kind]}"
    made = f"torch.zeros({sizes}{dtype})"
    if held.is_buffer:
        return f'self.register_buffer("{name}", {made}{"" if held.is_saved else ", persistent=False"})'
    return f"{target} = nn.Parameter({made})"


def _class_name(path: tuple[str, ...]) -> str:
    words = [name for name in path if not name.isdecimal()]
    word = words[-1] if words else "block"
    if path[-1].isdecimal():
        word = word[:-1] if word.endswith("s") and not word.endswith("ss") else word
    name = "".join(part[:1].upper() + part[1:] for part in re.split(r"[\W_]+", word))
    name = f"Block{name}" if name[:1].isdigit() else name
    return name if len(name) > 1 and is_attribute(name) else "Block"
