"""What a run is given: checked against the model's inputs, never silently cast."""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from entrepot.ir.arguments import described
from entrepot.ir.errors import InputError
from entrepot.ir.typing.formula import Formula
from entrepot.ir.typing.plain import Dims, Type, of_value
from entrepot.runtime.arrays import as_array, is_array
from entrepot.runtime.device import HOST, Device

if TYPE_CHECKING:
    from entrepot.ir.model import Model

Feeding: TypeAlias = Any
"""Arrays by input name; all of them in order, as a list or tuple; or one array for a model with one input."""
_WITHIN: dict[str, Callable[[int, int], bool]] = {"<=": operator.le, ">=": operator.ge}


@dataclass(frozen=True)
class InputSpec:
    """An input as a run checks it.

    Attributes:
        name: Its name in the graph.
        type: As the model declares it, or ``None``.
        dtype: Its NumPy element type, or ``None`` if unknown or not a tensor.
        shape: Declared dims, or ``None``.
    """

    name: str
    type: Type | None
    dtype: np.dtype[Any] | None
    shape: Dims | None


def input_spec(name: str, known: Type | None) -> InputSpec:
    """What the declared type of an input asks of a feed."""
    tensor = known is not None and known.kind == "tensor"
    return InputSpec(name, known, known.numpy if known and tensor else None, known.shape if known and tensor else None)


def feeds_of(model: Model, given: Feeding) -> dict[str, Any]:
    """The feeds of a run by name, as NumPy arrays, checked.

    Raises:
        InputError: It does not fit the model's inputs.
    """
    graph = model.ir.graph
    specs = [input_spec(value.name or "", of_value(value)) for value in graph.inputs]
    needed = [spec.name for spec in specs if spec.name not in graph.initializers]
    named = by_name([spec for spec in specs if spec.name in needed], given)
    taken = [spec for spec in specs if spec.name in needed or spec.name in named]
    check_names(taken, named)
    values = arrays(taken, named, related=model.related, steps=model.steps)
    return dict(zip([spec.name for spec in taken], values, strict=True))


def by_name(specs: Sequence[InputSpec], given: Feeding) -> Mapping[str, Any]:
    """Feeds by name, whatever form they came in; the values are not checked.

    Raises:
        InputError: The form does not say which input is meant.
    """
    if isinstance(given, Mapping):
        return given
    names = [spec.name for spec in specs]
    if isinstance(given, list | tuple) and len(given) == len(names) and _are_feeds(specs, given):
        return dict(zip(names, given, strict=True))
    if len(names) == 1 and given is not None:
        return {names[0]: given}
    raise InputError(
        f"feeds are {described(given)}, expected {'a dict of arrays by name' if names else 'an empty dict'}",
        hint=f"the model's inputs are {names}",
    )


def _are_feeds(specs: Sequence[InputSpec], given: Sequence[Any]) -> bool:
    """Whether a list is one feed per input, rather than the nested numbers or the sequence of a single one."""
    sequence = specs[0].type is not None and specs[0].type.kind in ("sequence", "optional") if specs else False
    return len(specs) != 1 or (is_array(given[0]) and not sequence)


def check_names(specs: Sequence[InputSpec], feeds: Mapping[str, Any]) -> None:
    """Refuse feeds that are missing or that the model does not have.

    Raises:
        InputError: Names do not match; the message has all of them.
    """
    names = [spec.name for spec in specs]
    missing = [name for name in names if name not in feeds]
    extra = [name for name in feeds if name not in names]
    if missing or extra:
        what = [f"missing {missing}"] * bool(missing) + [f"not inputs of the model: {extra}"] * bool(extra)
        raise InputError(f"feeds do not match: {', '.join(what)}", hint=f"the model's inputs are {names}")


def arrays(
    specs: Sequence[InputSpec],
    feeds: Mapping[str, Any],
    devices: Sequence[Device] = (),
    related: Collection[str] = (),
    steps: Mapping[str, tuple[int, int]] | None = None,
) -> list[Any]:
    """The feeds in input order, as NumPy arrays, or as they are where they are on the device that will read them.

    Args:
        specs: What is asked of each.
        feeds: By name.
        devices: Where they may be, besides the host.
        related: What has to hold for sizes; see ``Model.related``.
        steps: What sizes are divided by, and what has to be left, by symbol; see ``Model.steps``.

    Raises:
        InputError: A feed has the wrong element type, rank or size, sizes of one symbol differ, or one is not what
            the others make it.
    """
    symbols: dict[str, tuple[int, str]] = {}
    values = []
    for spec in specs:
        feed = _adopted(feeds[spec.name], devices)
        device = next((device for device in devices if device.holds(feed)), HOST)
        far = device is not HOST
        value = _held(spec, feed, device) if far else _as_declared(spec, feed)
        if spec.shape is not None:
            _check_shape(spec, device.shape(value) if far else value.shape, symbols)
        values.append(value)
    for symbol, (step, rest) in (steps or {}).items():
        size, where = symbols.get(symbol, (rest, ""))
        if size % step != rest:
            raise InputError(
                f"{where} is {size}, but the model needs {symbol} % {step} == {rest}", hint=_nearest(size, step, rest)
            )
    for text in related:
        _check_related(text, symbols)
    return values


def _adopted(feed: Any, devices: Sequence[Device]) -> Any:
    """An array of any library that lies in the memory of one of the devices as an array of it."""
    if type(feed) is np.ndarray or not hasattr(feed, "__dlpack_device__"):
        return feed
    for device in devices:
        feed = device.adopted(feed)
    return feed


def _held(spec: InputSpec, feed: Any, device: Device) -> Any:
    """An array that is on the device already."""
    known = spec.type
    while known is not None and known.kind == "optional":
        known = known.element
    if known is not None and known.kind == "sequence":
        raise InputError(f"a sequence is fed as a list, not as {type(feed).__name__}", value=spec.name)
    if known is not None and known.numpy not in (None, device.dtype(feed)):
        raise InputError(
            f"expected {known.numpy}, got {device.dtype(feed)} with shape {device.shape(feed)}",
            value=spec.name,
            hint=f"convert it to {known.numpy} if that is what you mean",
        )
    return feed


def _as_declared(spec: InputSpec, feed: Any) -> Any:
    if spec.type is not None and spec.type.kind in ("sequence", "optional"):
        return _nested(spec, spec.type, feed)
    return _array(spec, spec.dtype, feed)


def _nested(spec: InputSpec, known: Type, feed: Any) -> Any:
    if known.kind == "optional":
        return None if feed is None else _nested(spec, known.element or Type(), feed)
    if known.kind == "sequence":
        if not isinstance(feed, list | tuple):
            raise InputError(f"a sequence is fed as a list, not as {type(feed).__name__}", value=spec.name)
        return [_nested(spec, known.element or Type(), member) for member in feed]
    return _array(spec, known.numpy, feed)


def _array(spec: InputSpec, dtype: np.dtype[Any] | None, feed: Any) -> np.ndarray[Any, Any]:
    if type(feed) is np.ndarray and feed.dtype is dtype:
        return feed
    if feed is None:
        raise InputError("None is not an array", value=spec.name)
    if isinstance(feed, bool | int | float | str | bytes | list | tuple):
        return _from_python(spec, dtype, feed)
    array = as_array(feed, spec.name)
    if dtype is None or array.dtype == dtype:
        return array
    if dtype.kind == "O" and array.dtype.kind in "US":
        return array.astype(str).astype(object)
    raise InputError(
        f"expected {dtype}, got {array.dtype} with shape {array.shape}",
        value=spec.name,
        hint=f"convert it {f'with .astype({dtype.name!r})' if hasattr(feed, 'astype') else f'to {dtype}'} "
        "if that is what you mean",
    )


def _from_python(spec: InputSpec, dtype: np.dtype[Any] | None, feed: Any) -> np.ndarray[Any, Any]:
    """Python numbers take the input's element type if it holds them exactly (floats: to their nearest)."""
    try:
        plain = np.array(feed, dtype=object if dtype is not None and dtype.kind == "O" else None)
    except ValueError as error:
        raise InputError(f"a ragged list is not a tensor: {error}", value=spec.name) from error
    if dtype is None or dtype.kind == "O":
        return plain
    if plain.dtype.kind == "O" or not _kinds_agree(plain, dtype):
        raise InputError(f"Python values of kind {plain.dtype} do not fit {dtype}", value=spec.name)
    with np.errstate(all="ignore"):
        array = plain.astype(dtype)
    if plain.dtype.kind in "iu" and not np.array_equal(array.astype(plain.dtype), plain):
        raise InputError(f"values are not exact as {dtype}", value=spec.name)
    return array


def _kinds_agree(plain: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> bool:
    if plain.size == 0:
        return True
    if plain.dtype.kind == "b" or dtype.kind == "b":
        return plain.dtype.kind == dtype.kind
    if plain.dtype.kind == "f":
        return dtype.kind not in "iu" and not dtype.name.startswith(("int", "uint"))
    return plain.dtype.kind in "iu"


def _check_shape(spec: InputSpec, shape: tuple[int, ...], symbols: dict[str, tuple[int, str]]) -> None:
    declared = spec.shape
    assert declared is not None
    if shape == declared:
        return
    if len(shape) != len(declared):
        raise InputError(f"expected rank {len(declared)} {_text(declared)}, got shape {shape}", value=spec.name)
    for axis, (dim, size) in enumerate(zip(declared, shape, strict=True)):
        if isinstance(dim, int):
            if dim != size:
                raise InputError(f"axis {axis} is {size}, expected {dim}: shape {shape}", value=spec.name)
        elif dim is not None:
            known, where = symbols.setdefault(dim, (size, f"axis {axis} of '{spec.name}'"))
            if known != size:
                raise InputError(f"axis {axis} is {size}, but {where} makes '{dim}' {known}", value=spec.name)


def _check_related(text: str, symbols: Mapping[str, tuple[int, str]]) -> None:
    if text.partition(" ")[2][:2] in _WITHIN:
        symbol, sign, bound = text.split(" ")
        _check_bound(symbol, _WITHIN[sign], int(bound), text, symbols)
        return
    formula = Formula.of(text)
    if formula is None or text not in symbols or not symbols.keys() >= set(formula.names):
        return
    size, where = symbols[text]
    sizes = {name: symbols[name][0] for name in formula.names}
    if formula.size(sizes) != size:
        needed = formula.size(sizes)
        known = " and ".join(f"{name} = {sizes[name]} ({symbols[name][1]})" for name in formula.names)
        raise InputError(
            f"{where} is {size}, but '{text}' is {'no size' if needed is None else needed}, with {known}",
            hint="give inputs whose sizes fit each other",
        )


def _check_bound(
    symbol: str, within: Callable[[int, int], bool], bound: int, text: str, symbols: Mapping[str, tuple[int, str]]
) -> None:
    size, where = symbols.get(symbol, (bound, ""))
    if not within(size, bound):
        raise InputError(f"{where} is {size}, but the model was made for {text}")


def _text(declared: Dims) -> str:
    return "(" + ", ".join("?" if dim is None else str(dim) for dim in declared) + ")"


def _nearest(size: int, step: int, rest: int) -> str:
    above = size + (rest - size) % step
    return f"pad or crop it to {above - step} or {above}" if above > step else f"pad it to {above}"
