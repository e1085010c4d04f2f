"""How torch computes the shapes of what is captured, where its own way asks too much of sizes, or takes too long."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias
from unittest import mock

import torch

from entrepot.exporters.torch.capture.disproved import disproved_by_the_sample
from entrepot.exporters.torch.capture.plain_shapes import plain_shapes
from entrepot.exporters.torch.capture.terms import terms_in_pairs
from entrepot.exporters.torch.upstream import (
    guarding_hint_or_throw,
    has_guarding_hint,
    meta_registrations,
    overlap_of,
    shape_inference,
    shape_rules,
    size_settings,
    tensor_settings,
)

_Shape: TypeAlias = "Sequence[int | torch.SymInt]"


@contextlib.contextmanager
def capture_settings() -> Iterator[None]:
    """Inside, contiguity checks make no conditions of sizes, as in torch.onnx (2.13): they ask whether these are 1.

    What is broadcast in the sample is broadcast all the same. torch sees to that, but for one function of its own.

    Of what is written to, torch (2.13) asks whether elements of it are in one place, and for that whether sizes are 2
    or more. Such conditions would decide branches of the module later on; one on how many pieces a length has, even
    those on short lengths. Here it is asked of the sample.

    Nor does torch remember what operators return for tensors without values: where sizes are symbols, it takes longer
    to look a result up than to compute it again (whole exports by up to a third).

    And Fourier transforms of tensors without values are laid out plainly: torch (2.13) resizes them in place, which it
    refuses where sizes are symbols.

    What is sampled on a grid is laid out, too, instead of being computed as torch's decomposition does (2.13), in about
    a hundred operators for each.
    """
    lay_out: Any = meta_registrations._exec_fft  # noqa: SLF001

    def laid_out(out: torch.Tensor, source: torch.Tensor, sizes: Sequence[Any], dim: Any, *, forward: bool) -> Any:
        if source.device.type == "cuda":  # others look at what becomes of ``out``
            return lay_out(out, source, sizes, dim, forward=forward)
        return out.new_empty(sizes)

    with (
        mock.patch.object(meta_registrations, "_exec_fft", laid_out),
        mock.patch.object(torch, overlap_of.__name__, _overlap),
        mock.patch.object(shape_inference, "infer_size", _broadcast(shape_inference.infer_size)),
        plain_shapes(),
        disproved_by_the_sample(),
        terms_in_pairs(),
        mock.patch.dict(shape_rules, {torch.ops.aten.grid_sampler_2d.default: _sampled}),
        size_settings.patch(backed_size_oblivious=True),  # type: ignore[attr-defined]
        tensor_settings.patch(fake_tensor_cache_enabled=False),
    ):
        yield


def _broadcast(infer: Callable[[_Shape, _Shape], _Shape]) -> Callable[[_Shape, _Shape], _Shape]:
    """The function with what torch (2.13) does elsewhere: a size that has to be 1 in the sample is taken for 1.

    ``bias[:, max(0, 1 - length):]`` has one row, however long the other operand is.
    """

    def inferred(one: _Shape, other: _Shape) -> _Shape:
        return infer(*_with_ones(one, other))

    return inferred


def _with_ones(one: _Shape, other: _Shape) -> tuple[_Shape, _Shape]:
    """Two shapes with 1 for what has to be: of several sizes at once, torch does not see it in the condition."""
    shapes = [*one], [*other]
    for at in range(1, min(len(one), len(other)) + 1):
        sizes = [shape[-at] for shape in shapes]
        if any(type(size) is not int for size in sizes) and all(map(has_guarding_hint, sizes)):
            hints = [guarding_hint_or_throw(size) for size in sizes]
            for shape, size, hint in zip(shapes, sizes, hints, strict=True):
                if hint == 1 and max(hints) != 1:
                    torch._check(size == 1)  # noqa: SLF001 - documented
                    shape[-at] = 1
    return shapes


def _overlap(tensor: torch.Tensor) -> int:
    """1 if several elements are in one place, as far as the sample tells, 2 if that is not known."""
    sizes: Sequence[Any] = tensor.shape
    if all(type(size) is int for size in sizes):
        return int(overlap_of(tensor))
    repeated = (
        size for size, stride in zip(sizes, tensor.stride(), strict=True) if type(stride) is int and stride == 0
    )
    return 1 if any(has_guarding_hint(size) and guarding_hint_or_throw(size) > 1 for size in repeated) else 2


def _sampled(source: torch.Tensor, grid: torch.Tensor, *_: Any) -> torch.Tensor:
    """What sampling a picture [n, channels, height, width] at places [n, h, w, 2] gives: [n, channels, h, w]."""
    torch._check(source.shape[0] == grid.shape[0])  # noqa: SLF001 - documented
    torch._check(grid.shape[3] == 2)  # noqa: SLF001
    return source.new_empty((*source.shape[:2], *grid.shape[1:3]))
