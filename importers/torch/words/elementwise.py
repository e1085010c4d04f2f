"""Operators on each element alone."""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from entrepot.importers.torch.dtypes import COMPUTED, FLOATS
from entrepot.importers.torch.op import Op
from entrepot.importers.torch.table import word

_UNARY = {
    "Abs": "torch.abs({0})",
    "Acos": "torch.acos({0})",
    "Acosh": "torch.acosh({0})",
    "Asin": "torch.asin({0})",
    "Asinh": "torch.asinh({0})",
    "Atan": "torch.atan({0})",
    "Atanh": "torch.atanh({0})",
    "BitwiseNot": "~{0}",
    "Ceil": "torch.ceil({0})",
    "Cos": "torch.cos({0})",
    "Cosh": "torch.cosh({0})",
    "Erf": "torch.erf({0})",
    "Exp": "torch.exp({0})",
    "Floor": "torch.floor({0})",
    "HardSwish": "F.hardswish({0})",
    "Identity": "{0}",
    "IsNaN": "torch.isnan({0})",
    "Log": "torch.log({0})",
    "Mish": "F.mish({0})",
    "Neg": "-{0}",
    "Not": "~{0}",
    "Reciprocal": "torch.reciprocal({0})",
    "Relu": "torch.relu({0})",
    "Round": "torch.round({0})",
    "Sigmoid": "torch.sigmoid({0})",
    "Sign": "torch.sign({0})",
    "Sin": "torch.sin({0})",
    "Sinh": "torch.sinh({0})",
    "Softsign": "F.softsign({0})",
    "Sqrt": "torch.sqrt({0})",
    "Tan": "torch.tan({0})",
    "Tanh": "torch.tanh({0})",
}

_INFIX = {
    "Add": "+",
    "Sub": "-",
    "Mul": "*",
    "And": "&",
    "Or": "|",
    "Xor": "^",
    "BitwiseAnd": "&",
    "BitwiseOr": "|",
    "BitwiseXor": "^",
    "Equal": "==",
    "Less": "<",
    "LessOrEqual": "<=",
    "Greater": ">",
    "GreaterOrEqual": ">=",
}


@word(*_UNARY)
def unary(op: Op) -> str | None:
    """A function of one tensor."""
    return _UNARY[op.step.op_type].format(op[0])


@word(*_INFIX)
def infix(op: Op) -> str | None:
    """An operator of Python; one operand may be a number."""
    return f" {_INFIX[op.step.op_type]} ".join(_operands(op))


def _operands(op: Op) -> tuple[str, str]:
    """Both operands, of which one is a tensor."""
    right = op.number(1)
    if right is not None:
        return op[0], right
    return op.either(0), op[1]


@word("Div")
def div(op: Op) -> str | None:
    """A quotient; of integers, rounded to 0, where the minimum by -1 wraps around instead of ending the process."""
    if op.made in FLOATS:
        return " / ".join(_operands(op))
    if op.made is None:
        return None
    right = op.number(1)
    if right is not None and right.isdigit() and right != "0":
        return f'torch.div({op[0]}, {right}, rounding_mode="trunc")'
    if op.made == ir.DataType.UINT8:  # to torch, 255 is -1 there
        return None
    return f"{op.writer.helper('quotient')}({op[0]}, {op[1]})"


@word("Mod")
def mod(op: Op) -> str | None:
    """A remainder with the sign of the divisor, or of the dividend with ``fmod``."""
    function = "torch.fmod" if op.attribute("fmod") else "torch.remainder"
    right = op.number(1)
    if op.made in FLOATS:
        return f"{function}({op[0]}, {op.either(1)})"
    if op.made is None:
        return None
    if right is not None and right.isdigit() and right != "0":
        return f"{function}({op[0]}, {right})"
    if op.made == ir.DataType.UINT8:
        return None
    return f"{function}({op[0]}, {op.writer.helper('divisor')}({op[1]}))"


@word("Pow")
def power(op: Op) -> str | None:
    """In the type of the base."""
    if op.dtype(0) is None or op.dtype(0) not in FLOATS or op.dtype(1) is None:
        return None
    if op.dtype(1) == op.dtype(0):
        exponent = op.number(1)
        return f"{op[0]} ** {op[1] if exponent is None else exponent}"
    return f"torch.pow({op[0]}, {op[1]}).to({op[0]}.dtype)"


@word("Max", "Min")
def extreme(op: Op) -> str | None:
    """The larger or smaller of all operands; NaN wins."""
    largest = op.step.op_type == "Max"
    text, *others = [op[position] for position in range(len(op))]
    if len(op) == 2 and op.made in FLOATS and (number := op.number(1)) is not None and "nan" not in number:
        return f"torch.clamp({text}, {'min' if largest else 'max'}={number})"
    for other in others:
        text = f"torch.{'maximum' if largest else 'minimum'}({text}, {other})"
    return text


@word("Sum", "Mean")
def summed(op: Op) -> str | None:
    """The sum of all operands, or their mean."""
    text = " + ".join(op.operands())
    if op.step.op_type == "Mean" and len(op) > 1:
        return f"({text}) / {len(op)}"
    return text


@word("Where")
def where(op: Op) -> str | None:
    """Of two values, one of which may be a number."""
    right = op.number(2)
    if right is not None and op.rank(1) is not None:
        return f"torch.where({op[0]}, {op[1]}, {right})"
    return f"torch.where({op[0]}, {op.either(1)}, {op[2]})"


@word("Cast")
def cast(op: Op) -> str | None:
    """To another type; between types that torch converts as ONNX says."""
    to = ir.DataType(op.attribute("to"))
    if not op.writer.computed_by_torch(to):
        return None
    return f"{op[0]}.to({op.dtype_text(to)})"


@word("CastLike")
def cast_like(op: Op) -> str | None:
    """To the type of another tensor."""
    return f"{op[0]}.to({op[1]}.dtype)"


@word("Clip")
def clip(op: Op) -> str | None:
    """Between two bounds, each of which may be missing."""
    bounds = [None if not op.has(at) else op.number(at) for at in (1, 2)]
    if any(bound is None and op.has(at) for at, bound in zip((1, 2), bounds, strict=True)):
        given = [f"{name}={op[at]}" for name, at in (("min", 1), ("max", 2)) if op.has(at)]
    elif bounds[0] == "0.0" and bounds[1] == "6.0":
        return f"F.relu6({op[0]})"
    else:
        given = [f"{name}={bound}" for name, bound in zip(("min", "max"), bounds, strict=True) if bound is not None]
    if not given:
        return op[0]
    return f"torch.clamp({', '.join([op[0], *given])})"


@word("Gelu")
def gelu(op: Op) -> str | None:
    """``nn.GELU``."""
    return f"F.gelu({op[0]})" if op.attribute("approximate") == "none" else f'F.gelu({op[0]}, approximate="tanh")'


@word("Swish")
def swish(op: Op) -> str | None:
    """``x * sigmoid(alpha * x)``."""
    alpha = op.attribute("alpha")
    return f"F.silu({op[0]})" if alpha == 1 else f"{op[0]} * torch.sigmoid({short(alpha)} * {op[0]})"


@word("HardSigmoid")
def hard_sigmoid(op: Op) -> str | None:
    """A straight line between 0 and 1."""
    alpha, beta = op.attribute("alpha"), op.attribute("beta")
    if math.isclose(alpha, 1 / 6, rel_tol=1e-6) and beta == 0.5:
        return f"F.hardsigmoid({op[0]})"
    return f"torch.clamp({op[0]} * {short(alpha)} + {short(beta)}, min=0.0, max=1.0)"


@word("Elu")
def elu(op: Op) -> str | None:
    """``nn.ELU``."""
    return f"F.elu({op[0]}{_unless(op.attribute('alpha'), 1.0)})"


@word("Celu")
def celu(op: Op) -> str | None:
    """``nn.CELU``."""
    return f"F.celu({op[0]}{_unless(op.attribute('alpha'), 1.0)})"


@word("LeakyRelu")
def leaky_relu(op: Op) -> str | None:
    """``nn.LeakyReLU``."""
    alpha = op.attribute("alpha")
    return f"F.leaky_relu({op[0]}{_unless(alpha, 0.01)})" if math.isfinite(alpha) else None


@word("Selu")
def selu(op: Op) -> str | None:
    """``nn.SELU``, or the same with other numbers."""
    alpha, gamma = op.attribute("alpha"), op.attribute("gamma")
    if math.isclose(alpha, 1.6732632423543772, rel_tol=1e-6) and math.isclose(gamma, 1.0507009873554805, rel_tol=1e-6):
        return f"F.selu({op[0]})"
    return f"{short(gamma)} * F.elu({op[0]}{_unless(alpha, 1.0)})"


@word("PRelu")
def prelu(op: Op) -> str | None:
    """A slope of its own below 0, where unsigned integers are not."""
    return f"torch.where({op[0]} < 0, {op[0]} * {op[1]}, {op[0]})" if op.made in COMPUTED else op[0]


@word("ThresholdedRelu")
def thresholded_relu(op: Op) -> str | None:
    """0 up to a threshold."""
    return f"torch.where({op[0]} > {short(op.attribute('alpha'))}, {op[0]}, 0.0)" if op.made in FLOATS else None


@word("Softplus")
def softplus(op: Op) -> str | None:
    """``log(1 + exp(x))``."""
    return f"F.softplus({op[0]}{', threshold=50.0' if op.made == ir.DataType.DOUBLE else ''})"


@word("IsInf")
def is_inf(op: Op) -> str | None:
    """Infinities of one sign, or of both."""
    below, above = op.attribute("detect_negative"), op.attribute("detect_positive")
    names = {(1, 1): "isinf", (1, 0): "isneginf", (0, 1): "isposinf"}
    return f"torch.{names[below, above]}({op[0]})" if (below, above) in names else None


@word("BitShift")
def bit_shift(op: Op) -> str | None:
    """By a constant number of bits below the width."""
    shift = op.ints(1) if op.number(1) else None
    if op.dtype(0) != ir.DataType.UINT8 or shift is None or not 0 <= shift[0] < 8:
        return None
    return f"{op[0]} {'<<' if op.attribute('direction') == 'LEFT' else '>>'} {shift[0]}"


@word("Dropout")
def dropout(op: Op) -> str | None:
    """Nothing, unless it trains: layers do that."""
    if op.asked(1) or op.has(2):
        return None
    return op[0]


def short(number: float) -> str:
    """An attribute, which ONNX keeps in float32."""
    single = np.float32(number)
    return repr(float(str(single))).replace("e+", "e") if math.isfinite(single) else f'float("{single}")'


def _unless(number: float, default: float) -> str:
    return "" if math.isclose(number, default, rel_tol=1e-7) else f", {short(number)}"
