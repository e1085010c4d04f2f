"""Calls in rewritten functions: of functions that are rewritten in turn, and of forms for sizes that vary."""

from __future__ import annotations

import builtins
import functools
import itertools
import math
import operator
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from entrepot.exporters.torch.capture.casts import as_builtin, as_number
from entrepot.exporters.torch.capture.extremes import extreme_of_elements, extreme_of_sizes
from entrepot.exporters.torch.capture.numpy_arrays import following
from entrepot.exporters.torch.rewriting import combining, in_python, ranking, truths
from entrepot.exporters.torch.rewriting.chosen_part import chosen_attribute
from entrepot.exporters.torch.rewriting.endless import counted, ends, limited
from entrepot.exporters.torch.rewriting.environment import expression, hint
from entrepot.exporters.torch.rewriting.links import whole
from entrepot.exporters.torch.rewriting.lists import Grown, Piled, Stacked, Tracked, Trailing
from entrepot.exporters.torch.rewriting.logarithms import logarithm
from entrepot.exporters.torch.rewriting.one_tensor import one_tensor
from entrepot.exporters.torch.rewriting.sequences import (
    Backwards,
    Numbers,
    Part,
    Pieces,
    Rows,
    Sections,
    Span,
    Together,
    Unfinished,
)
from entrepot.exporters.torch.rewriting.texts import Text, text
from entrepot.exporters.torch.rewriting.trees import is_element
from entrepot.exporters.torch.rewriting.uneven import Lengthened
from entrepot.exporters.torch.translations.remembered import holds_sizes
from entrepot.exporters.torch.upstream import numpy_in_torch

_SIZES = (torch.SymInt, torch.SymFloat)
_EXTREMES = {"min": torch.sym_min, "max": torch.sym_max}
_CALLABLES = (types.FunctionType, types.MethodType, functools.partial)
_REMEMBERING = type(functools.cache(callable))
_APPLY = vars(torch.autograd.Function)["apply"].__func__


def callee(function: Any) -> Any:
    """What to call instead of ``function``."""
    if isinstance(function, _REMEMBERING):  # a size that varies is no key
        function = function.__wrapped__
    if isinstance(function, types.BuiltinMethodType | types.MethodType) and isinstance(
        function.__self__, torch.Tensor | torch.SymInt | torch.Size
    ):
        return _method(function)
    if ranking.is_sort(function):
        return functools.partial(ranking.sort, function.__self__)
    if isinstance(function, types.MethodType) and function.__func__ is _APPLY:
        return functools.partial(_applied, function.__self__)
    if (name := next((each for each in _EXTREMES if function is getattr(builtins, each)), None)) is not None:
        return functools.partial(_extreme, _EXTREMES[name], function)  # torch has others there while it captures
    if isinstance(function, functools.partial):
        return functools.partial(callee(function.func), *function.args, **function.keywords)
    function = following(as_builtin(function))
    try:
        known_form = _FUNCTIONS.get(function)
    except TypeError:
        known_form = None
    return _other(function) if known_form is None else functools.partial(known_form, function)


def _other(function: Any) -> Any:
    """A function that has no form of its own."""
    from entrepot.exporters.torch.rewriting.functions import as_rewritten, calls_back

    if isinstance(function, types.BuiltinFunctionType) and getattr(torch, function.__name__, None) == function:
        return functools.partial(_given_numbers, function)
    return functools.partial(_calling, function) if calls_back(function) else as_rewritten(function)


def method(value: Any, name: str) -> Any:
    """A method that NumPy's numbers have, and so those computed from sizes, or anything else's."""
    number = isinstance(value, torch.SymInt | torch.SymFloat)
    return functools.partial(_NUMBERS[name], value) if number else getattr(value, name)


def _astype(value: Any, dtype: Any, **_: Any) -> Any:
    return torch.sym_int(value) if np.dtype(dtype).kind in "iu" else torch.sym_float(value)


_NUMBERS: dict[str, Callable[..., Any]] = {"astype": _astype, "item": lambda value: value}


def _method(function: Any) -> Any:
    """A method of a tensor, of a size, or of all sizes of a tensor."""
    if isinstance(function.__self__, torch.Size):
        return functools.partial(_prod, math.prod, function.__self__) if function.__name__ == "numel" else function
    if isinstance(function.__self__, torch.SymInt):
        return functools.partial(_bit_length, function) if function.__name__ == "bit_length" else function
    method = _METHODS.get(function.__name__)
    if method is None:
        return functools.partial(_given_numbers, function)
    return functools.partial(method, function, function.__self__)


def _given_numbers(function: Any, *args: Any, **how: Any) -> Any:
    """A call of torch's, which takes no element of an array for a size."""
    return function(*map(_number_of, args), **{name: _number_of(value) for name, value in how.items()})


def _number_of(value: Any) -> Any:
    if type(value) in (list, tuple):
        return type(value)(map(_number_of, value))
    return value.tensor.item() if is_element(value) and not value.tensor.is_floating_point() else value


def _calling(function: Any, *args: Any, **how: Any) -> Any:
    """A call of what calls some of its arguments in turn."""
    return function(*map(_called, args), **{name: _called(value) for name, value in how.items()})


def _called(value: Any) -> Any:
    return callee(value) if isinstance(value, _CALLABLES) or value is list or value is tuple else value


def _applied(function: Any, *args: Any) -> Any:
    """What a function with gradients of its own returns; an export needs none of these."""
    takes_context = function.setup_context is torch.autograd.Function.setup_context
    context = torch.autograd.function.FunctionCtx()
    context.needs_input_grad = (False,) * len(args)  # type: ignore[attr-defined]
    return callee(function.forward)(*([context] if takes_context else []), *args)


def _varies(size: Any) -> bool:
    return isinstance(size, torch.SymInt) and not expression(size).is_Integer


def _range(plain: Any, *limits: Any) -> Any:
    limits = tuple(_int(int, limit) for limit in limits)
    return Span.of(*limits) if any(map(_varies, limits)) else plain(*limits)


def _len(plain: Any, value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.shape[0]
    if isinstance(value, Tracked):
        value.look()
    if isinstance(value, Trailing | Piled | Lengthened):
        return value.count
    value = whole(value)
    return value.length if isinstance(value, Unfinished) else plain(value)


def _int(plain: Any, value: Any = 0, *more: Any) -> Any:
    value = as_number(value)
    if isinstance(value, torch.SymInt):
        return value
    if isinstance(value, torch.SymFloat):
        return torch.sym_int(value)
    if isinstance(value, numpy_in_torch.ndarray):
        value = value.tensor
    if isinstance(value, torch.Tensor):
        whole = not (value.dtype.is_floating_point or value.dtype is torch.bool)
        return (value if whole else value.to(torch.int64)).item()
    return plain(value, *more)


def _str(plain: Any, *values: Any) -> Any:
    made = text(*values) if len(values) == 1 else None
    return made if isinstance(made, Text) else plain(*values)


def _float(plain: Any, value: Any = 0.0) -> Any:
    value = as_number(value)
    if isinstance(value, _SIZES):
        return torch.sym_float(value)
    if isinstance(value, numpy_in_torch.ndarray):
        value = value.tensor
    if isinstance(value, torch.Tensor):
        return (value.to(torch.int64) if value.dtype is torch.bool else value).item()
    return plain(value)


def _round(plain: Any, value: Any, *digits: Any) -> Any:
    """To the nearest whole number, and from the middle to the even one."""
    if digits or not isinstance(value, _SIZES):
        return plain(value, *digits)
    if isinstance(value, torch.SymInt):
        return value
    number: Any = value
    up: Any = math.floor(number + 0.5)
    down: Any = math.ceil(number - 0.5)  # differs in the middle only, where the even one of both is meant
    return up - (up - down) * (up % 2)


def _extreme(choose: Any, plain: Any, *values: Any, **how: Any) -> Any:
    items = values[0] if len(values) == 1 and isinstance(values[0], list | tuple) else values
    made = one_tensor(values[0]) if len(values) == 1 and not how else None
    if made is not None and made.dim() == 1:
        return (made.max() if choose is torch.sym_max else made.min()).item()
    if how:
        found = ranking.furthest(values, how, largest=choose is torch.sym_max)
        return plain(*values, **how) if found is None else found[0]
    if not isinstance(items, list | tuple):
        return plain(*values)
    followed = extreme_of_sizes(choose, items)
    followed = extreme_of_elements(items, largest=choose is torch.sym_max) if followed is None else followed
    return plain(*values) if followed is None else followed


def _sqrt(plain: Any, value: Any) -> Any:
    return math.sqrt(value) if not isinstance(value, _SIZES) else torch.sym_sqrt(value)


def power(value: Any, exponent: Any) -> Any:
    """``value ** exponent``; a root of a size as the function that captures follow."""
    if isinstance(value, _SIZES) and exponent in (0.5, -0.5):
        return torch.sym_sqrt(value) if exponent > 0 else 1 / torch.sym_sqrt(value)
    return value**exponent


def _power(plain: Any, value: Any, exponent: Any, *more: Any) -> Any:
    return plain(value, exponent, *more) if more or not isinstance(value, _SIZES) else power(value, exponent)


def _isqrt(plain: Any, value: Any) -> Any:
    return math.floor(torch.sym_sqrt(value)) if isinstance(value, torch.SymInt) else plain(value)


def _log(base: float, plain: Any, value: Any, *more: Any) -> Any:
    return logarithm(value, base) if isinstance(value, torch.SymInt) and not more else plain(value, *more)


def _bit_length(plain: Any) -> Any:
    """``n.bit_length()``, by the logarithm of an odd number, so that no rounding counts."""
    return torch.sym_max(math.ceil(logarithm(2 * plain.__self__ + 1)) - 1, 0)


def _prod(plain: Any, values: Any, *more: Any, **how: Any) -> Any:
    if isinstance(values, list | tuple) and any(isinstance(each, _SIZES) for each in values):
        return functools.reduce(operator.mul, values, 1)
    return plain(values, *more, **how)


def _sized(form: Callable[[Any], Any], plain: Any, value: Any, *more: Any, **how: Any) -> Any:
    return form(value) if isinstance(value, _SIZES) else plain(value, *more, **how)


def _reversed(plain: Any, value: Any) -> Any:
    value = whole(value)
    if isinstance(value, Grown):
        turned = value.copy()
        turned.reverse()
        return turned
    return Backwards(value) if isinstance(value, Unfinished) else plain(value)


def _enumerate(plain: Any, value: Any, start: Any = 0) -> Any:
    value = _rows(whole(value))
    return Together(Span(start, 1, value.length), value) if isinstance(value, Unfinished) else plain(value, start)


def _zip(plain: Any, *values: Any, **how: Any) -> Any:
    values = tuple(_rows(whole(value)) for value in values)
    length = next((each.length for each in values if isinstance(each, Unfinished)), None)
    if length is None:
        return plain(*values, **how)
    return Together(*(_beside(each, length) for each in values), strict=bool(how.get("strict", False)))


def _beside(value: Any, length: Any) -> Any:
    """One of the arguments of ``zip``, beside a sequence whose length varies."""
    value = counted(value)
    if isinstance(value, range) and not ends(value):
        return Span(value.start, value.step, length)
    return value if isinstance(value, Unfinished) else list(limited(value))


def _rows(value: Any) -> Any:
    return Rows(value) if isinstance(value, torch.Tensor) and value.dim() and _varies(value.shape[0]) else value


def _sequence(plain: Any, *values: Any) -> Any:
    if not values or not isinstance(found := _rows(whole(values[0])), Unfinished):
        return plain(*values)
    if plain is list and type(found) is Rows:  # a list of its own, whose items may be exchanged
        return Grown(Stacked(found.tensor.movedim(found.axis, 0)))
    return found.copy() if isinstance(found, Grown) else found


def _islice(plain: Any, values: Any, *limits: Any) -> Any:
    found = _rows(whole(values))
    return found[slice(*limits)] if isinstance(found, Unfinished) else plain(values, *limits)


def _sum(plain: Any, values: Any, start: Any = 0) -> Any:
    if isinstance(values, Piled) and values.numbers:
        return values.tensor.sum(0).item() + start
    made = _made(values) if isinstance(values, Grown | Trailing | Piled) else None
    return plain(values, start) if made is None else made.stacked().sum(0) + start


def _unbind(plain: Any, input: torch.Tensor, dim: int = 0) -> Any:
    return Rows(input, dim % input.dim()) if _varies(input.shape[dim]) else plain(input, dim)


def _unbind_method(plain: Any, tensor: torch.Tensor, dim: int = 0) -> Any:
    return _unbind(torch.unbind, tensor, dim)


def _split(plain: Any, tensor: torch.Tensor, split_size_or_sections: Any, dim: int = 0) -> Any:
    size = split_size_or_sections
    if isinstance(size, int | torch.SymInt) and (_varies(tensor.shape[dim]) or _varies(size)):
        return Pieces(tensor, size, dim % tensor.dim())
    if isinstance(size, Numbers) and size.tensor.dim() == 1:
        return Sections(tensor, size.tensor, dim % tensor.dim())
    if isinstance(size, Grown):
        return Sections(tensor, size.stacked(), dim % tensor.dim())
    return torch.split(tensor, size, dim)


def _split_method(plain: Any, tensor: torch.Tensor, split_size: Any, dim: int = 0) -> Any:
    return _split(torch.split, tensor, split_size, dim)


def _chunk(plain: Any, input: torch.Tensor, chunks: Any, dim: int = 0) -> Any:
    """A list, unless the number of pieces varies, as it does where the sample has fewer than asked for."""
    length: Any = input.shape[dim]
    size = (length + chunks - 1) // chunks
    if _varies(chunks) or (_varies(length) and hint(-(-length // size)) not in (chunks, None)):
        return _split(torch.split, input, size, dim)
    return torch.chunk(input, chunks, dim)


def _tolist(plain: Any, tensor: torch.Tensor) -> Any:
    if tensor.dim() == 0:
        return truths.item(tensor.item, tensor)
    if _varies(tensor.shape[0]):
        return Numbers(tensor)
    return [_tolist(None, row) for row in tensor.unbind(0)]


def _stack(plain: Any, tensors: Any, dim: int = 0, **how: Any) -> Any:
    made = _pieces(tensors) or _made(tensors)
    return plain(tensors, dim, **how) if made is None else made.stacked().movedim(0, dim)


def _cat(plain: Any, tensors: Any, dim: int = 0, **how: Any) -> Any:
    dim, made = how.pop("axis", dim), _pieces(tensors) or _made(tensors)
    return plain(tensors, dim, **how) if made is None else made.joined_up(dim)


def _pieces(tensors: Any) -> Lengthened | None:
    """Tensors of different sizes that lie one after the other in one."""
    if isinstance(tensors, Sections):
        return Lengthened(tensors.tensor, tensors.sizes.reshape(-1, 1), [tensors.axis])
    return tensors if isinstance(tensors, Lengthened) else None


def _pad_sequence(
    plain: Any, sequences: Any, batch_first: bool = False, padding_value: float = 0.0, *more: Any, **how: Any
) -> Any:
    sequences = whole(sequences)
    if not isinstance(sequences, Sections) or more or how or sequences.axis:
        return plain(sequences, batch_first, padding_value, *more, **how)
    padded = sequences.padded(padding_value)
    return padded if batch_first else padded.transpose(0, 1)


def _made(tensors: Any) -> Grown | None:
    """Tensors whose number varies, as a list that holds them in one."""
    if isinstance(tensors, Tracked):
        tensors.look()
    tensors = whole(tensors)
    if isinstance(tensors, torch.Tensor):  # a list in a list that a loop has made: torch itself takes no tensor
        return Grown(Stacked(tensors))
    if isinstance(tensors, Rows) and not isinstance(tensors, Numbers):
        return Grown(Stacked(tensors.tensor.movedim(tensors.axis, 0)))
    if isinstance(tensors, Part) and (made := _made(tensors.whole)) is not None:
        end = tensors.start + tensors.length * tensors.step
        return Grown(Stacked(made.stacked()[tensors.start : end : tensors.step]))
    return tensors if isinstance(tensors, Grown) else None


def _tensor(plain: Any, value: Any, *more: Any, **how: Any) -> Any:
    made = one_tensor(value)
    return plain(value, *more, **how) if made is None else made.to(how.get("dtype") or made.dtype)


def _new_tensor(plain: Any, like: torch.Tensor, value: Any, *more: Any, **how: Any) -> Any:
    made = one_tensor(value)
    return plain(value, *more, **how) if made is None else made.to(how.get("dtype") or like.dtype)


def _tensor_of(dtype: torch.dtype | None, plain: Any, *values: Any, **how: Any) -> Any:
    made = one_tensor(values[0]) if len(values) == 1 else None
    if len(values) == 1 and isinstance(values[0], numpy_in_torch.ndarray):
        made = values[0].tensor
    if made is None and len(values) == 1 and type(values[0]) in (list, tuple) and holds_sizes(values[0]):
        made = torch.tensor(values[0])  # a torch.Size says how large the tensor is
    return plain(*values, **how) if made is None else made.to(dtype or torch.get_default_dtype())


def _array(plain: Any, value: Any, *more: Any, **how: Any) -> Any:
    """NumPy's array of a sequence whose length varies."""
    made = one_tensor(value)
    if made is not None:
        value = numpy_in_torch.ndarray(made.double() if made.is_floating_point() else made)
    return plain(value, *more, **how)


def _reduce(_plain: Any, *args: Any) -> Any:
    return callee(in_python.reduce)(*args)


def _accumulate(_plain: Any, *args: Any, **how: Any) -> Any:
    found = callee(in_python.accumulate)(*args, **how)
    return found if _varies(_len(len, found)) else iter(found)


def _map(plain: Any, function: Any, *items: Any) -> Any:
    """A list where the length varies; nothing asks for the items one by one there."""
    items = tuple(map(whole, items))
    lengths = (_len(len, each) for each in items if isinstance(each, torch.Tensor | Unfinished))
    if any(map(_varies, lengths)):
        return callee(in_python.mapped)(function, *items)
    return plain(callee(function), *items)


_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    **truths.FUNCTIONS,
    **combining.FUNCTIONS,
    **ranking.FUNCTIONS,
    range: _range,
    len: _len,
    int: _int,
    float: _float,
    round: _round,
    str: _str,
    getattr: chosen_attribute,
    sum: _sum,
    reversed: _reversed,
    enumerate: _enumerate,
    zip: _zip,
    itertools.islice: _islice,
    itertools.accumulate: _accumulate,
    functools.reduce: _reduce,
    map: _map,
    list: _sequence,
    tuple: _sequence,
    math.sqrt: _sqrt,
    math.isqrt: _isqrt,
    math.pow: _power,
    operator.pow: _power,
    pow: _power,
    math.log: functools.partial(_log, math.e),
    math.log2: functools.partial(_log, 2.0),
    math.log10: functools.partial(_log, 10.0),
    math.prod: _prod,
    np.prod: _prod,
    np.power: _power,
    **dict.fromkeys((np.int32, np.int64), functools.partial(_sized, torch.sym_int)),
    **dict.fromkeys((np.float32, np.float64), functools.partial(_sized, torch.sym_float)),
    np.sqrt: _sqrt,
    np.log: functools.partial(_log, math.e),
    np.log2: functools.partial(_log, 2.0),
    np.log10: functools.partial(_log, 10.0),
    np.array: _array,
    np.asarray: _array,
    np.ceil: functools.partial(_sized, math.ceil),
    np.floor: functools.partial(_sized, math.floor),
    np.maximum: functools.partial(_extreme, torch.sym_max),
    np.minimum: functools.partial(_extreme, torch.sym_min),
    torch.unbind: _unbind,
    torch.split: _split,
    torch.chunk: _chunk,
    torch.stack: _stack,
    torch.cat: _cat,
    torch.concat: _cat,
    torch.concatenate: _cat,
    torch.tensor: _tensor,
    torch.as_tensor: _tensor,
    torch.LongTensor: functools.partial(_tensor_of, torch.int64),
    torch.IntTensor: functools.partial(_tensor_of, torch.int32),
    torch.Tensor: functools.partial(_tensor_of, None),
    torch.FloatTensor: functools.partial(_tensor_of, torch.float32),
    torch.nn.utils.rnn.pad_sequence: _pad_sequence,
}
_METHODS: dict[str, Callable[..., Any]] = {
    **truths.METHODS,
    "unbind": _unbind_method,
    "split": _split_method,
    "chunk": _chunk,
    "tolist": _tolist,
    "new_tensor": _new_tensor,
}
