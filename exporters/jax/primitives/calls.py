"""Primitives that call a program: it is written in their place."""

from __future__ import annotations

from typing import Any

import numpy as np

from entrepot.exporters.jax.step import Step
from entrepot.exporters.jax.table import complex_rule, rule

_CALLS = (
    *("jit", "pjit", "closed_call", "core_call", "call", "composite", "xla_call", "core_closed_call"),
    *("custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr", "custom_vmap_call", "custom_lin"),
    *("checkpoint", "remat", "remat2", "remat_opt"),
)
_PROGRAMS = ("jaxpr", "call_jaxpr", "fun_jaxpr", "call")


@rule("platform_index")
def platform_index(step: Step) -> Any:
    """Which of several ways is for the processor that results are compared on."""
    names = step.params["platforms"]
    at = next(at for at, each in enumerate(names) if each is None or "cpu" in each)
    return step.build.constant(np.array(at, np.int32))


@complex_rule(*_CALLS)
@rule(*_CALLS)
def called(step: Step, *operands: Any) -> list[Any]:
    """The program's results; how it is differentiated or mapped is left out."""
    program = next(step.params[name] for name in _PROGRAMS if name in step.params)
    if hasattr(program, "consts"):
        return step.lowering.inline(program, operands)
    return step.lowering.run(program, [], operands)
