"""Attribute values that a version of an operator does not know yet; onnx's checker ignores them."""

from __future__ import annotations

import onnx_ir as ir

from entrepot.ir.opset.builder import OpBuilder

VALUES: dict[tuple[str, str], dict[str, int]] = {
    ("Pad", "mode"): {"constant": 1, "reflect": 1, "edge": 1, "wrap": 19},
    ("Resize", "coordinate_transformation_mode"): {
        "half_pixel": 11,
        "pytorch_half_pixel": 11,
        "align_corners": 11,
        "asymmetric": 11,
        "tf_half_pixel_for_nn": 11,
        "tf_crop_and_resize": 11,
        "half_pixel_symmetric": 19,
    },
    ("Resize", "mode"): {"nearest": 10, "linear": 10, "cubic": 11},
    ("Resize", "keep_aspect_ratio_policy"): {"stretch": 18, "not_larger": 18, "not_smaller": 18},
    ("RoiAlign", "coordinate_transformation_mode"): {"half_pixel": 16, "output_half_pixel": 16},
    ("ScatterElements", "reduction"): {"none": 16, "add": 16, "mul": 16, "max": 18, "min": 18},
    ("ScatterND", "reduction"): {"none": 16, "add": 16, "mul": 16, "max": 18, "min": 18},
    ("DepthToSpace", "mode"): {"DCR": 11, "CRD": 11},
    ("SpaceToDepth", "mode"): {"DCR": 28, "CRD": 28},
    ("GridSample", "mode"): {"nearest": 16, "linear": 20, "cubic": 20, "bilinear": 16, "bicubic": 16},
    ("Upsample", "mode"): {"nearest": 1, "linear": 7, "bilinear": 1},
    ("GridSample", "padding_mode"): {"zeros": 16, "border": 16, "reflection": 16},
    ("Gelu", "approximate"): {"none": 20, "tanh": 20},
}
"""(operator, attribute) to its values, each with the opset that introduced it."""

REMOVED = {
    ("GridSample", "mode", "bilinear"): 20,
    ("GridSample", "mode", "bicubic"): 20,
    ("Upsample", "mode", "bilinear"): 7,
}
"""(operator, attribute, value) to the opset that no longer has it."""


_OPERATORS = frozenset(op_type for op_type, _ in VALUES)


def check_values(op: OpBuilder, node: ir.Node) -> None:
    """Refuse an attribute value that the opset ``op`` speaks does not know."""
    if node.domain or node.op_type not in _OPERATORS:
        return
    for name, attr in node.attributes.items():
        births = VALUES.get((node.op_type, name))
        if births is None or attr.is_ref():
            continue
        value = attr.value
        born, gone = births.get(value), REMOVED.get((node.op_type, name, value), op.version + 1)
        if born is None or not born <= op.version < gone:
            op.refuse(f"{name}={value!r} is not known to {node.op_type} of opset {op.version}")
