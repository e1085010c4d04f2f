"""What one NumPy kernel does at once: a product or convolution with what follows it.

Where a rule cannot bind its kernel, nothing changes.
"""

from __future__ import annotations

from entrepot.runtime.binding import view
from entrepot.runtime.planning import fuse
from entrepot.runtime.planning.chains import after_conv, after_matmul, as_one, checked
from entrepot.runtime.planning.fuse import Neighbours
from entrepot.runtime.planning.plan import Step
from entrepot.runtime.providers.cpu import epilogues
from entrepot.runtime.providers.cpu.linear import linear
from entrepot.runtime.providers.cpu.prepared.conv import conv_with
from entrepot.runtime.providers.cpu.prepared.matmul import gemm_with


def _works_in_place(step: Step) -> bool:
    return epilogues.activation(step) is not None


def _activation(step: Step | None) -> epilogues.Activation | None:
    return None if step is None else epilogues.activation(step)


def _fuse_conv(graph: Neighbours, conv: Step) -> None:
    """Conv, then Add of a tensor of its result's shape, then an activation; each of the two may be missing."""
    chain = after_conv(graph, conv, _works_in_place)
    if len(chain.steps) == 1:
        return
    added = chain.residual is not None
    function = conv_with(view(conv), epilogues.of_tile(added, _activation(chain.activation)))
    if function is None:
        return
    inputs = [*conv.inputs, *[None] * (3 - len(conv.inputs)), *([chain.residual] if added else [])]
    graph.replace(chain.steps, as_one(chain.steps, inputs, checked(function) if added else function))


def _fuse_gemm(graph: Neighbours, gemm: Step) -> None:
    """Gemm with constant weights, then an activation."""
    after = graph.only_reader(gemm)
    activation = _activation(after)
    if after is None or activation is None:
        return
    function = gemm_with(view(gemm), activation, epilogues.floor(after))
    if function is not None:
        graph.replace([gemm, after], as_one([gemm, after], list(gemm.inputs), function))


def _fuse_matmul(graph: Neighbours, product: Step) -> None:
    """MatMul by a constant matrix, then Add of a constant row, then an activation or Add of a like tensor."""
    chain = after_matmul(graph, product, _works_in_place)
    if chain is None or chain.bias is None:
        return
    weight = product.inputs[1]
    assert weight is not None
    function = linear(weight.constant, chain.bias.constant, _activation(chain.activation))
    if function is not None:
        inputs = [product.inputs[0], weight, chain.bias, *([] if chain.residual is None else [chain.residual])]
        graph.replace(chain.steps, as_one(chain.steps, inputs, function))


RULES: fuse.Rules = {**fuse.RULES, "Conv": (_fuse_conv,), "Gemm": (_fuse_gemm,), "MatMul": (_fuse_matmul,)}
"""What is tried on steps of each operator."""
