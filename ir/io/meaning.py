"""Attributes of the right type whose values mean nothing; onnx's shape inference (1.23) crashes or hangs on some."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import onnx_ir

Attributes = Mapping[str, onnx_ir.Attr]


def value_problem(op_type: str, outputs: int, attributes: Attributes, most_dims: int) -> str | None:
    """What is wrong with the values that a node of ai.onnx gives its attributes, or ``None``.

    Args:
        op_type: The operator.
        outputs: How many outputs the node has.
        attributes: Its attributes, read.
        most_dims: The highest rank that a tensor may have.
    """
    if op_type == "Constant":
        return _constant_problem(attributes)
    given = {name: attribute for name, attribute in attributes.items() if not attribute.is_ref()}
    rule = _RULES.get(op_type)
    return _axis_problem(given, most_dims) or (rule(outputs, given) if rule is not None else None)


def _axis_problem(attributes: Attributes, most: int) -> str | None:
    for name, attribute in attributes.items():
        if name.endswith(("axis", "axes", "perm")):
            for axis in attribute.as_ints() if attribute.type is onnx_ir.AttributeType.INTS else [attribute.as_int()]:
                if not -most <= axis < most:
                    return f"attribute '{name}' names axis {axis}, and no tensor has so many"
        elif name == "batch_dims" and not 0 <= attribute.as_int() < most:
            return f"attribute 'batch_dims' is {attribute.as_int()}"
    return None


def _num_outputs(outputs: int, attributes: Attributes) -> str | None:
    count = attributes["num_outputs"].as_int() if "num_outputs" in attributes else outputs
    return f"attribute 'num_outputs' is {count}, but it has {outputs} outputs" if count != outputs else None


def _equation(_outputs: int, attributes: Attributes) -> str | None:
    equation = str(attributes["equation"].value) if "equation" in attributes else ""  # it may be bytes
    sides = equation.replace(" ", "").split("->")
    letters = "".join(term.replace("...", "", 1) for side in sides for term in side.split(","))
    readable = len(sides) <= 2 and (not letters or (letters.isascii() and letters.isalpha()))
    return None if readable else f"attribute 'equation' is no sum over letters: {equation[:80]!r}"


def _constant_problem(attributes: Attributes) -> str | None:
    given = [name for name in attributes if not name.startswith("__")]  # how runtimes mark their own annotations
    return None if len(given) == 1 else f"a Constant has one attribute, not {len(given)}: {given}"


_RULES: dict[str, Callable[[int, Attributes], str | None]] = {
    "Einsum": _equation,
    "Split": _num_outputs,
}
