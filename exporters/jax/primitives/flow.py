"""Branches and loops: If, Loop and Scan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from entrepot.exporters.jax.dims import stated
from entrepot.exporters.jax.keys import is_key
from entrepot.exporters.jax.lowering import Lowering
from entrepot.exporters.jax.primitives.arithmetic import chosen_in
from entrepot.exporters.jax.primitives.shapes import backwards
from entrepot.exporters.jax.step import Step, kind_of
from entrepot.exporters.jax.table import Pair, complex_rule, rule
from entrepot.exporters.truth import any_of


@complex_rule("cond")
@rule("cond")
def cond(step: Step, which: Any, *operands: Any) -> list[Any]:
    """If, or several of them for more than two branches."""
    branches = step.params["branches"]
    if len(branches) == 1:
        return step.lowering.inline(branches[0], operands)
    return _branched(step, step.lowering, which, 0, branches, operands)


def _branched(step: Step, lowering: Lowering, which: ir.Value, first: int, branches: Any, operands: Any) -> list[Any]:
    """The branches from one on."""
    if len(branches) == 1:
        return lowering.inline(branches[0], operands)
    build = lowering.build
    is_other = build.op("Greater", build.cast(which, np.int32), first)
    bodies = []
    for rest in (branches[:1], branches[1:]):
        inner = lowering.body("branch")
        bodies.append(inner.build.graph(_flat(_branched(step, inner, which, first + 1, rest, operands))))
    made = build.op(
        "If", is_other, outputs=max(1, len(bodies[0].outputs)), then_branch=bodies[1], else_branch=bodies[0]
    )
    return _gathered(step.outs, _listed(made))


@complex_rule("while")
@rule("while")
def while_(step: Step, *operands: Any) -> list[Any]:
    """Loop, as long as the condition holds for what it carries; one for each element of a batch holds for itself."""
    test, body = step.params["cond_jaxpr"], step.params["body_jaxpr"]
    at = step.params["cond_nconsts"]
    to = at + step.params["body_nconsts"]
    for_test, for_body, carried = operands[:at], operands[at:to], operands[to:]
    rank = len(test.out_avals[0].shape)
    begins = _any(step.lowering, step.lowering.inline(test, [*for_test, *carried])[0], rank)
    inner = step.lowering.body("loop")
    inner.build.input("iteration", np.int64, [])
    inner.build.input("going", np.bool_, [])
    places = _inputs(inner, step.outs, "carried")
    results = inner.inline(body, [*for_body, *places])
    if rank:
        (holds,) = _flat(inner.inline(test, [*for_test, *places]))
        results = [_chosen(inner, holds, rank, *each) for each in zip(step.outs, results, places, strict=True)]
    goes = _any(inner, inner.inline(test, [*for_test, *results])[0], rank)
    graph = inner.build.graph([goes, *_flat(results)])
    made = step.op("Loop", None, begins, *_flat(carried), outputs=len(_flat(carried)), body=graph)
    return _gathered(step.outs, _listed(made))


def _any(lowering: Lowering, holds: Any, rank: int) -> ir.Value:
    if not rank:
        result: ir.Value = holds
        return result
    return any_of(lowering.build, holds)


def _chosen(lowering: Lowering, holds: ir.Value, rank: int, aval: Any, new: Any, old: Any) -> Any:
    """What the elements of a batch carry: those that are done stay as they are."""
    if isinstance(new, Pair):
        return Pair(*(_chosen(lowering, holds, rank, aval, *each) for each in zip(new, old, strict=True)))
    more = [*range(rank, len(aval.shape))]
    each = lowering.build.op("Unsqueeze", holds, more) if more else holds
    return chosen_in(lowering.build, each, new, old)


@complex_rule("scan")
@rule("scan")
def scan(step: Step, *operands: Any) -> list[Any]:
    """Scan, or Loop where there is nothing to go through."""
    at = step.params["num_consts"]
    to = at + step.params["num_carry"]
    consts, carried, each = operands[:at], operands[at:to], operands[to:]
    build = _scanned if each else _counted
    return build(step, consts, carried, each)


def _scanned(step: Step, consts: Sequence[Any], carried: Sequence[Any], each: Sequence[Any]) -> list[Any]:
    program, count = step.params["jaxpr"], len(carried)
    inner = step.lowering.body("scan")
    places = _inputs(inner, step.outs[:count], "carried")
    items = _inputs(inner, [var.aval for var in program.jaxpr.invars[len(consts) + count :]], "item")
    results = inner.inline(program, [*consts, *places, *items])
    states, inputs = _flat(carried), _flat(each)
    graph = inner.build.graph(_flat(results))
    made_items, backward = len(_flat(results[count:])), int(step.params["reverse"])
    made = step.op(
        "Scan", *states, *inputs, outputs=len(states) + made_items, body=graph, num_scan_inputs=len(inputs),
        scan_input_directions=[1] * len(inputs) if backward else None,
        scan_output_directions=[1] * made_items if backward and made_items else None,
    )  # fmt: skip
    return _gathered(step.outs, _listed(made))


def _counted(step: Step, consts: Sequence[Any], carried: Sequence[Any], each: Sequence[Any]) -> list[Any]:
    program, count = step.params["jaxpr"], len(carried)
    inner = step.lowering.body("loop")
    inner.build.input("iteration", np.int64, [])
    going = inner.build.input("going", np.bool_, [])
    results = inner.inline(program, [*consts, *_inputs(inner, step.outs[:count], "carried")])
    graph = inner.build.graph([going, *_flat(results)])
    length = step.sizes.value(step.params["length"])
    made = _listed(step.op("Loop", length, None, *_flat(carried), outputs=len(graph.outputs) - 1, body=graph))
    if step.params["reverse"]:
        made[len(_flat(carried)) :] = [backwards(step, item, [0]) for item in made[len(_flat(carried)) :]]
    return _gathered(step.outs, made)


@rule("custom_linear_solve")
def custom_linear_solve(step: Step, *operands: Any) -> list[Any]:
    """The given way to solve."""
    lengths = step.params["const_lengths"]
    start = lengths.matvec + lengths.vecmat
    solve = step.params["jaxprs"].solve
    return step.lowering.inline(
        solve, [*operands[start : start + lengths.solve], *operands[start + lengths.solve + lengths.transpose_solve :]]
    )


def _inputs(lowering: Lowering, avals: Sequence[Any], name: str) -> list[Any]:
    """Inputs of a body; a complex one is two."""
    found: list[Any] = []
    for at, aval in enumerate(avals):
        shape = stated(aval.shape)
        if is_key(aval):
            found.append(lowering.build.input(f"{name}_{at}", np.uint64, shape))
        elif np.dtype(aval.dtype).kind == "c":
            real = np.empty(0, aval.dtype).real.dtype
            found.append(Pair(*(lowering.build.input(f"{name}_{at}_{part}", real, shape) for part in ("re", "im"))))
        else:
            found.append(lowering.build.input(f"{name}_{at}", kind_of(aval.dtype), shape))
    return found


def _flat(values: Sequence[Any]) -> list[ir.Value]:
    return [part for value in values for part in (value if isinstance(value, Pair) else [value])]


def _gathered(avals: Sequence[Any], values: Sequence[ir.Value]) -> list[Any]:
    """Values as operands again: two for each complex one."""
    rest = iter(values)
    return [
        Pair(next(rest), next(rest)) if not is_key(aval) and np.dtype(aval.dtype).kind == "c" else next(rest)
        for aval in avals
    ]


def _listed(made: Any) -> list[ir.Value]:
    return list(made) if isinstance(made, tuple) else [made]
