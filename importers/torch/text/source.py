"""The whole file of a model: imports, functions, classes, and the state that goes with it."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

import entrepot
from entrepot.importers.torch.beside.needs import OWN, Helpers
from entrepot.importers.torch.layers.layer import Array
from entrepot.importers.torch.modules.classes import Classes, Made
from entrepot.importers.torch.modules.part import Part, outlined
from entrepot.importers.torch.modules.places import settled
from entrepot.importers.torch.modules.state import State
from entrepot.importers.torch.modules.tree import Held, reference
from entrepot.importers.torch.steps.planning import planned
from entrepot.importers.torch.text.control import FORMS, SUPPORT
from entrepot.importers.torch.text.sizes import Sizes
from entrepot.importers.torch.text.writer import ModuleWriter
from entrepot.ir.limits import Limits
from entrepot.ir.model import Model
from entrepot.ir.printable import counted, printable
from entrepot.runtime.emitting.layout import wrapped
from entrepot.runtime.emitting.names import Names
from entrepot.runtime.planning.plan import Value

WIDTH = 88
_LARGE = 1024
"""Elements; two matrices of so many that are equal are one, tied."""


def _is_named(source: str) -> bool:
    """Whether a weight has the name of a parameter of a module."""
    return "." in source and "::" not in source


@dataclass(frozen=True)
class Text:
    """A model written out.

    Attributes:
        module: The whole file.
        name: The class in it.
        tensors: What it holds, by the names of ``state_dict``.
        ties: Names of tensors that are another one: the other's name.
        written: Names of tensors that are in the text, and in no state.
        beside: Names of tensors that are in no state, and too large for the text.
        inputs: What its forward takes, by the names of the graph.
    """

    module: str
    name: str
    tensors: dict[str, Array]
    ties: dict[str, str]
    written: frozenset[str]
    beside: frozenset[str]
    inputs: tuple[str, ...]


def written(model: Model, limits: Limits) -> Text:
    """A model as a file of Python over torch.

    Raises:
        UnsupportedOpError: Nodes have neither a word nor a meaning; all of them are named.
        ConversionError: The model cannot be brought to the hub's opset.
    """
    state = settled(planned(model, limits))
    block = state.plan.block
    items = outlined(state, list(block.steps), (), block.outputs)
    root = Part((), items, list(block.inputs), list(block.outputs))  # type: ignore[arg-type]
    state.tree.part = root
    return _Drawing(state, root, limits).text(model)


class _Drawing:
    def __init__(self, state: State, root: Part, limits: Limits) -> None:
        self.state, self.root, self.helpers = state, root, Helpers(limits)
        self._sizes: dict[Part, dict[Value, Sizes]] = {root: {}}
        self._forwards: dict[Part, list[str]] = {}
        self._generic: dict[Part, str] = {}
        self._stems: dict[Part, list[str]] = {}
        self._draw(root)

    def _writer(self, part: Part, inputs: Sequence[str] | None) -> ModuleWriter:
        writer = ModuleWriter(self.state, part, SUPPORT, FORMS, self.helpers, plain=part is not self.root)
        writer.enter(self._sizes[part], inputs)
        return writer

    def _draw(self, part: Part) -> None:
        """The forward of a part, and of those that it calls."""
        count = len(part.inputs)
        generic = self._writer(part, [f"x{at or ''}" for at in range(count)])
        self._generic[part] = "\n".join(generic.forward())
        writer = self._writer(part, None)
        self._stems[part] = [writer.stem(value) for value in part.inputs]
        self._forwards[part] = writer.forward()
        for inner, sizes in writer.given.items():
            self._sizes[inner] = sizes
            self._draw(inner)

    def text(self, model: Model) -> Text:
        """Everything put together."""
        names = Names((*OWN, *self.helpers.reserved, "load", "Path", "load_file", "load_model"))
        classes = Classes(self.state.tree, lambda part: self._generic[part], names)
        root_name = _root_name(model)
        found = classes.settle(root_name)
        ties = self._ties()
        lines: list[str] = []
        for made in found:
            told = [f"{left} = {right}" for left, right in self._tied(ties)] if () in made.paths else []
            lines += ["", "", f"class {made.name}({classes.base(made)}):"]
            lines += self._docstring(model) if () in made.paths else []
            lines += classes.constructor(made, told)
            forward = self._forward(made) if made.nodes[0].part and not made.nodes[0].chained else []
            lines += ["", *(f"    {line}" if line else "" for line in forward)] if forward else []
        name = next(made.name for made in found if () in made.paths)
        in_text = self._named(lambda held: held.is_written)
        beside = self._named(lambda held: not (held.is_saved or held.is_written))
        lines += ["", "", *_loading(name, bool(beside)).split("\n")]
        body = [*(line for text in self.helpers.texts() for line in ("", "", *text.split("\n"))), *lines]
        head = _head(model, name, body, len(self.state.plan.block.steps), list(self.helpers.bundle.imports))
        module = "\n".join([*head, *body]) + "\n"
        inputs = tuple(value.name for value in self.root.inputs)
        return Text(module, name, self._tensors(), ties, in_text, beside, inputs)

    def _forward(self, made: Made) -> list[str]:
        parts = [node.part for node in made.nodes if node.part is not None]
        stems = [self._stems[part] for part in parts]
        if len(parts) == 1 or all(each == stems[0] for each in stems):
            same = len(parts) == 1 or len({"\n".join(self._forwards[part]) for part in parts}) == 1
            if same:
                return self._forwards[parts[0]]
        names = [column[0] if len(set(column)) == 1 else "x" if at == 0 else f"x{at}"
                 for at, column in enumerate(zip(*stems, strict=True))]  # fmt: skip
        return self._writer(parts[0], names).forward()

    def _tensors(self) -> dict[str, Array]:
        found: dict[str, Array] = {}
        for path, node in self.state.tree.walk():
            held = {} if node.layer is None else node.layer.tensors
            held = {**held, **{name: each.array for name, each in node.held.items()}}
            found.update({".".join([*path, name]): array for name, array in held.items()})
        return found

    def _named(self, which: Callable[[Held], bool]) -> frozenset[str]:
        places = self.state.tree.walk()
        return frozenset(".".join([*path, name]) for path, node in places for name, held in node.held.items()
                         if which(held))  # fmt: skip

    def _ties(self) -> dict[str, str]:
        """Matrices that are one weight of the file, or a large one and a copy without a name of its own."""
        first: dict[tuple[object, ...], list[tuple[str, str]]] = {}
        ties: dict[str, str] = {}
        sources = self._sources()
        for name, array in self._tensors().items():
            if array.ndim < 2:
                continue
            key = (array.shape, str(array.dtype), hash(np.ascontiguousarray(array).tobytes()))
            for other, source in first.setdefault(key, []):
                anonymous = array.size >= _LARGE and not (_is_named(source) and _is_named(sources[name]))
                if source == sources[name] or anonymous:
                    ties[name] = other
                    break
            else:
                first[key].append((name, sources[name]))
        return ties

    def _sources(self) -> dict[str, str]:
        """For each tensor the weight of the file that it was."""
        found: dict[str, str] = {}
        for path, node in self.state.tree.walk():
            layer = node.layer
            for name in () if layer is None else layer.tensors:
                found[".".join([*path, name])] = self.state.named(layer.source) if layer is not None else ""
            found.update({".".join([*path, name]): held.source for name, held in node.held.items()})
        return found

    def _tied(self, ties: dict[str, str]) -> list[tuple[str, str]]:
        def spelled(name: str) -> str:
            path, _, leaf = name.rpartition(".")
            return f"{reference(self.state.tree, tuple(filter(None, path.split('.'))))}.{leaf}"

        return [(spelled(name), spelled(other)) for name, other in ties.items()]

    def _docstring(self, model: Model) -> list[str]:
        lines = [f'    """{_told(model.ir.graph.name or "the model")}', ""]
        lines += [f"    in   {line}" for line in _families(map(_told, model.inputs))]
        return [*lines, *(f"    out  {line}" for line in _families(map(_told, model.outputs))), '    """', ""]


def _told(what: object) -> str:
    return printable(str(what)).replace("\n", " ").replace("\\", "/").replace('"', "'")


def _families(lines: Iterable[str]) -> list[str]:
    """Lines, those in one that differ in the number of a layer alone, and count on: ``past.0 to 11.keys``."""
    found: dict[str, list[tuple[int, str]]] = {}
    for line in lines:
        parts = _NUMBERED.fullmatch(line)
        family, number = (f"{parts[1]}#{parts[3]}", int(parts[2])) if parts else (line, 0)
        found.setdefault(family, []).append((number, line))
    told = []
    for family, members in found.items():
        numbers = [number for number, _ in members]
        counts_on = len(numbers) > 1 and numbers == [*range(numbers[0], numbers[0] + len(numbers))]
        whole = family.replace("#", f"{numbers[0]} to {numbers[-1]}", 1)
        told += [whole] if counts_on else [line for _, line in members]
    return told


_NUMBERED = re.compile(r"([^:#]*?[._])(\d+)((?=[._:])[^#]*)")


def _loading(name: str, more: bool) -> str:
    buffers = """
    buffers = load_file(Path(__file__).with_name("buffers.safetensors"))
    for name, values in buffers.items():
        model.get_buffer(name).copy_(values)"""
    return f'''def load(path=None):
    """The model with its weights, which are beside this file if no path is given."""
    model = {name}()
    load_model(model, path or Path(__file__).with_name("model.safetensors")){buffers if more else ""}
    return model.eval()'''


def _head(model: Model, name: str, body: Sequence[str], steps: int, more: Sequence[str]) -> list[str]:
    text = "\n".join(body)
    used = {line for word, line in _IMPORTS if re.search(rf"\b{word}\.", text)} | {*_ALWAYS, *more}
    loads = "load_file, load_model" if "load_file(" in text else "load_model"
    used.add(f"from safetensors.torch import {loads}")
    near = _sorted(line for line in used if line.split()[1].split(".")[0] in sys.stdlib_module_names)
    plain = _sorted(used - {*near})
    title = f"{printable(name)}: {counted(steps, 'step')} over torch, written by entrepot {entrepot.__version__}."
    ahead = ["from __future__ import annotations", ""] if more else []
    return [*wrapped(f'"""{title}"""', WIDTH), "", *ahead, *near, *([""] if near else []), *plain]


def _sorted(lines: Iterable[str]) -> list[str]:
    """Imports as formatters have them: those of modules first."""
    return sorted(lines, key=lambda line: (not line.startswith("import "), line))


_ALWAYS = ("from pathlib import Path", "from torch import nn")
_IMPORTS = (
    ("math", "import math"),
    ("np", "import numpy as np"),
    ("torch", "import torch"),
    ("F", "import torch.nn.functional as F"),
)


def _root_name(model: Model) -> str:
    kind = model.metadata.get("entrepot.class", "").rpartition(":")[2].rpartition(".")[2]
    name = kind or model.ir.graph.name or ""
    parts = [part for part in re.split(r"\W+|_", name, flags=re.ASCII) if part]
    camel = "".join(part[0].upper() + part[1:] for part in parts)
    return camel if camel and camel[0].isalpha() and camel not in ("Module", "Main_graph", "MainGraph") else "Network"
