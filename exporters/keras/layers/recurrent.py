"""Recurrent layers: ONNX's operators where there is one, a Scan over the cell where there is none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir
from keras import tree

from entrepot.exporters.building import typed
from entrepot.exporters.keras.arrays import numpy_of
from entrepot.exporters.keras.layers.fused import fused, is_fused
from entrepot.exporters.keras.reading.step import Step, rank_of, shape_of
from entrepot.exporters.keras.reading.table import layer


@layer("LSTM", "GRU", "SimpleRNN", "RNN", "ConvLSTM1D", "ConvLSTM2D", "ConvLSTM3D")
def recurrent(step: Step, sequences: Any, initial_state: Any = None, mask: Any = None) -> Any:
    """The layer as Keras calls it: a layer that goes backwards returns its steps in the order in which it took them."""
    return run(step, step.operation, sequences, initial_state, mask, in_order=False)


def run(step: Step, rnn: Any, sequences: Any, initial_state: Any, mask: Any, *, in_order: bool) -> Any:
    """One recurrent layer.

    Args:
        step: What to write with.
        rnn: The layer.
        sequences: Its input, batch first.
        initial_state: Its state before, or ``None`` for the cell's own.
        mask: Which steps count.
        in_order: Whether the steps of a layer that goes backwards come in the order of its input.
    """
    if rnn.stateful:
        raise step.refuse("it keeps its state from call to call; export it with stateful=False")
    value = step.value(sequences, rnn.compute_dtype)
    states = _states(step, rnn, value, initial_state)
    kept = None if mask is None else step.value(tree.flatten(mask)[0], np.bool_)
    if rnn.go_backwards:
        value, kept = backwards(step, value), None if kept is None else backwards(step, kept)
    if is_fused(rnn, states, value):
        outputs, states = fused(step, rnn, value, states, kept)
    else:
        outputs, states = scan(step, rnn, value, states, kept)
    result = outputs if rnn.return_sequences else step.op("Gather", outputs, np.array(-1, np.int64), axis=1)
    if rnn.go_backwards and rnn.return_sequences and in_order:
        result = backwards(step, outputs)
    shape = shape_of(outputs)
    typed(result, outputs.dtype, shape if rnn.return_sequences else [shape[0], *shape[2:]])
    return (result, *states) if rnn.return_state else result


def backwards(step: Step, value: ir.Value) -> ir.Value:
    """The steps from the last to the first."""
    least = np.iinfo(np.int64).min
    return typed(step.op("Slice", value, [-1], [least], [1], [-1]), value.dtype, shape_of(value))


def _states(step: Step, rnn: Any, value: ir.Value, given: Any) -> list[Any]:
    """The state before the first step, as a list."""
    if given is not None:
        states = list(given) if tree.is_nested(given) else [given]
        return tree.map_structure(lambda item: step.value(item, rnn.compute_dtype), states)
    zeros = rnn.get_initial_state(1)
    return tree.map_structure(lambda item: _for_batch(step, item, value), list(zeros))


def _for_batch(step: Step, item: Any, value: ir.Value) -> ir.Value:
    """A state of one member, for each member of the batch."""
    array = numpy_of(item)
    sizes = [step.build.size(value, 0), *array.shape[1:]]
    return typed(step.op("Expand", step.value(array), step.vector(sizes)), array.dtype, [None, *array.shape[1:]])


def scan(
    step: Step, rnn: Any, value: ir.Value, states: list[Any], mask: ir.Value | None
) -> tuple[ir.Value, list[ir.Value]]:
    """Every step's output and the last state, step by step: a step that is masked keeps both."""
    flat = tree.flatten(states)
    body = step.build.body("step")
    held = [body.input(f"state_{at}", each.dtype, shape_of(each)) for at, each in enumerate(flat)]
    repeats = mask is not None and not rnn.zero_output_for_mask
    size = _output_shape(rnn, flat)
    before = body.input("output", flat[0].dtype, size) if repeats else None
    now = body.input("input", value.dtype, [shape_of(value)[0], *shape_of(value)[2:]])
    counts = None if mask is None else body.input("mask", mask.dtype, [None])
    with step.reader.inside(body):
        output, new = step.call(rnn.cell, now, tree.pack_sequence_as(states, held))
        if not tree.is_nested(new):
            new = [new]
        results = tree.flatten(new)
        if counts is not None:
            zero = step.value(0, output.dtype) if before is None else before
            results = [_chosen(step, counts, one, two) for one, two in zip(results, held, strict=True)]
            output = _chosen(step, counts, output, zero)
    first = [_zeros(step, value, size, flat[0].dtype)] if repeats else []
    made = [*results, *([output] if repeats else []), output]
    inputs = [value] if mask is None else [value, mask]
    done = step.build.op(
        "Scan", *flat, *first, *inputs, outputs=len(made), body=body.graph(made), num_scan_inputs=len(inputs),
        scan_input_axes=[1] * len(inputs), scan_output_axes=[1],
    )  # fmt: skip
    last = [typed(one, two.dtype, shape_of(two)) for one, two in zip(done, flat, strict=False)]
    shape = [size[0], shape_of(value)[1], *size[1:]]
    packed = tree.pack_sequence_as(states, last)
    return typed(done[-1], output.dtype, shape), packed


def _output_shape(rnn: Any, flat: Sequence[ir.Value]) -> list[int | None]:
    size = getattr(rnn.cell, "output_size", None)
    return [shape_of(flat[0])[0], int(size)] if isinstance(size, int) else shape_of(flat[0])


def _zeros(step: Step, value: ir.Value, shape: Sequence[int | None], dtype: Any) -> ir.Value:
    sizes = [step.build.size(value, 0), *(int(size or 1) for size in shape[1:])]
    return typed(step.op("Expand", step.value(0, dtype), step.vector(sizes)), dtype, shape)


def _chosen(step: Step, mask: ir.Value, one: ir.Value, two: ir.Value) -> ir.Value:
    wide = step.op("Unsqueeze", mask, list(range(1, rank_of(one))))
    return typed(step.op("Where", wide, one, two), one.dtype, shape_of(one))


@layer("StackedRNNCells")
def stacked(step: Step, inputs: Any, states: Any) -> Any:
    """One cell after the other."""
    after = []
    for cell, state in zip(step.operation.cells, states, strict=True):
        given = list(state) if tree.is_nested(state) else [state]
        inputs, new = step.call(cell, inputs, given)
        new = list(new) if tree.is_nested(new) else [new]
        after.append(new if tree.is_nested(state) else new[0])
    return inputs, after[0] if len(after) == 1 else after


@layer("Bidirectional")
def bidirectional(step: Step, sequences: Any, initial_state: Any = None, mask: Any = None) -> Any:
    """One layer in each direction, and their results together."""
    both = step.operation
    half = len(initial_state) // 2 if initial_state is not None else 0
    states = (None, None) if initial_state is None else (list(initial_state[:half]), list(initial_state[half:]))
    results = []
    for part, state in zip((both.forward_layer, both.backward_layer), states, strict=True):
        with step.build.module(part.name):
            results.append(run(step, part, sequences, state, mask, in_order=part is both.backward_layer))
    ends: list[Any] = []
    if both.return_state:
        ends = [*results[0][1:], *results[1][1:]]
        results = [result[0] for result in results]
    if both.return_sequences and not both.backward_layer.go_backwards:
        results[1] = backwards(step, results[1])  # which Keras does whatever the direction
    merged = _merged(step, both.merge_mode, *results)
    return (*merged, *ends) if isinstance(merged, tuple) else (merged, *ends) if ends else merged


def _merged(step: Step, mode: str | None, one: ir.Value, two: ir.Value) -> Any:
    if mode is None:
        return one, two
    if mode == "concat":
        return step.op("Concat", one, two, axis=-1)
    if mode == "mul":
        return step.op("Mul", one, two)
    total = step.op("Add", one, two)
    return step.op("Div", total, 2.0) if mode == "ave" else total


@layer("TimeDistributed")
def time_distributed(step: Step, inputs: Any, mask: Any = None) -> Any:
    """The layer on all steps of all members at once."""
    inner, value = step.operation.layer, step.value(inputs)
    batch, length, *rest = step.sizes(value)
    flat = step.reshaped(value, [-1, *rest])
    kwargs = {}
    if mask is not None and "mask" in _parameters(inner):
        kept = step.value(mask, np.bool_)
        kwargs["mask"] = step.reshaped(kept, [-1, *step.sizes(kept)[2:]])
    result = step.call(inner, flat, **kwargs)
    shape = [batch if isinstance(batch, int) else -1, length, *step.sizes(result)[1:]]
    if shape[0] == -1 and not isinstance(length, int):
        shape[0] = batch
    return step.reshaped(result, shape)


def _parameters(inner: Any) -> Any:
    from entrepot.exporters.keras.upstream import signature_of

    return signature_of(inner).parameters
