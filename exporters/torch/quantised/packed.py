"""Weights that torch keeps quantised or packed, laid open while a module is captured: integers, scales, offsets.

They are buffers of the module then, so that they have names in the graph; what held them refers to those.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from entrepot.exporters.torch.quantised.observers import fake_quantised
from entrepot.exporters.torch.quantised.scheme import Scheme, marked, scheme_of
from entrepot.exporters.torch.running.swapping import put_back
from entrepot.exporters.torch.translations.quantisation import dequantise
from entrepot.exporters.torch.upstream import FakeQuantizeBase, cell_parts, is_stub, script_type
from entrepot.ir.errors import UnsupportedOpError


@dataclass(frozen=True, eq=False)
class Held:
    """A quantised tensor, as buffers of a module.

    Attributes:
        owner: The module.
        name: What the buffer with the integers is called; the others have names that begin with it.
        kind: torch's element type; ``None`` for a tensor that is only stored in fewer bits.
        axis: Along which there are several scales.
        by_row: Whether zero is a fraction of a step, as in tables that are quantised row by row.
    """

    owner: torch.nn.Module
    name: str
    kind: torch.dtype | None = None
    axis: int = 0
    by_row: bool = False

    def tensor(self) -> torch.Tensor:
        """The numbers that it stands for."""
        steps = self.part("")
        if self.kind is None:
            return steps.to(torch.float32)
        if self.by_row:
            return steps.to(torch.float32) * self.part("_scale") + self.part("_offset")
        scheme = Scheme(self.part("_scale"), self.part("_zero_point"), self.kind, self.axis)
        return marked(dequantise(steps, scheme.scale, scheme.zero_point, scheme.axis), scheme)

    def rows(self, indices: torch.Tensor) -> torch.Tensor:
        """Some rows of it, without the others."""
        if not self.by_row:
            return self.tensor()[indices]
        return self.part("")[indices].to(torch.float32) * self.part("_scale")[indices] + self.part("_offset")[indices]

    def part(self, suffix: str) -> torch.Tensor:
        """One of the buffers: the integers, or what belongs to them."""
        found = self.owner._buffers[self.name + suffix]  # noqa: SLF001 - a method may have the name of the buffer
        assert found is not None
        return found

    def __getattr__(self, name: str) -> Any:
        return getattr(self.tensor(), name)

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Lets functions of torch take it, since the mode that is on puts the tensor in its place."""
        return NotImplemented


@dataclass(frozen=True, eq=False)
class Packed:
    """What an operator computes with: a weight, perhaps a bias, and how a convolution is made.

    Attributes:
        held: The weight.
        bias: The name of the buffer; empty if there is none.
        layout: The arguments of a convolution after its bias.
        transposed: Whether it is a transposed one.
    """

    held: Held
    bias: str = ""
    layout: Mapping[str, Any] = field(default_factory=dict)
    transposed: bool = False

    @property
    def weight(self) -> torch.Tensor:
        """The numbers."""
        return self.held.tensor()

    @property
    def added(self) -> torch.Tensor | None:
        """The bias."""
        return self.held.owner._buffers[self.bias] if self.bias else None  # noqa: SLF001


@dataclass(frozen=True, eq=False)
class Cell:
    """The weights of one layer of a recurrent network, in one direction.

    Attributes:
        input: Applied to the sequence.
        hidden: Applied to the state.
        reduced: Whether activations are quantised to seven bits.
    """

    input: Packed
    hidden: Packed
    reduced: bool


def has_packed(root: torch.nn.Module) -> bool:
    """Whether a module holds weights that are packed or quantised."""
    return any(
        isinstance(value, torch.ScriptObject) or (isinstance(value, torch.Tensor) and value.is_quantized)
        for part in root.modules()
        if not isinstance(part, torch.jit.ScriptModule)
        for value in (*vars(part).values(), *part._buffers.values(), *part._parameters.values())  # noqa: SLF001
    )


@contextlib.contextmanager
def laid_open(root: torch.nn.Module) -> Iterator[None]:
    """Inside, nothing in a module is packed or quantised."""
    parts = {path: part for path, part in root.named_modules() if not isinstance(part, torch.jit.ScriptModule)}
    with put_back(parts.values()):
        for path in parts:
            _lay_open(parts, path)
        yield


def _lay_open(parts: Mapping[str, torch.nn.Module], path: str) -> None:
    part, owner = parts[path], _owner(parts, path)
    for key, value in list(vars(part).items()):
        if isinstance(value, torch.ScriptObject):
            vars(part)[key] = _opened(owner, key, value)
        elif isinstance(value, torch.Tensor) and value.is_quantized:
            vars(part)[key] = hold(part, key, value)
    _open_tables(part)
    if isinstance(part, FakeQuantizeBase):
        part.__dict__["forward"] = functools.partial(fake_quantised, part, on=bool(part.fake_quant_enabled))
    if is_stub(part):  # reads its buffers as Python numbers
        for key in ("scale", "zero_point"):
            if isinstance(value := part._buffers.pop(key, None), torch.Tensor):  # noqa: SLF001
                vars(part)[key] = value.item()


def _open_tables(part: torch.nn.Module) -> None:
    """Quantised buffers and parameters."""
    for table in (part._buffers, part._parameters):  # noqa: SLF001
        for key, value in list(table.items()):
            if value is not None and value.is_quantized:
                del table[key]
                vars(part)[key] = hold(part, f"{key}_steps", value)


def _owner(parts: Mapping[str, torch.nn.Module], path: str) -> torch.nn.Module:
    """The part, or if it is one that torch made to hold weights, what that is a part of."""
    while path.rpartition(".")[2].startswith("_"):
        path = path.rpartition(".")[0]
    return parts[path]


def _opened(owner: torch.nn.Module, key: str, value: Any) -> Packed | Cell:
    kind = script_type(value)
    name = _name(key)
    if "CellParams" in kind:
        return _cell(owner, name, value)
    if "Linear" in kind:
        return pack(owner, name, *value.unpack())
    if "Embedding" in kind:
        return Packed(hold(owner, name, torch.ops.quantized.embedding_bag_unpack(value)))
    if "Conv" in kind:
        return _convolution(owner, name, value)
    raise UnsupportedOpError(f"a module holds a {kind}, which cannot be exported", hint="replace it by a torch module")


def _name(key: str) -> str:
    for prefix in ("_packed_params", "_packed_weight"):
        if key.startswith(prefix):
            return f"weight{key.removeprefix(prefix)}"
    return f"{key.strip('_')}_weight"


def pack(owner: torch.nn.Module, name: str, weight: torch.Tensor, bias: torch.Tensor | None, **layout: Any) -> Packed:
    """A weight and a bias as buffers of a module."""
    held = hold(owner, name, weight)
    if bias is None:
        return Packed(held, "", layout)
    called = name.replace("weight", "bias") if "weight" in name else f"{name}_bias"
    owner._buffers[called] = bias.detach()  # noqa: SLF001
    return Packed(held, called, layout)


def _convolution(owner: torch.nn.Module, name: str, value: Any) -> Packed:
    weight, bias = value.unpack()
    layout = {"stride": value.stride(), "padding": value.padding()}
    if value.transpose():
        layout["output_padding"] = value.output_padding()
    packed = pack(owner, name, weight, bias, **layout, dilation=value.dilation(), groups=value.groups())
    return Packed(packed.held, packed.bias, packed.layout, bool(value.transpose()))


def _cell(owner: torch.nn.Module, name: str, value: Any) -> Cell:
    reduced, packs = cell_parts(value)
    stem = name.removesuffix("param_weight")
    pairs = zip(("ih", "hh"), packs, strict=True)
    ih, hh = (pack(owner, f"{stem}weight_{which}", *inner.unpack()) for which, inner in pairs)
    return Cell(ih, hh, reduced)


def hold(owner: torch.nn.Module, name: str, value: torch.Tensor) -> Held:
    """A tensor as buffers of a module; the integers are in a buffer of this name."""
    buffers = owner._buffers  # noqa: SLF001
    value = value.detach()
    if not value.is_quantized:
        buffers[name] = value.to(torch.float16) if torch.equal(value.half().float(), value.float()) else value
        return Held(owner, name)
    if value.qscheme() is torch.per_channel_affine_float_qparams:
        return _hold_rows(owner, name, value)
    several = value.qscheme() is torch.per_channel_affine
    axis = value.q_per_channel_axis() if several else 0
    scale: Any = value.q_per_channel_scales() if several else value.q_scale()
    zero: Any = value.q_per_channel_zero_points() if several else value.q_zero_point()
    plain = Scheme(1.0, 0, value.dtype).plain
    buffers[name] = value.int_repr()
    buffers[f"{name}_scale"] = torch.as_tensor(scale, dtype=torch.float32)
    buffers[f"{name}_zero_point"] = torch.as_tensor(zero, dtype=plain)
    return Held(owner, name, value.dtype, axis)


def _hold_rows(owner: torch.nn.Module, name: str, value: torch.Tensor) -> Held:
    """A table whose rows have scales of their own; what has four bits gets eight, as opset 20 has no fewer."""
    scale, zero = (
        each.to(torch.float32)[:, None] for each in (value.q_per_channel_scales(), value.q_per_channel_zero_points())
    )
    buffers = owner._buffers  # noqa: SLF001
    buffers[name] = torch.round(value.dequantize() / scale + zero).to(torch.uint8)
    buffers[f"{name}_scale"], buffers[f"{name}_offset"] = scale, -zero * scale
    return Held(owner, name, value.dtype, by_row=True)


def opened(value: Any) -> Any:
    """The tensor of a ``Held``; anything else as it is."""
    return value.tensor() if isinstance(value, Held) else value


def is_quantised(value: Any) -> bool:
    """Whether something stands for a quantised tensor."""
    return isinstance(value, Held) or scheme_of(value) is not None
