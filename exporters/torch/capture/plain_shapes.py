"""The shapes that torch's plainest operators make, where they follow from those of the operands without a question.

torch (2.13) computes the result of a ``relu`` or a layer normalisation without values by its reference in Python, step
by step, and compares sizes and strides in each. With symbols for sizes that takes ten milliseconds and more, of which a
capture has thousands. Here, results of operands that are laid out plainly are laid out plainly, too; whatever is not as
plain as that is left to torch.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias
from unittest import mock

import torch

from entrepot.exporters.torch.capture.plain_views import view_rules
from entrepot.exporters.torch.upstream import (
    FakeTensor,
    FakeTensorMode,
    fast_shapes,
    guarding_hint_or_throw,
    has_guarding_hint,
    is_surely_contiguous,
    layouts,
    meta_table,
    shape_rules,
    size_functions,
    size_settings,
)

_Kind: TypeAlias = Callable[["Sequence[Any]"], "torch.dtype | None"]
"""The element type of what comes of some operands, or ``None`` where torch is to say."""

_Rule: TypeAlias = Callable[..., Any]

_FLOATS = frozenset((torch.float16, torch.bfloat16, torch.float32, torch.float64))

_OF_ONE = """abs.default acos.default asin.default atan.default ceil.default celu.default clamp.default
clamp_max.default clamp_min.default cos.default cosh.default elu.default erf.default erfc.default exp.default
expm1.default floor.default gelu.default hardsigmoid.default hardswish.default hardtanh.default leaky_relu.default
log.default log1p.default log_sigmoid.default mish.default neg.default pow.Tensor_Scalar reciprocal.default
relu.default relu6.default round.default rsqrt.default sigmoid.default silu.default sin.default sinh.default
softplus.default sqrt.default tan.default tanh.default trunc.default"""
"""Of one tensor of floats, and numbers perhaps; the result is of the same type."""

_OF_SEVERAL = "add.Tensor sub.Tensor mul.Tensor div.Tensor maximum.default minimum.default pow.Tensor_Tensor"
"""Of floats of one type, with a number in the place of a tensor perhaps."""

_OF_BITS = "bitwise_and.Tensor bitwise_or.Tensor bitwise_xor.Tensor"

_COMPARISONS = """eq.Scalar eq.Tensor ge.Scalar ge.Tensor gt.Scalar gt.Tensor le.Scalar le.Tensor logical_and.default
logical_not.default logical_or.default logical_xor.default lt.Scalar lt.Tensor ne.Scalar ne.Tensor"""


@contextlib.contextmanager
def plain_shapes() -> Iterator[None]:
    """Inside, what is plain about the results of operators on tensors without values is not computed by torch."""
    with mock.patch.dict(fast_shapes(), _rules()), mock.patch.object(layouts, "is_contiguous", _Contiguous()):
        yield


class _Contiguous:
    """Stands where torch asks whether a tensor is laid out in the order of its axes; what is so once, stays so.

    Where torch asks for what is surely so, sizes are not compared if the sample says no, or the formulas say yes.
    """

    def __init__(self) -> None:
        self._asks = layouts.is_contiguous
        self._known: set[tuple[Any, ...]] = set()
        self._settings: Any = size_settings

    def __call__(self, tensor: Any, false_if_dde: bool = False) -> bool:
        layout = [*tensor.shape, *tensor.stride()]
        symbols = (size.node for size in layout if isinstance(size, torch.SymInt))
        if (first := next(symbols, None)) is None:
            return bool(self._asks(tensor, false_if_dde))
        rank = len(tensor.shape)
        terms = [size.node.expr if isinstance(size, torch.SymInt) else size for size in layout]
        form = first.shape_env, rank, *terms
        if form in self._known:
            return True
        surely = false_if_dde and self._settings.backed_size_oblivious  # elsewhere, the sample decides, and is noted
        if surely and _is_in_another_order(layout[:rank], layout[rank:]):
            return False
        found = surely and _is_spelled_in_order(terms[:rank], terms[rank:])
        found = found or bool(self._asks(tensor, false_if_dde))
        if found:
            self._known.add(form)
        return found


def _is_in_another_order(shape: Sequence[Any], strides: Sequence[Any]) -> bool:
    """Whether the sample shows that a tensor is not laid out in the order of its axes."""
    if not all(map(has_guarding_hint, (*shape, *strides))):
        return False
    sizes, steps = map(guarding_hint_or_throw, shape), map(guarding_hint_or_throw, strides)
    expected, apart = 1, False
    for size, given, step in zip(reversed([*sizes]), reversed(shape), reversed([*steps]), strict=True):
        if size == 0 or (size == 1 and type(given) is not int):  # it may be 1 at all sizes
            return False
        apart = apart or (size != 1 and step != expected)
        expected *= size
    return apart and expected > 1


def _is_spelled_in_order(shape: Sequence[Any], strides: Sequence[Any]) -> bool:
    """Whether strides are spelled as torch spells those of a tensor that is laid out in the order of its axes."""
    expected: Any = 1
    least: Any = 1
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        if stride not in (expected, least):
            return False
        expected, least = expected * size, least * size_functions.Max(1, size)
    return True


@functools.cache
def _rules() -> Mapping[Any, _Rule]:
    kinds: dict[str, tuple[str, _Kind]] = {
        "one": (_OF_ONE, _same_float),
        "several": (_OF_SEVERAL, _same_float),
        "bits": (_OF_BITS, _same_bits),
        "comparisons": (_COMPARISONS, _truth),
    }
    rules: dict[Any, _Rule] = {}
    for names, kind in kinds.values():
        for operator in filter(None, map(_operator, names.split())):
            rules[operator] = _elementwise(operator, kind)
    for name, rule in (
        ("where.self", _where),
        ("mean.dim", _reduction),
        ("sum.dim_IntList", _reduction),
        ("native_layer_norm.default", _layer_norm),
        ("_native_batch_norm_legit_no_training.default", _batch_norm),
    ):
        if (operator := _operator(name)) is not None:
            rules[operator] = functools.partial(rule, _torchs(operator))
    return rules | view_rules()


def _operator(name: str) -> Any:
    """An operator that torch has a reference for, which is what stands in for it otherwise."""
    packet, overload = name.split(".")
    operator = getattr(getattr(torch.ops.aten, packet, None), overload, None)
    known = operator in shape_rules and operator not in meta_table
    return operator if known or operator in fast_shapes() else None


def _torchs(operator: Any) -> _Rule:
    """What torch does for want of a rule."""
    quick = fast_shapes().get(operator)
    if quick is not None:
        return quick
    reference = shape_rules[operator]

    def compute(mode: FakeTensorMode, *args: Any, **kwargs: Any) -> Any:
        with mode:
            return reference(*args, **kwargs)

    return compute


def _elementwise(operator: Any, kind: _Kind) -> _Rule:
    torchs = _torchs(operator)

    def rule(mode: FakeTensorMode, *args: Any, **kwargs: Any) -> Any:
        operands = [each for each in args if isinstance(each, torch.Tensor)]
        element = None if kwargs.keys() - {"alpha", "approximate"} else kind(args)
        made = None if element is None else _made(mode, operands, element)
        return torchs(mode, *args, **kwargs) if made is None else made

    return rule


def _where(torchs: _Rule, mode: FakeTensorMode, *args: Any) -> Any:
    condition, *others = args
    element = others[0].dtype if condition.dtype == torch.bool and _are_of_one_type(others) else None
    made = None if element is None else _made(mode, args, element)
    return torchs(mode, *args) if made is None else made


def _reduction(
    torchs: _Rule, mode: FakeTensorMode, source: torch.Tensor, dim: Any, keepdim: Any = False, **kwargs: Any
) -> Any:
    """A sum or a mean along some axes, which are left out or of size 1 in it."""
    axes = {axis % source.dim() for axis in dim or () if -source.dim() <= axis < source.dim()}
    plain = not kwargs and dim and len(axes) == len(dim) and source.dtype in _FLOATS and _are_plain([source])
    if not plain:
        return torchs(mode, source, dim, keepdim, **kwargs)
    kept = [(1 if at in axes else size) for at, size in enumerate(source.shape) if keepdim or at not in axes]
    return _empty(mode, kept, source.dtype, source.device)


def _layer_norm(
    torchs: _Rule, mode: FakeTensorMode, source: torch.Tensor, inner: Sequence[Any], *weights: Any
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor] | Any:
    """What is normalised, [*outer, *inner], and of each part [*inner] the mean and the reciprocal of its deviation."""
    outer, axes = source.shape[: source.dim() - len(inner)], source.shape[source.dim() - len(inner) :]
    given = [weight for weight in weights[:2] if weight is not None]
    plain = _same_sizes(axes, inner) and all(_same_sizes(weight.shape, inner) for weight in given)
    if not (plain and source.dtype == torch.float32 and source.device.type == "cpu"):
        return torchs(mode, source, inner, *weights)
    kept = (*outer, *(1 for _ in inner))
    return tuple(_empty(mode, sizes, source.dtype, source.device) for sizes in (source.shape, kept, kept))


def _batch_norm(
    torchs: _Rule, mode: FakeTensorMode, source: torch.Tensor, *others: Any
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor] | Any:
    """What is normalised, [n, channels, *], and two tensors that are for gradients alone."""
    given = [each for each in others if isinstance(each, torch.Tensor)]
    channels = source.shape[1:2] if source.dim() > 1 else ()
    plain = channels and all(_same_sizes(each.shape, channels) for each in given)
    if not (plain and source.dtype == torch.float32 and source.device.type == "cpu" and _are_plain([source])):
        return torchs(mode, source, *others)
    shapes: Sequence[Any] = (source.shape, (0,), (0,))
    return tuple(_empty(mode, sizes, source.dtype, source.device) for sizes in shapes)


def _made(mode: FakeTensorMode, operands: Sequence[Any], element: torch.dtype) -> torch.Tensor | None:
    """The elementwise result of operands in the order of their axes, in memory as well."""
    shape = _broadcast([each.shape for each in operands])
    if shape is None or not _are_plain(operands):
        return None
    return _empty(mode, shape, element, operands[0].device)


def _empty(mode: FakeTensorMode, shape: Sequence[Any], element: torch.dtype, device: torch.device) -> torch.Tensor:
    return FakeTensor(mode, torch.empty(shape, dtype=element, device="meta"), device=device)


def _are_plain(operands: Sequence[Any]) -> bool:
    """Whether tensors without values are on one device, and in the order of their axes in memory."""
    device = operands[0].device
    return all(
        isinstance(each, FakeTensor) and each.device == device and is_surely_contiguous(each) for each in operands
    )


def _broadcast(shapes: Sequence[Sequence[Any]]) -> list[Any] | None:
    """The shape of all together, where each axis has one size, or 1."""
    found: list[Any] = [1] * max(map(len, shapes))
    for shape in shapes:
        for at, size in enumerate(shape, len(found) - len(shape)):
            if type(size) is int and size == 1:
                continue
            if type(found[at]) is int and found[at] == 1:
                found[at] = size
            elif not _is_same(found[at], size):
                return None
    return found


def _same_sizes(one: Sequence[Any], other: Sequence[Any]) -> bool:
    return len(one) == len(other) and all(map(_is_same, one, other))


def _is_same(one: Any, other: Any) -> bool:
    """Whether two sizes are one, without asking for it."""
    if type(one) is int or type(other) is int:
        return type(one) is type(other) and one == other
    return bool(one.node.expr == other.node.expr)


def _same_float(args: Sequence[Any]) -> torch.dtype | None:
    """That of floats of one type."""
    tensors = [each for each in args if isinstance(each, torch.Tensor)]
    numbers = (each for each in args if not isinstance(each, torch.Tensor))
    if any(isinstance(each, complex) for each in numbers) or not _are_of_one_type(tensors):
        return None
    return tensors[0].dtype if tensors[0].dtype in _FLOATS else None


def _same_bits(args: Sequence[Any]) -> torch.dtype | None:
    return args[0].dtype if all(isinstance(each, torch.Tensor) for each in args) and _are_of_one_type(args) else None


def _truth(_: Sequence[Any]) -> torch.dtype:
    return torch.bool


def _are_of_one_type(tensors: Sequence[Any]) -> bool:
    return bool(tensors) and all(isinstance(each, torch.Tensor) and each.dtype == tensors[0].dtype for each in tensors)
