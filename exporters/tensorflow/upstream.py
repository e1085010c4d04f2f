"""Everything that is taken from TensorFlow's private side, each with a canary in its tests."""

from __future__ import annotations

import contextlib
import functools
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tensorflow.lite.python import schema_py_generated
from tensorflow.python.framework import dtypes, op_callbacks, op_def_registry, tensor_shape
from tensorflow.python.saved_model import function_deserialization, load
from tensorflow.python.tools import saved_model_utils

from entrepot.exporters.calls import user_line

OpDef = Any


def operator_definition(name: str) -> OpDef | None:
    """The definition of an operator that is registered in this process, or ``None``."""
    return op_def_registry.get(name)


def output_offsets(definition: OpDef, attributes: Any) -> dict[str, int]:
    """Where the outputs of each name begin, for a node with these attributes."""
    offsets, count = {}, 0
    for output in definition.output_arg:
        offsets[output.name] = count
        if output.number_attr:
            count += attributes[output.number_attr].i
        elif output.type_list_attr:
            count += len(attributes[output.type_list_attr].list.type)
        else:
            count += 1
    return offsets


def is_restored(function: Any) -> bool:
    """Whether a function, concrete or not, was loaded from a SavedModel."""
    return isinstance(function, function_deserialization.RestoredFunction | load._WrapperFunction)  # noqa: SLF001


def captured(function: Any) -> Iterator[tuple[str, Any]]:
    """What a concrete function takes from outside: the name of its placeholder, and the tensor or handle."""
    placeholders: Sequence[Any] = function.graph.internal_captures
    for placeholder, value in zip(placeholders, function.captured_inputs, strict=True):
        yield placeholder.op.name, value


def variable_names(function: Any, known: Mapping[int, str]) -> dict[int, str]:
    """What variables are called, by ``id`` of their handles, where those are not known under other names."""
    return {id(each.handle): each.name.partition(":")[0] for each in function.graph.variables} | dict(known)


def output_name(kind: str, attributes: Any, at: int) -> str:
    """What a result of a node is called; nothing where it is the only one."""
    definition = operator_definition(kind)
    offsets = {} if definition is None else output_offsets(definition, attributes)
    name, first = next(((name, first) for name, first in reversed(offsets.items()) if first <= at), ("", 0))
    argument = next((each for each in definition.output_arg if each.name == name), None) if definition else None
    if argument is not None and (argument.number_attr or argument.type_list_attr):
        return f"{name}_{at - first}"
    return name if len(offsets) > 1 else ""


def tag_sets(folder: Path) -> list[list[str]]:
    """The tags of each graph of a SavedModel."""
    found: list[list[str]] = saved_model_utils.get_saved_model_tag_sets(str(folder))
    return found


def variable_of(handle: Any) -> tuple[Any, Any]:
    """The element type and the shape of the variable that a handle refers to; nothing of a table."""
    data = getattr(handle, "_handle_data", None)
    if data is None or not data.is_set or not data.shape_and_type:
        return None, None
    shape = tensor_shape.TensorShape(data.shape_and_type[0].shape)
    return dtypes.as_dtype(data.shape_and_type[0].dtype), None if shape.rank is None else shape.as_list()


@contextlib.contextmanager
def counting_calls(most: int | None = None) -> Iterator[Counter[str]]:
    """Count the operators that are run eagerly inside, by their names.

    Args:
        most: How many there may be; what makes more does not come to an end.

    Raises:
        RuntimeError: There are more.
    """
    count: Counter[str] = Counter()

    def seen(kind: bytes | str, inputs: Any, attributes: Any, *args: Any, **kwargs: Any) -> None:
        name = kind.decode() if isinstance(kind, bytes) else kind
        count[DENSE_POOL if name == "MaxPool" and _is_dense(attributes) else name] += 1
        if most is not None and count.total() > most:
            raise RuntimeError(f"it does not come to an end: {most} operators of TensorFlow were run")

    op_callbacks.add_op_callback(seen)
    try:
        yield count
    finally:
        op_callbacks.remove_op_callback(seen)


DENSE_POOL = "MaxPool, place by place"
"""What a maximum of each window is counted as that lies within the image, without steps between windows."""


def has_no_room(error: BaseException) -> bool:
    """Whether a trace failed because a window is larger than the image that it moves over."""
    return "Negative dimension size" in str(error)


def _is_dense(attributes: Any) -> bool:
    named = dict(zip(attributes[::2], attributes[1::2], strict=True)) if isinstance(attributes, tuple) else attributes
    return named["padding"] in ("VALID", b"VALID") and set(named["strides"]) == {1}


def lite_schema() -> Any:
    """The classes that read the flatbuffers of TensorFlow Lite."""
    return schema_py_generated


@functools.cache
def lite_names(enumeration: str) -> dict[int, str]:
    """The members of an enumeration of that schema, by their numbers."""
    return {number: name for name, number in vars(getattr(schema_py_generated, enumeration)).items() if name.isupper()}


_USERS_LINE = re.compile(r'File "([^"]+)", line (\d+), in (\S+)  \*\s*\n\s*(.*)')


def reason_of(error: BaseException) -> tuple[str, str]:
    """What a trace failed of, and the line of the user; TensorFlow writes both into the message of an error."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    marked = _USERS_LINE.findall(str(error))
    if not marked:
        return lines[0] if lines else type(error).__name__, user_line(error)
    file, number, name, text = marked[-1]
    return lines[-1], f"{Path(file).name}:{number} in {name}: {text}"
