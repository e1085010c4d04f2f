"""What became of every node of the main graph, read from the steps that do its work."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import onnx_ir as ir

from entrepot.runtime.planning.plan import Block, Step

_WHERE = {"fused": "fused into {}", "absorbed": "absorbed into {}", "merged": "merged with {}"}
"""How a node ended up in another node's step, in words."""


@dataclass
class _Fate:
    """What is found about one node.

    Attributes:
        kinds: Where the kernel of each of its own steps was found.
        companions: Nodes whose work these steps do as well.
        elsewhere: What other steps do of its work.
    """

    kinds: list[str] = field(default_factory=list)
    companions: list[str] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)


def became(nodes: ir.GraphView, block: Block, settled: Mapping[ir.Node, str]) -> dict[ir.Node, str]:
    """What became of each node.

    Args:
        nodes: A part of the main graph.
        block: Its steps, bound to kernels.
        settled: What became of nodes that need no step.

    Returns:
        ``native``, ``prepared``, ``shared``, ``control flow`` or ``body of 3 steps``, followed by ``with 'relu'`` where
        it does other nodes' work; ``fused into 'conv'``, ``absorbed into 'conv'``, ``merged with 'shape'``; what
        ``settled`` says; ``dropped`` if nothing reads what it would compute.
    """
    fates = {node: _Fate() for node in nodes}
    for step in block.steps:
        _note(step, fates)
    return {node: _told(fate, settled.get(node, "")) for node, fate in fates.items()}


def _note(step: Step, fates: Mapping[ir.Node, _Fate]) -> None:
    own = next((node for node, how in step.computes.items() if not how), None)
    if own is None:
        return
    for node, how in step.computes.items():
        if how:
            fates[node].elsewhere.append(_WHERE[how].format(_name(own)))
    fates[own].kinds.append("control flow" if step.call is None else step.call.kind)
    fates[own].companions += [_name(node) for node, how in step.computes.items() if how in ("fused", "absorbed")]


def _told(fate: _Fate, settled: str) -> str:
    parts = list(dict.fromkeys(fate.elsewhere))
    if fate.kinds:
        how = fate.kinds[0] if len(fate.kinds) == 1 else f"body of {len(fate.kinds)} steps"
        how = f"{how} with {', '.join(dict.fromkeys(fate.companions))}" if fate.companions else how
        parts.insert(0, f"{settled}: {how}" if settled.endswith("taken") else how)
    return "; ".join(parts) or settled or "dropped"


def _name(node: ir.Node) -> str:
    return f"'{node.name or next((output.name for output in node.outputs if output.name), '')}'"
