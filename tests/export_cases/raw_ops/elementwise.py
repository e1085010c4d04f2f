"""Functions of one and two numbers, at edges of their types."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from tests.export_cases.raw_ops.case import add, ints, normal

FLOATS = ("float32", "float64", "float16", "bfloat16")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
SIZES = [0.0, 1e-8, 0.3, 0.5, 1.0, 1.5, 2.0, 2.5, 3.7, 10.0, 20.0, 88.0, 100.0, 1e4, 1e30, 1e-20, 0.999]
EDGES = np.array([*SIZES, *(-size for size in SIZES), np.inf, -np.inf, np.nan])
PLAIN = """Ceil Cos Exp Floor Log Sin Sqrt Tanh IsNan IsInf IsFinite Abs Neg Sign Square Rsqrt Inv Reciprocal Round
    Acos Acosh Asin Asinh Atan Atanh Cosh Sinh Tan Expm1 Log1p Erfc"""
SINGLE = (
    "Rint Erf Erfinv Ndtri Lgamma Digamma BesselI0 BesselI0e BesselI1 BesselI1e BesselK0 BesselK0e BesselK1 BesselK1e"
)
DOUBLE = "BesselJ0 BesselJ1 BesselY0 BesselY1"
"""TensorFlow's own are some units off in single precision."""


def _as(values: np.ndarray, kind: str) -> np.ndarray:
    with np.errstate(all="ignore"):
        return values.astype(ml_dtypes.bfloat16 if kind == "bfloat16" else kind)


def _edges(op: str) -> np.ndarray:
    if op in ("Cos", "Sin", "Tan"):
        return EDGES[np.abs(np.nan_to_num(EDGES, posinf=1, neginf=1)) < 1e6]
    return EDGES


for op in PLAIN.split():
    for kind in FLOATS:
        add(op, x=_as(_edges(op), kind))
for op in SINGLE.split():
    add(op, tolerance=2e-5, x=_as(EDGES, "float32"))
    if op != "Erf":  # of doubles that are infinite TensorFlow's is NaN
        add(op, tolerance=1e-8, x=_as(EDGES, "float64"))
add("Erf", tolerance=1e-12, x=EDGES[np.isfinite(EDGES)])
for op in DOUBLE.split():
    add(op, tolerance=1e-8, x=_as(EDGES[EDGES != 1e30], "float64"))
add("Sigmoid", tolerance=1e-5, x=_as(np.array([-9.0, -1.0, 0.0, 1.0, 20.0, np.inf, -np.inf, np.nan]), "float32"))
add("Sigmoid", tolerance=1e-5, x=_as(np.array([-9.0, -1.0, 0.0, 1.0, 20.0, np.inf, np.nan]), "float64"))
for op in ("Abs", "Neg", "Sign", "Square"):
    for kind in INTEGERS:
        info = np.iinfo(kind)
        add(op, x=np.array([info.min or 3, info.max, 1, 2, 5, info.max // 2], kind))

GRID = np.array([0.0, -0.0, 1.0, -1.0, 2.0, 0.5, -2.5, 3.0, 1e4, 1e30, np.inf, -np.inf, np.nan])
FIRST, SECOND = (each.ravel() for each in np.meshgrid(GRID, GRID))
BINARY = """Add AddV2 Sub Mul RealDiv SquaredDifference Maximum Minimum TruncateDiv Div FloorDiv FloorMod TruncateMod
    Mod DivNoNan MulNoNan Xdivy Xlogy Xlog1py Pow Greater GreaterEqual Less LessEqual Equal NotEqual"""
for op in BINARY.split():
    for kind in FLOATS:
        add(op, x=_as(FIRST, kind), y=_as(SECOND, kind))
for kind in FLOATS[:2]:
    add("Atan2", y=_as(FIRST, kind), x=_as(SECOND, kind))
SMALL = np.abs(FIRST) < 1e3
for op, names in {"Igamma": "ax", "Igammac": "ax", "Zeta": "xq", "Polygamma": "ax"}.items():
    first, second = (_as(each[SMALL], "float64") for each in (FIRST, SECOND))
    add(op, tolerance=1e-8, **{names[0]: first, names[1]: second})
OF_INTEGERS = """Add AddV2 Sub Mul SquaredDifference Maximum Minimum TruncateDiv Div FloorDiv FloorMod TruncateMod Pow
    Greater Less Equal NotEqual BitwiseAnd BitwiseOr BitwiseXor LeftShift RightShift"""
for op in OF_INTEGERS.split():
    for kind in INTEGERS:
        info = np.iinfo(kind)
        small = [1, 2, 3, 7] + ([-1, -2, -3] if info.min and op not in ("Pow", "LeftShift", "RightShift") else [])
        x, y = np.meshgrid(np.array([info.min, info.max, 1, 2, 5, info.max // 2, 7, 0], kind), np.array(small, kind))
        add(op, x=x.ravel(), y=y.ravel())
for op in ("Invert", "PopulationCount"):
    for kind in INTEGERS:
        info = np.iinfo(kind)
        add(op, x=np.array([info.min, info.max, 0, 1, 37], kind))

INSIDE = np.array([0, 1, -1, 1.5, -1.5, 2.5, 100, 127, -128])
"""What is out of a type's range TensorFlow converts one way in long rows and another way in short ones."""
for source in ("float32", "float64", "float16", "bfloat16", "int32", "int64", "int8", "uint8", "bool"):
    for target in ("float32", "float64", "float16", "bfloat16", *INTEGERS, "bool"):
        floats = source.startswith(("f", "b")) and target.startswith("u")
        add("Cast", {"DstT": target}, x=_as(np.abs(INSIDE) if floats else INSIDE, source))
for source, target in (("float32", "int32"), ("int64", "float64"), ("int32", "uint32"), ("uint8", "int8")):
    add("Bitcast", {"type": target}, input=_as(np.array([0, 1, 2, 100]), source))

x = normal(3, 4, 5)
add("Select", condition=np.array([True, False, True]), t=x, e=-x)
add("SelectV2", condition=np.array([True, False, True, True, False]), t=x, e=np.float32(0))
add("SelectV2", condition=x > 0, t=x > 1, e=x < 3)
add("ApproximateEqual", {"tolerance": 0.5}, x=normal(9), y=normal(9))
add("AddN", inputs=[x, x, x])
add("AddN", inputs=[ints(1, 2), ints(3, 4)])
add("ClipByValue", t=x, clip_value_min=np.float32(-0.5), clip_value_max=np.float32(0.5))
add("OnesLike", x=x.astype("int8"))
add("ZerosLike", x=x > 0)
add("LogicalAnd", x=x > 0, y=x < 1)
add("LogicalOr", x=x > 0, y=x < 1)
add("LogicalNot", x=x > 0)
