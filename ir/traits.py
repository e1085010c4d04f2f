"""What an operator is, whatever version of it and whoever computes it: the one table.

Passes, the memory plan, the proof and the host lane all ask here, instead of each keeping a list of names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cache

import onnx_ir as ir

from entrepot.ir.contributed.table import find, rounds
from entrepot.ir.opset.schemas import canonical, schema
from entrepot.ir.table import OpKey


class Cost(IntEnum):
    """How the work of an operator grows, cheapest first."""

    FREE = 0
    """Types and shapes are looked at, elements are not."""
    COPY = 1
    """Elements are moved, at most once each."""
    ELEMENT = 2
    """A few operations per element, reductions along an axis included."""
    SORT = 3
    """Elements are compared with each other, or searched for."""
    PRODUCT = 4
    """Sums of products: each element takes part in many."""
    UNKNOWN = 5
    """It holds graphs, or the standard does not define it."""


@dataclass(frozen=True)
class Traits:
    """What may be assumed about an operator.

    Attributes:
        cost: How its work grows.
        elementwise: An element of its result depends on the elements at that place alone, operands broadcast.
        broadcasts: All its operands take each other's sizes, as in NumPy (from opset 8 on).
        moves: Its result is made of elements of its inputs, unchanged, or looks at none of them.
        chooses: Which of two equal elements comes first may show in its result.
        rounds: Its result is on few steps, so that the last bit of an operand may decide about a whole one.
        random: Its result may differ from run to run.
        control_flow: It runs graphs that it holds.
        grows: Its result may be far larger than its inputs.
        fresh: Its result is never an operand, nor a view of one, whoever computes it; all others may alias.
        host: Inputs whose values decide a shape, an axis, a length or which way to go, by names of the schema: known
            on the host before anything is computed.
        unread: Inputs of which the type and shape matter and the elements do not, by the same names.
    """

    cost: Cost
    elementwise: bool = False
    broadcasts: bool = False
    moves: bool = False
    chooses: bool = False
    rounds: bool = False
    random: bool = False
    control_flow: bool = False
    grows: bool = False
    fresh: bool = False
    host: frozenset[str] = frozenset()
    unread: frozenset[str] = frozenset()

    @property
    def repeats(self) -> bool:
        """Whether its results are the same wherever its inputs are: what may be folded, merged or computed elsewhere.

        Of control flow this depends on the graphs that a node holds.
        """
        return not (self.random or self.control_flow)


SPELLED = Traits(Cost.PRODUCT, grows=True)
"""What is assumed of an operator that is spelled out in those of the standard."""

UNKNOWN = Traits(Cost.UNKNOWN, random=True, grows=True)
"""What is assumed of an operator that the standard does not define: the worst."""

_ELEMENTWISE = """
Abs Acos Acosh Add And Asin Asinh Atan Atanh BitCast BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Cast CastLike
Ceil Celu Clip Cos Cosh Div Elu Equal Erf Exp Floor Gelu Greater GreaterOrEqual HardSigmoid HardSwish IsInf IsNaN
LeakyRelu Less LessOrEqual Log Max Mean Min Mish Mod Mul Neg Not Or PRelu Pow Reciprocal RegexFullMatch Relu Round Selu
Shrink Sigmoid Sign Sin Sinh Softplus Softsign Sqrt StringConcat Sub Sum SwiGLU Swish Tan Tanh ThresholdedRelu Where Xor
"""
_BROADCASTING = """
Add And BitShift BitwiseAnd BitwiseOr BitwiseXor Div Equal Greater GreaterOrEqual Less LessOrEqual Max Mean Min Mod Mul
Or Pow Sub Sum Where Xor
"""
_VIEWS = "Flatten Identity Reshape Squeeze Transpose Unsqueeze"
_MOVING = """
CenterCropPad Compress Concat ConcatFromSequence DepthToSpace Expand Gather GatherElements GatherND
ReverseSequence Slice SpaceToDepth Split SplitToSequence TensorScatter Tile Trilu
"""
_SCATTERING = "Scatter ScatterElements ScatterND"
_MADE = "Constant ConstantOfShape EyeLike Shape Size"
_CONTAINERS = """
Optional OptionalGetElement OptionalHasElement SequenceAt SequenceConstruct SequenceEmpty SequenceErase SequenceInsert
SequenceLength
"""
_RANDOM = """
Bernoulli Dropout Multinomial RandomNormal RandomNormalLike RandomUniform RandomUniformLike
"""
_SORTING = "ArgMax ArgMin Hardmax NonMaxSuppression TopK Unique"
_PRODUCTS = """
Attention CausalConvWithState Conv ConvInteger ConvTranspose DFT DeformConv Det Einsum GRU Gemm LSTM LinearAttention
MatMul MatMulInteger QLinearConv QLinearMatMul RNN STFT
"""
_SUMS = """
AffineGrid AveragePool BatchNormalization BlackmanWindow Col2Im CumProd CumSum DequantizeLinear DynamicQuantizeLinear
GlobalAveragePool GlobalLpPool GlobalMaxPool GridSample GroupNormalization HammingWindow HannWindow ImageDecoder
InstanceNormalization LRN LayerNormalization LogSoftmax LpNormalization LpPool MaxPool MaxRoiPool MaxUnpool
MeanVarianceNormalization MelWeightMatrix NegativeLogLikelihoodLoss NonZero OneHot Pad QuantizeLinear RMSNormalization
ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare
Resize RoiAlign RotaryEmbedding Softmax SoftmaxCrossEntropyLoss StringNormalizer StringSplit
TfIdfVectorizer Upsample
"""
_GRAPHS = "If Loop Scan SequenceMap"
_ML_CHOOSING = "LinearClassifier SVMClassifier TreeEnsembleClassifier"
_ML = """
ArrayFeatureExtractor Binarizer CastMap CategoryMapper DictVectorizer FeatureVectorizer Imputer LabelEncoder
LinearRegressor Normalizer OneHotEncoder SVMRegressor Scaler TreeEnsemble TreeEnsembleRegressor ZipMap
"""

_FRESH = """
Add Sub Mul Div Pow Neg Abs Sqrt Reciprocal Exp Log Erf Sin Cos Tanh Sigmoid Relu Gelu Swish HardSwish HardSigmoid
Softplus MatMul Gemm Conv ConvTranspose Softmax LogSoftmax LayerNormalization RMSNormalization InstanceNormalization
GroupNormalization
"""
_ROUNDING = "DynamicQuantizeLinear QLinearConv QLinearMatMul QuantizeLinear"
_GROWING = "CenterCropPad ConstantOfShape Expand EyeLike OneHot Pad Range Resize Tile Upsample"

_HOST = {
    "AffineGrid": "size",
    "BlackmanWindow": "size",
    "CenterCropPad": "shape",
    "Col2Im": "image_shape block_shape",
    "ConstantOfShape": "input",
    "CumProd": "axis",
    "CumSum": "axis",
    "DFT": "dft_length axis",
    "Dropout": "ratio training_mode",
    "Expand": "shape",
    "GRU": "sequence_lens",
    "HammingWindow": "size",
    "HannWindow": "size",
    "If": "cond",
    "LSTM": "sequence_lens",
    "Loop": "M cond",
    "MaxUnpool": "output_shape",
    "MelWeightMatrix": "num_mel_bins dft_length sample_rate lower_edge_hertz upper_edge_hertz",
    "NonMaxSuppression": "max_output_boxes_per_class iou_threshold score_threshold",
    "OneHot": "depth",
    "Pad": "pads axes",
    "RNN": "sequence_lens",
    "Range": "start limit delta",
    "Reshape": "shape",
    "Resize": "roi scales sizes",
    "ReverseSequence": "sequence_lens",
    "STFT": "frame_step frame_length",
    "SequenceAt": "position",
    "SequenceErase": "position",
    "SequenceInsert": "position",
    "Slice": "starts ends axes steps",
    "Split": "split",
    "SplitToSequence": "split",
    "Squeeze": "axes",
    "Tile": "repeats tiles axis",
    "TopK": "K",
    "Trilu": "k",
    "Unsqueeze": "axes",
    "Upsample": "scales",
    **{name: "axes" for name in _SUMS.split() if name.startswith("Reduce")},
}
_UNREAD = {
    "CastLike": "target_type",
    "EyeLike": "input",
    "OptionalHasElement": "input",
    "RandomNormalLike": "input",
    "RandomUniformLike": "input",
    "SequenceLength": "input_sequence",
    "Shape": "data",
    "Size": "data",
}


def _rows() -> Iterable[tuple[str, str, Traits]]:
    yield "", _ELEMENTWISE, Traits(Cost.ELEMENT, elementwise=True)
    yield "", _VIEWS, Traits(Cost.FREE, moves=True)
    yield "", _MOVING, Traits(Cost.COPY, moves=True)
    yield "", _SCATTERING, Traits(Cost.COPY)
    yield "", "Range", Traits(Cost.COPY)
    yield "", _MADE, Traits(Cost.FREE, moves=True)
    yield "", _CONTAINERS, Traits(Cost.FREE, moves=True)
    yield "", _RANDOM, Traits(Cost.ELEMENT, random=True)
    yield "", _SORTING, Traits(Cost.SORT, chooses=True)
    yield "", _PRODUCTS, Traits(Cost.PRODUCT)
    yield "", _SUMS, Traits(Cost.ELEMENT)
    yield "", _GRAPHS, Traits(Cost.UNKNOWN, control_flow=True)
    yield "ai.onnx.ml", _ML_CHOOSING, Traits(Cost.PRODUCT, chooses=True)
    yield "ai.onnx.ml", _ML, Traits(Cost.ELEMENT)
    yield "ai.onnx.preview", "FlexAttention", Traits(Cost.PRODUCT)
    yield "ai.onnx.preview.training", "Adagrad Adam Momentum", replace(Traits(Cost.ELEMENT), host=frozenset({"R", "T"}))
    yield "ai.onnx.preview.training", "Gradient", Traits(Cost.UNKNOWN)


def _table() -> Mapping[tuple[str, str], Traits]:
    fresh, growing, rounding = _FRESH.split(), _GROWING.split(), _ROUNDING.split()
    broadcasting = _BROADCASTING.split()
    found: dict[tuple[str, str], Traits] = {}
    for domain, names, traits in _rows():
        for name in names.split():
            assert (domain, name) not in found, f"two rows for {domain}::{name}"
            found[domain, name] = traits
            if not domain:
                found[domain, name] = replace(
                    traits, fresh=name in fresh, grows=name in growing, rounds=name in rounding,
                    broadcasts=name in broadcasting,
                    host=frozenset(_HOST.get(name, "").split()), unread=frozenset(_UNREAD.get(name, "").split()),
                )  # fmt: skip
    return found


TRAITS: Mapping[tuple[str, str], Traits] = _table()
"""(domain, operator) to what it is; the empty domain is ai.onnx."""


@cache
def traits(domain: str, op_type: str) -> Traits:
    """What an operator is; ``UNKNOWN`` for one that the standard does not define and nobody spells out."""
    known = TRAITS.get((canonical(domain), op_type))
    if known is not None:
        return known
    spelling = find(domain, op_type)
    return UNKNOWN if spelling is None else replace(SPELLED, rounds=rounds(spelling))


def traits_of(node: ir.Node) -> Traits:
    """What the operator of a node is."""
    return traits(node.domain, node.op_type)


@cache
def host_operands(key: OpKey) -> frozenset[int]:
    """Positions of the inputs that must be known on the host, at this version of the operator."""
    return _positions(key, traits(key.domain, key.op_type).host)


@cache
def runs_on_host(key: OpKey) -> bool:
    """Whether an operator has nothing to do on a device: an input that is always text, or none but host operands."""
    if (canonical(key.domain), key.op_type) not in TRAITS:
        return False
    formal = schema(canonical(key.domain), key.op_type, key.since).inputs
    texts = any(set(each.types) == {"tensor(string)"} for each in formal)
    return texts or (bool(formal) and len(host_operands(key)) == len(formal))


@cache
def unread_operands(key: OpKey) -> frozenset[int]:
    """Positions of the inputs whose elements are not looked at, at this version of the operator."""
    return _positions(key, traits(key.domain, key.op_type).unread)


def _positions(key: OpKey, names: frozenset[str]) -> frozenset[int]:
    if not names:
        return frozenset()
    formal = schema(canonical(key.domain), key.op_type, key.since).inputs
    return frozenset(position for position, each in enumerate(formal) if each.name in names)
