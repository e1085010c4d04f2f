"""How a forward calls the parts of its module: one by one, or a run of a list of layers as a loop."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from entrepot.importers.torch.modules.part import Part, Run
from entrepot.importers.torch.modules.state import State
from entrepot.importers.torch.text.sizes import Sizes, is_number
from entrepot.runtime.planning.plan import Value

if TYPE_CHECKING:
    from entrepot.importers.torch.text.writer import ModuleWriter


def write_part(writer: ModuleWriter, part: Part) -> None:
    """A call of one part."""
    call = f"{writer.place(part.path)}({', '.join(_passed(writer, [part], part.inputs))})"
    writer.line(f"{', '.join(writer.write(value) for value in part.outputs)} = {call}")


def _passed(writer: ModuleWriter, parts: Sequence[Part], inputs: Sequence[Value]) -> list[str]:
    """What parts are called with; numbers are passed as such, and those that are known are not."""
    own = {text: dim for dim, text in writer.dimensions.symbols.items()}
    sizes = {value: writer.sizes[value] for value in inputs if value in writer.sizes}
    named = {value: _named_dims(known, own) for value, known in sizes.items()}
    writer.given.update(dict.fromkeys(parts, named))
    dims = [_dims_of([value for value in part.inputs if value not in sizes]) for part in parts]
    there = set.intersection(*dims) if dims else set()
    texts = []
    for value in inputs:
        known = sizes.get(value)
        if known is None:
            texts.append(writer.read(value))
        elif known.items is None or not all(is_number(i) or dim_of(i) in there for i in named[value].items or ()):
            texts.append(known.items[0] if known.items is not None and len(known.items) == 1 else str(known))
    return texts


def write_run(writer: ModuleWriter, run: Run) -> None:
    """Calls of the items of a list, one after another."""
    parts = list(_parts(run, writer.state))
    given, *others = _passed(writer, parts, run.inputs)
    target = writer.write(run.outputs[0])
    node = writer.state.tree.find(run.path)
    if run.whole and not others and node is not None and run.path != writer.part.path:
        node.chained = True
        writer.line(f"{target} = {writer.place(run.path)}({given})")
        return
    writer.line(f"{target} = {given}")
    with writer.indented(f"for block in {_blocks(writer, run)}:"):
        writer.line(f"{target} = block({', '.join([target, *others])})")


def _blocks(writer: ModuleWriter, run: Run) -> str:
    """The list of layers that run, or the part of it that does."""
    place = writer.place(run.path)
    if run.whole:
        return place
    if run.path == writer.part.path:
        place = f"list({place})"  # a slice of a list of layers is made by its class, which may be this one
    return f"{place}[{run.first or ''}:{run.first + len(run.items)}]"


def is_chain(writer: ModuleWriter) -> bool:
    """Whether the module is a list that runs its items one after another, and does nothing else."""
    run = writer.part.items[0] if len(writer.part.items) == 1 else None
    if not isinstance(run, Run) or run.path != writer.part.path or not run.whole:
        return False
    return writer.part.inputs == run.inputs[:1] and writer.part.outputs == run.outputs and len(run.inputs) == 1


def _parts(run: Run, state: State) -> Iterator[Part]:
    """The parts that a run calls; lists in it run one after another, too."""
    for item in run.items:
        if isinstance(item, Part):
            yield item
        elif isinstance(item, Run):
            state.tree.at(item.path).chained = True
            yield from _parts(item, state)


def _named_dims(sizes: Sizes, own: Mapping[str, str]) -> Sizes:
    """Numbers in which variables for sizes have the sizes' names, marked."""
    items = sizes.items
    return sizes if items is None else replace(sizes, items=tuple(f"<{own[i]}>" if i in own else i for i in items))


def dim_of(item: str) -> str:
    """The name in a marked item."""
    return item[1:-1] if item.startswith("<") else ""


def _dims_of(values: Sequence[Value]) -> set[str]:
    shapes = [value.type.shape for value in values if value.type is not None and value.type.shape is not None]
    return {dim for shape in shapes for dim in shape if isinstance(dim, str)}
