"""Inputs of a model as they are written on the command line."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from entrepot.cli.array_files import read_array
from entrepot.ir.errors import InputError

if TYPE_CHECKING:
    from entrepot.ir.model import Model, ValueSpec

SPELLINGS = "@file.npy, @file.npz:name, rand[1,3,224,224], zeros[2], ones[2], arange[2,3], or a JSON literal"

_MADE = re.compile(r"(rand|zeros|ones|arange)\[([\d\s,]*)\]")


def input_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """``--input``, ``--dim`` and ``--seed``."""
    for option in (
        click.option("--seed", default=0, show_default=True, help="Seed for random inputs."),
        click.option("--dim", "dims", multiple=True, metavar="SYMBOL=SIZE", help="Size of a dynamic axis."),
        click.option("-i", "--input", "inputs", multiple=True, metavar="NAME=VALUE", help=f"An input: {SPELLINGS}."),
    ):
        function = option(function)
    return function


def read_inputs(
    model: Model, inputs: Sequence[str], dims: Sequence[str], seed: int
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The feeds: what was given, and random values for the rest.

    Returns:
        The feeds and the names of the random ones.

    Raises:
        InputError: A value, name, file or size is wrong.
    """
    from entrepot.parity.feeds import generate

    rng = np.random.default_rng(seed)
    specs = {spec.name: spec for spec in model.inputs}
    given = {}
    for name, text in (_pair(item, "--input", "NAME=VALUE") for item in inputs):
        if name not in specs:
            raise InputError(f"the model has no input '{name}'", hint=f"its inputs are {', '.join(specs) or 'none'}")
        given[name] = _value(text, specs[name], rng)
    sizes = {symbol: _size(symbol, text) for symbol, text in (_pair(item, "--dim", "SYMBOL=SIZE") for item in dims)}
    feeds = generate(model, dims=sizes, given=given, rng=rng)
    return feeds, tuple(name for name in feeds if name not in given)


def _pair(item: str, option: str, shape: str) -> tuple[str, str]:
    name, separator, text = item.partition("=")
    if not separator or not name or not text:
        raise InputError(
            f"{option} {item!r} is not {shape}", hint=f"VALUE is {SPELLINGS}" if "VALUE" in shape else None
        )
    return name, text


def _size(symbol: str, text: str) -> int:
    if not text.isdecimal():
        raise InputError(f"size of '{symbol}' is '{text}', expected a whole number")
    return int(text)


def _value(text: str, spec: ValueSpec, rng: np.random.Generator) -> Any:
    if text.startswith("@"):
        return _from_file(text[1:], spec)
    made = _MADE.fullmatch(text)
    if made is None:
        return _literal(text, spec)
    return _make(made[1], tuple(int(size) for size in made[2].split(",") if size.strip()), spec, rng)


def _make(kind: str, shape: tuple[int, ...], spec: ValueSpec, rng: np.random.Generator) -> np.ndarray:
    from entrepot.parity.feeds import draw

    dtype = _dtype(spec)
    if kind == "rand":
        return draw(dtype, shape, rng)
    if dtype.kind == "O":
        raise InputError(f"{kind}[...] makes numbers, but it takes strings", value=spec.name)
    values = {"zeros": np.zeros, "ones": np.ones}[kind](shape) if kind != "arange" else np.arange(prod(shape))
    return values.reshape(shape).astype(dtype)


def _dtype(spec: ValueSpec) -> np.dtype:
    from entrepot.parity.feeds import numpy_dtype

    if spec.dtype is None or spec.kind != "tensor":
        raise InputError("its type is not a tensor of a known dtype", value=spec.name, hint="give it as @file.npy")
    return numpy_dtype(spec.dtype)


def _literal(text: str, spec: ValueSpec) -> Any:
    try:
        value = json.loads(text)
    except json.JSONDecodeError:
        if spec.dtype != "string":
            raise InputError(f"'{text}' is not a value", value=spec.name, hint=f"write {SPELLINGS}") from None
        value = text
    if spec.kind != "tensor" or spec.dtype is None:
        return value
    try:
        return np.array(value).astype(_dtype(spec))
    except (ValueError, TypeError, OverflowError) as error:
        raise InputError(f"'{text}' is not {spec.dtype}: {error}", value=spec.name) from error


def _from_file(text: str, spec: ValueSpec) -> np.ndarray:
    path, _, key = text.partition(":") if not Path(text).exists() else (text, "", "")
    return _as_declared(read_array(path, key, spec.name), spec)


def _as_declared(array: np.ndarray, spec: ValueSpec) -> np.ndarray:
    """Give the bytes of a bfloat16, float8 or int4 array, which ``.npy`` has no names for, their dtype back."""
    if array.dtype.kind == "V" and spec.dtype is not None and array.dtype.itemsize == _dtype(spec).itemsize:
        return array.view(_dtype(spec))
    return array.astype(object) if spec.dtype == "string" else array
