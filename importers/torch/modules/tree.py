"""The modules of a model by their paths: layers, parts with a forward of their own, lists, and what they hold."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from torch import nn

from entrepot.importers.torch.layers.layer import Array, Layer
from entrepot.importers.torch.modules.scopes import Path

if TYPE_CHECKING:
    from entrepot.importers.torch.modules.part import Part

_MOST = 4096
"""Items of a list; an index beyond is no index."""


@dataclass(eq=False)
class Held:
    """A tensor of a module that is no layer.

    Attributes:
        array: Its values.
        is_buffer: Whether it is not trained.
        source: The name of the weight that it was.
        is_saved: Whether it is in the module's ``state_dict``.
        is_written: Whether the text has its values: what is not saved, and small.
    """

    array: Array
    is_buffer: bool
    source: str = ""
    is_saved: bool = True
    is_written: bool = False


@dataclass(eq=False)
class Node:
    """A place in the tree.

    Attributes:
        name: Its name in the place above.
        children: The places below, in the order in which they are first used.
        layer: The layer that is here.
        held: Tensors that are here.
        part: What computes here.
        chained: Whether it is a list that runs its items one after another.
    """

    name: str = ""
    children: dict[str, Node] = field(default_factory=dict)
    layer: Layer | None = None
    held: dict[str, Held] = field(default_factory=dict)
    part: Part | None = None
    chained: bool = False

    @property
    def is_list(self) -> bool:
        """Whether it is nothing but a list of what is below."""
        return self.is_indexed and self.part is None

    @property
    def is_indexed(self) -> bool:
        """Whether what is below it is reached by numbers."""
        return bool(self.children) and not self.held and self.layer is None and self.is_numbered

    @property
    def is_numbered(self) -> bool:
        """Whether all that is below it has numbers for names."""
        return all(name.isdecimal() and name == str(int(name)) and int(name) < _MOST for name in self.children)

    def entries(self) -> list[tuple[str, Node | Held]]:
        """What is right below it: places, then tensors."""
        return [*self.children.items(), *self.held.items()]

    def at(self, path: Path) -> Node:
        """The place at a path below, made if it is not there."""
        node = self
        for name in path:
            if name not in node.children:
                node.children[name] = Node(name)
            node = node.children[name]
        return node

    def find(self, path: Path) -> Node | None:
        """The place at a path below."""
        node: Node | None = self
        for name in path:
            node = None if node is None else node.children.get(name)
        return node

    def is_under_layer(self, path: Path) -> bool:
        """Whether a place is inside a layer that is no module by itself, which has no room for others."""
        return any(
            (node := self.find(path[:end])) is not None and node.layer is not None for end in range(1, len(path))
        )

    def walk(self, path: Path = ()) -> Iterator[tuple[Path, Node]]:
        """Every place below, and this one."""
        yield path, self
        for name, child in self.children.items():
            yield from child.walk((*path, name))


_TAKEN = frozenset(dir(nn.Module()))
"""What ``nn.Module`` uses itself, ``_modules`` and the like included, which only its instances have."""


def place(path: Iterable[str]) -> Path:
    """Names of modules, one below another, which torch lets hold what no attribute may, as ``block-1`` or ``3x3``.

    Not keywords, which torch.export (2.13) writes after a dot.
    """
    return tuple(name if _MODULE.fullmatch(name) and name not in _RESERVED else attribute(name) for name in path)


_MODULE = re.compile(r"(?!__)[A-Za-z0-9_][A-Za-z0-9_ -]*")
_RESERVED = _TAKEN | set(keyword.kwlist)


def attribute(name: str) -> str:
    """A name as an attribute of a module; numbers, which lists have, stay."""
    clean = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_") if not name.isidentifier() else name
    clean = clean or "value"
    if clean.isdecimal():
        return str(int(clean)) if int(clean) < _MOST else f"item_{clean}"
    if clean[0].isdigit():
        clean = f"item_{clean}"
    if not clean.isascii() or keyword.iskeyword(clean) or clean in _TAKEN or clean.startswith("__"):
        clean = re.sub(r"[^\w]|[^\x00-\x7f]", "_", clean, flags=re.ASCII).strip("_") + "_"
    return clean


def reference(root: Node, path: Path, start: str = "self") -> str:
    """The expression for a place below another."""
    text, node = start, root
    for name in path:
        text += f"[{name}]" if node.is_indexed else member(name)
        node = node.children.get(name, Node())
    return text


def member(name: str) -> str:
    """What follows a module for one that is right below it by a name; a number among names is no attribute."""
    return f".{name}" if is_attribute(name) else f'.get_submodule("{name}")'


def is_attribute(name: str) -> bool:
    """Whether a name can follow a dot."""
    return name.isidentifier() and not keyword.iskeyword(name)
