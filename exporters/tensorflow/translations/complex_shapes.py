"""What moves complex numbers about, or adds them up: the real rule, for each part."""

from __future__ import annotations

from typing import Any

from entrepot.exporters.building import Builder
from entrepot.exporters.tensorflow.node import Node
from entrepot.exporters.tensorflow.sizes import scalar
from entrepot.exporters.tensorflow.table import rules, translates
from entrepot.exporters.tensorflow.translations.complex_numbers import pair_of, parts_of

_LINEAR = """
    BatchToSpaceND BroadcastTo Concat ConcatV2 Cumsum Diag DiagPart DynamicStitch ExpandDims Fill Gather GatherNd
    GatherV2 MatrixBandPart MatrixDiag MatrixDiagPart MatrixDiagPartV2 MatrixDiagPartV3 MatrixDiagV2 MatrixDiagV3
    MatrixSetDiag MatrixSetDiagV2 MatrixSetDiagV3 Mean MirrorPad Pack Pad PadV2 Reshape Reverse ReverseSequence
    ReverseV2 Roll ScatterNd SegmentSum Select SelectV2 Slice SpaceToBatchND Split SplitV Squeeze StridedSlice Sum
    TensorScatterAdd TensorScatterSub TensorScatterUpdate Tile Transpose Unpack UnsortedSegmentSum ZerosLike
"""


def _entered(name: str) -> None:
    @translates(name, pairs=True)
    def translate(node: Node, build: Builder, *values: Any) -> Any:
        return by_parts(node, build, *values)


for _name in _LINEAR.split():
    _entered(_name)


def by_parts(node: Node, build: Builder, *values: Any) -> Any:
    """The real translation, applied to the real and to the imaginary parts."""
    plain = rules()[node.op].function
    split = [parts_of(build, each) if node.dtype(at).kind == "c" else None for at, each in enumerate(values)]
    found = []
    for part in (0, 1):
        operands = [own if pair is None else pair[part].value for own, pair in zip(values, split, strict=True)]
        result = plain(node, build, *operands)
        found.append(result if isinstance(result, tuple | list) else (result,))
    return tuple(pair_of(build, real, imaginary) for real, imaginary in zip(*found, strict=True))


@translates("ConjugateTranspose", pairs=True)
def conjugate_transpose(node: Node, build: Builder, x: Any, order: Any) -> Any:
    """The axes in another order, and conjugate."""
    real, imaginary = parts_of(build, x)
    plain = rules()["Transpose"].function
    return pair_of(build, plain(node, build, real.value, order), plain(node, build, (-imaginary).value, order))


@translates("Shape", "Size", "Rank", pairs=True)
def measured(node: Node, build: Builder, x: Any) -> Any:
    """As if there were no pairs."""
    if node.op == "Shape":
        return build.cast(build.shape(x, 0, -1), node["out_type"])
    real = parts_of(build, x)[0].value
    if node.op == "Size":
        return build.cast(build.op("Size", real), node["out_type"])
    return build.cast(scalar(build, build.op("Shape", build.op("Shape", real))), node.result_dtype())
