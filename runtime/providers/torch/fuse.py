"""What one kernel of torch does at once on the host: a product or convolution by constant weights with what follows."""

from __future__ import annotations

import math

import onnx_ir as ir

from entrepot.runtime import attention_pattern, fuse
from entrepot.runtime.binding import view
from entrepot.runtime.chains import after_conv, after_matmul, as_one, checked
from entrepot.runtime.fuse import Neighbours
from entrepot.runtime.plan import Step, Value


def _fuse_conv(graph: Neighbours, conv: Step) -> None:
    """Conv, then Add of a tensor of its result's shape, then an activation; each of the two may be missing."""
    from entrepot.runtime.providers.torch.packed import convolved, following
    from entrepot.runtime.providers.torch.upstream import NONE

    chain = after_conv(graph, conv, lambda step: following(step) is not None)
    unary = NONE if chain.activation is None else following(chain.activation)
    added = chain.residual is not None
    function = None if unary is None else convolved(view(conv), unary, with_residual=added)
    if function is not None:
        inputs = [*conv.inputs, *[None] * (3 - len(conv.inputs)), *([chain.residual] if added else [])]
        kind = "packed" if len(chain.steps) == 1 else "fused"
        graph.replace(chain.steps, as_one(chain.steps, inputs, checked(function) if added else function, kind))


def _fuse_matmul(graph: Neighbours, product: Step) -> None:
    """MatMul by a constant matrix, then Add of a constant row, then an activation."""
    from entrepot.runtime.providers.torch.packed import following, multiplied
    from entrepot.runtime.providers.torch.upstream import NONE

    weight = product.inputs[1]
    if weight is None or weight.constant is None:
        return
    chain = after_matmul(graph, product, lambda step: following(step) is not None)
    steps, bias, unary = [product], None, NONE
    if chain is not None and chain.bias is not None:
        steps, bias = chain.steps[:2], chain.bias
        if chain.activation is not None:
            steps, unary = chain.steps, following(chain.activation) or NONE
    row = None if bias is None else bias.constant
    function = multiplied(view(product).inputs[0], weight.constant, row, unary, rows=_rows(product.inputs[0]))
    if function is not None:
        inputs = [product.inputs[0], weight, *([] if bias is None else [bias])]
        graph.replace(steps, as_one(steps, inputs, function, "packed" if len(steps) == 1 else "fused"))


def _fuse_gemm(graph: Neighbours, gemm: Step) -> None:
    """Gemm by a constant matrix and row, then an activation."""
    from entrepot.runtime.providers.torch.packed import following, multiplied
    from entrepot.runtime.providers.torch.upstream import NONE

    weight, bias = (*gemm.inputs, None)[1:3]
    given = gemm.attributes
    if weight is None or weight.constant is None or (bias is not None and bias.constant is None):
        return
    if given.get("alpha", 1.0) != 1.0 or given.get("beta", 1.0) != 1.0 or given.get("transA", 0):
        return
    matrix = weight.constant.T if given.get("transB", 0) else weight.constant
    after = graph.only_reader(gemm)
    unary = None if after is None else following(after)
    steps = [gemm] if after is None or unary is None else [gemm, after]
    row = None if bias is None else bias.constant
    function = multiplied(view(gemm).inputs[0], matrix, row, unary or NONE, rows=_rows(gemm.inputs[0]))
    if function is not None:
        kind = "packed" if len(steps) == 1 else "fused"
        graph.replace(steps, as_one(steps, list(gemm.inputs), function, kind))


def _fuse_attention(graph: Neighbours, softmax: Step) -> None:
    """Attention of float32 that was spelled out, by torch's own kernel."""
    from entrepot.runtime.providers.torch.packed import attended

    found = attention_pattern.find(graph, softmax)
    kinds = set() if found is None else {None if each.type is None else each.type.dtype for each in found.inputs}
    if found is not None and kinds == {ir.DataType.FLOAT}:
        function = attended(found.scale, transposed=found.transposed)
        graph.replace(found.steps, as_one(found.steps, list(found.inputs), function))


def _rows(value: Value | None) -> int | None:
    """Rows of an operand as a matrix, if its shape is declared."""
    shape = None if value is None or value.type is None else value.type.shape
    if not shape or not all(isinstance(dim, int) for dim in shape):
        return None
    return math.prod(int(dim) for dim in shape[:-1] if dim is not None)


RULES: fuse.Rules = {
    **fuse.RULES,
    "Conv": (_fuse_conv,),
    "Gemm": (_fuse_gemm,),
    "MatMul": (_fuse_matmul,),
    "Softmax": (_fuse_attention,),
}
"""What is tried on steps of each operator."""
