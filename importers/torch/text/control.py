"""If, Loop, Scan and SequenceMap over tensors: Python's own, and torch's operators where a graph is captured."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

import onnx_ir as ir

from entrepot.importers.torch.beside import support
from entrepot.importers.torch.text.loops import write_steady_loop, write_steady_scan
from entrepot.runtime.emitting.emit_control import write_loop, write_scan, write_sequence_map
from entrepot.runtime.emitting.writer import Form, Support, Writer
from entrepot.runtime.planning.plan import Block, Step, Value

if TYPE_CHECKING:
    from entrepot.importers.torch.text.writer import ModuleWriter

SUPPORT = Support(
    support.truth,
    support.truth,
    support.number,
    support.trips,
    support.length,
    support.pick,
    support.stack,
    whiles=True,
)


def write_if(writer: Writer, step: Step) -> None:
    """``torch.cond`` of two functions where branches make tensors, Python's ``if`` where they make lists."""
    own = cast("ModuleWriter", writer)
    condition = step.inputs[0]
    if condition in own.sizes or not all(_is_tensor(value) for value in step.outputs if value is not None):
        _write_python(own, step)
        return
    text = own.read(condition)
    captured = _captured(own, step)
    given = [own.read(value) for value in captured]
    names = [
        _write_branch(own, step.blocks[name], captured, given, name, len(step.outputs))
        for name in ("then_branch", "else_branch")
    ]
    targets = ", ".join(own.write(value) for value in step.outputs)
    call = ", ".join([text, *names, *given])
    targets = f"({targets},)" if len(step.outputs) == 1 else targets
    own.line(f"{targets} = {own.helper('chosen')}({call})")


def _is_tensor(value: Value) -> bool:
    return value.type is not None and value.type.kind == "tensor" and value.type.dtype != ir.DataType.STRING


def _captured(writer: ModuleWriter, step: Step) -> list[Value]:
    """The tensors that branches read from around them."""
    found = [value for block in step.blocks.values() for value in block.captured()]
    return [value for value in dict.fromkeys(found) if value in writer.values and value.constant is None]


def _write_branch(
    writer: ModuleWriter, block: Block, captured: Sequence[Value], given: Sequence[str], name: str, count: int
) -> str:
    """A function of the captured tensors; its name."""
    function = writer.names.fresh(name)
    writer.gap()
    with _apart(writer), writer.indented(f"def {function}({', '.join(given)}):"):
        writer.steps(block)
        outputs = [_fresh(writer, value, block, captured) for value in block.outputs[:count]]
        writer.line(f"return ({', '.join(outputs)},)")
    writer.gap()
    return function


@contextmanager
def _apart(writer: ModuleWriter) -> Iterator[None]:
    """What is computed here is not there afterwards: it may not run."""
    values, sizes, saved = dict(writer.values), dict(writer.sizes), writer.dimensions.save()
    yield
    writer.values, writer.sizes = values, sizes
    writer.dimensions.restore(saved)


def _fresh(writer: ModuleWriter, value: Value | None, block: Block, captured: Sequence[Value]) -> str:
    """A result of a branch, which must not be what it was given."""
    text = writer.read(value)
    made = {each for step in block.steps for each in step.outputs}
    return text if value in made and text.isidentifier() else f"{text}.clone()"


def _write_python(writer: ModuleWriter, step: Step) -> None:
    condition = step.inputs[0]
    text = str(writer.sizes[condition]) if condition in writer.sizes else writer.read(condition)
    targets = [writer.names.fresh(writer.stem(value)) if value else "_" for value in step.outputs]
    for head, name in ((f"if {text}:", "then_branch"), ("else:", "else_branch")):
        with _apart(writer), writer.indented(head):
            block = step.blocks[name]
            writer.steps(block)
            sources = [writer.read(value) for value in block.outputs[: len(targets)]]
            writer.line(f"{', '.join(targets)} = {', '.join(sources)}")
    for value, target in zip(step.outputs, targets, strict=True):
        if value is not None:
            writer.values[value] = target


def _around(form: Form, steady: Callable[[ModuleWriter, Step], bool] = lambda *_: False) -> Form:
    """What is computed in a body is not there after it; a form for values of steady shapes comes first."""

    def write(writer: Writer, step: Step) -> None:
        own = cast("ModuleWriter", writer)
        sizes, saved = dict(own.sizes), own.dimensions.save()
        if not steady(own, step):
            form(writer, step)
        own.sizes = sizes
        own.dimensions.restore(saved)

    return write


FORMS: dict[str, Form] = {
    "If": write_if,
    "Loop": _around(write_loop, write_steady_loop),
    "Scan": _around(write_scan, write_steady_scan),
    "SequenceMap": _around(write_sequence_map),
}
