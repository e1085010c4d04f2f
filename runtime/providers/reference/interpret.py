"""Steps one after the other: the plain meaning of a plan, which the generated source must agree with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import repeat
from typing import Any, TypeAlias

from entrepot.ir.errors import ExecutionError
from entrepot.runtime.arrays import array_of
from entrepot.runtime.emitting.writer import Support
from entrepot.runtime.planning.plan import Block, Step, Value, as_tuple, last_uses

Observer: TypeAlias = Callable[[str, Any], None]
"""Told the name and value of every result, in subgraphs too."""


class Interpreter:
    """Runs a block, in any number of threads at once; what one run computes is kept by that run alone.

    Args:
        block: Steps bound to kernels.
        support: What control flow needs of arrays.
    """

    def __init__(self, block: Block, support: Support) -> None:
        self._block = block
        self._support = support
        self._dying = last_uses(block)

    def run(self, observe: Observer | None, *inputs: Any) -> tuple[Any, ...]:
        """The block's outputs for its inputs, both in order."""
        return tuple(_Run(self._support, observe, self._block, self._dying).block(self._block, inputs))


def located(error: BaseException) -> str:
    """The node that was running when an interpreter raised an error: the innermost, in a body that one of a loop."""
    found, trace = "", error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code is _Run.block.__code__ and "step" in trace.tb_frame.f_locals:
            found = trace.tb_frame.f_locals["step"].where
        trace = trace.tb_next
    return found


class _Run:
    """One run, with its values."""

    def __init__(self, support: Support, observe: Observer | None, main: Block, dying: list[list[Value]]) -> None:
        self._support = support
        self._observe = observe
        self._main = main
        self._dying = dying
        self._values: dict[Value, Any] = {}

    def block(self, block: Block, inputs: Sequence[Any]) -> list[Any]:
        """The outputs of the main block, or of one within it."""
        self._values.update(zip(block.inputs, inputs, strict=True))
        dying = self._dying if block is self._main else repeat(())
        for step, dead in zip(block.steps, dying, strict=False):
            results = self._apply(step)
            for value, result in zip(step.outputs, results, strict=False):
                if value is not None:
                    self._values[value] = self._checked(step, value, result)
                    if self._observe is not None:
                        self._observe(value.name, self._values[value])
            for value in dead:
                self._values.pop(value, None)
        return [self._read(value) for value in block.outputs]

    def _read(self, value: Value | None) -> Any:
        if value is None or value.constant is not None:
            return None if value is None else value.constant
        return self._values[value]

    def _apply(self, step: Step) -> Sequence[Any]:
        inputs = [self._read(value) for value in step.inputs]
        if step.blocks:
            return _FORMS[step.op_type](self, step, inputs)
        assert step.call is not None, step.where
        return as_tuple(step.call(*inputs))

    def _checked(self, step: Step, value: Value, result: Any) -> Any:
        """Results are arrays of exactly the element type that the schema says."""
        if isinstance(result, list) or result is None:
            return result
        array = array_of(result)
        known = None if value.type is None or value.type.kind != "tensor" else value.type.numpy
        if known is not None and array.dtype != known:
            raise ExecutionError(f"produced {array.dtype} where {known} is expected", node=step.where, value=value.name)
        return array

    def _if(self, step: Step, inputs: list[Any]) -> list[Any]:
        branch = "then_branch" if self._support.truth(inputs[0]) else "else_branch"
        return self.block(step.blocks[branch], ())

    def _loop(self, step: Step, inputs: list[Any]) -> list[Any]:
        body = step.blocks["body"]
        states = len(body.inputs) - 2
        inputs = inputs + [None] * (2 + states - len(inputs))
        going_on = self._support.true if inputs[1] is None else inputs[1]
        carried = inputs[2:]
        collected: list[list[Any]] = [[] for _ in body.outputs[1 + states :]]
        for trip in self._support.trips(inputs[0]):
            if not self._support.truth(going_on):
                break
            results = self.block(body, [self._support.number(trip), going_on, *carried])
            going_on, carried = results[0], results[1 : 1 + states]
            for items, result in zip(collected, results[1 + states :], strict=True):
                items.append(result)
        kinds = [None if value is None else value.type for value in body.outputs[1 + states :]]
        return [*carried, *(self._support.stack(items, 0, kind) for items, kind in zip(collected, kinds, strict=True))]

    def _scan(self, step: Step, inputs: list[Any]) -> list[Any]:
        body, given = step.blocks["body"], step.attributes
        scanned = int(given["num_scan_inputs"])
        carried, arrays = inputs[: len(inputs) - scanned], inputs[len(inputs) - scanned :]
        states, made = len(carried), body.outputs[len(carried) :]
        axes = given.get("scan_input_axes") or [0] * scanned
        backwards = given.get("scan_input_directions") or [0] * scanned
        collected: list[list[Any]] = [[] for _ in made]
        size = self._support.length(*(item for pair in zip(arrays, axes, strict=True) for item in pair))
        for trip in self._support.trips(size):
            slices = [
                self._support.pick(array, size - 1 - trip if back else trip, axis)
                for array, axis, back in zip(arrays, axes, backwards, strict=True)
            ]
            results = self.block(body, [*carried, *slices])
            carried = results[:states]
            for items, result in zip(collected, results[states:], strict=True):
                items.append(result)
        out_axes = given.get("scan_output_axes") or [0] * len(made)
        out_backwards = given.get("scan_output_directions") or [0] * len(made)
        return carried + [
            self._support.stack(items[::-1] if back else items, axis, None if value is None else value.type)
            for items, axis, back, value in zip(collected, out_axes, out_backwards, made, strict=True)
        ]

    def _sequence_map(self, step: Step, inputs: list[Any]) -> list[Any]:
        body = step.blocks["body"]
        collected: list[list[Any]] = [[] for _ in body.outputs]
        for trip in self._support.trips(len(inputs[0])):
            members = [item[trip] if isinstance(item, list) else item for item in inputs]
            for items, result in zip(collected, self.block(body, members), strict=True):
                items.append(result)
        return collected


_FORMS: dict[str, Callable[[_Run, Step, list[Any]], Sequence[Any]]] = {
    "If": _Run._if,  # noqa: SLF001 - the class's own dispatch
    "Loop": _Run._loop,  # noqa: SLF001
    "Scan": _Run._scan,  # noqa: SLF001
    "SequenceMap": _Run._sequence_map,  # noqa: SLF001
}
