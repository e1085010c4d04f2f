"""Calls of torch on quantised tensors, while a module is captured: computed on the numbers, rounded as torch rounds."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from entrepot.exporters.torch.capture.questions import QUESTIONS
from entrepot.exporters.torch.lowering.custom import qualified_name
from entrepot.exporters.torch.quantised.operators import run
from entrepot.exporters.torch.quantised.packed import is_quantised, laid_open, opened
from entrepot.exporters.torch.quantised.recurrent import gru, lstm
from entrepot.exporters.torch.quantised.scheme import Scheme, marked, rounded, scheme_of, steps_of


@contextlib.contextmanager
def quantised(module: torch.nn.Module) -> Iterator[None]:
    """Inside, a module that computes with quantised tensors computes the same numbers with plain ones."""
    with laid_open(module), Quantised():
        yield


class Quantised(TorchFunctionMode):
    """Stands in for torch's quantised kernels."""

    def __torch_function__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        """Call what a function means for tensors that stand for quantised ones."""
        kwargs = kwargs or {}
        if func in QUESTIONS:
            return func(*args, **kwargs)
        name = qualified_name(func)
        if name.startswith("quantized::"):
            return run(name, _opened(args), {key: opened(value) for key, value in kwargs.items()})
        if func in _MAKERS:
            return _MAKERS[func](*args, **kwargs)
        if not any(map(is_quantised, _flat((*args, *kwargs.values())))):
            return func(*args, **kwargs)
        return _on_quantised(func, _opened(args), {key: opened(value) for key, value in kwargs.items()})


def _opened(args: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(type(each)(map(opened, each)) if type(each) in (list, tuple) else opened(each) for each in args)


def _flat(values: tuple[Any, ...]) -> Iterator[Any]:
    for value in values:
        yield from value if isinstance(value, list | tuple) else (value,)


def _on_quantised(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if func in _READERS:
        return _READERS[func](*args, **kwargs)
    scheme = next(scheme for each in _flat((*args, *kwargs.values())) if (scheme := scheme_of(each)))
    result = func(*args, **kwargs)
    name = getattr(func, "__name__", "")
    if name in _OTHER_STEPS:
        scheme = _OTHER_STEPS[name](scheme)
    return _settled(result, scheme, args, keep=name.rstrip("_") in _ON_STEPS)


def _settled(result: Any, scheme: Scheme, args: tuple[Any, ...], *, keep: bool) -> Any:
    """Every tensor of floats in a result on the steps of a scheme."""
    if isinstance(result, list | tuple):
        parts = [_settled(each, scheme, args, keep=keep) for each in result]
        return type(result)(parts) if type(result) in (list, tuple) else type(result)(tuple(parts))
    if not isinstance(result, torch.Tensor) or not result.is_floating_point():
        return result
    if keep:
        return marked(result, scheme)
    if args and result is args[0]:  # in place
        return marked(result.copy_(rounded(result, scheme)), scheme)
    return rounded(result, scheme)


_SHAPES = """
    __getitem__ adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d alias atleast_1d atleast_2d broadcast_to
    channel_shuffle chunk clone concat contiguous cpu detach diagonal dropout dropout1d dropout2d dropout3d expand
    expand_as flatten flip gather index_select kthvalue masked_select max max_pool1d max_pool2d max_pool3d median min
    movedim narrow permute pixel_shuffle pixel_unshuffle ravel relu repeat repeat_interleave reshape reshape_as roll
    select sort split split_with_sizes squeeze stack swapaxes swapdims t take tile to topk transpose unbind unflatten
    unfold unsqueeze view view_as
"""
_ON_STEPS = frozenset((*_SHAPES.split(), "amax", "amin", "fn", "feature_dropout", "alpha_dropout"))
"""Functions whose results are elements of their inputs, or zero, and so need no rounding; ``fn`` is max pooling."""

_OTHER_STEPS: dict[str, Callable[[Scheme], Scheme]] = {
    **dict.fromkeys(
        ("sigmoid", "sigmoid_", "hardsigmoid", "hardsigmoid_"),
        lambda scheme: Scheme(1 / 256, 0 if scheme.kind is torch.quint8 else -128, scheme.kind),
    ),
    **dict.fromkeys(
        ("tanh", "tanh_"), lambda scheme: Scheme(2 / 256, 128 if scheme.kind is torch.quint8 else 0, scheme.kind)
    ),
}
"""Functions whose results torch puts on steps of their own."""


def _quantize_per_tensor(input: torch.Tensor, scale: Any, zero_point: Any, dtype: torch.dtype) -> torch.Tensor:
    return rounded(input, Scheme(scale, zero_point, dtype))


def _quantize_per_channel(
    input: torch.Tensor, scales: torch.Tensor, zero_points: torch.Tensor, axis: int, dtype: torch.dtype
) -> torch.Tensor:
    return rounded(input, Scheme(scales, zero_points, dtype, axis % input.dim()))


def _scheme(tensor: torch.Tensor) -> Scheme:
    scheme = scheme_of(tensor)
    assert scheme is not None
    return scheme


def _plain(tensor: torch.Tensor) -> torch.Tensor:
    """The numbers, as a tensor of its own that is not marked."""
    return tensor.view_as(tensor)


_MAKERS: dict[Any, Callable[..., Any]] = {
    torch.quantize_per_tensor: _quantize_per_tensor,
    torch.quantize_per_channel: _quantize_per_channel,
    torch.quantized_lstm: lstm,
    torch.quantized_gru: gru,
}
_READERS: dict[Any, Callable[..., Any]] = {
    torch.Tensor.dequantize: _plain,
    torch.dequantize: _plain,
    torch.Tensor.int_repr: lambda tensor: steps_of(tensor, _scheme(tensor)),
    torch.int_repr: lambda tensor: steps_of(tensor, _scheme(tensor)),
    torch.Tensor.q_scale: lambda tensor: _scheme(tensor).scale,
    torch.q_scale: lambda tensor: _scheme(tensor).scale,
    torch.Tensor.q_zero_point: lambda tensor: _scheme(tensor).zero_point,
    torch.q_zero_point: lambda tensor: _scheme(tensor).zero_point,
    torch.Tensor.is_quantized.__get__: lambda tensor: True,  # type: ignore[attr-defined]
    torch.Tensor.dtype.__get__: lambda tensor: _scheme(tensor).kind,  # type: ignore[attr-defined]
}
"""What is asked of a quantised tensor."""
