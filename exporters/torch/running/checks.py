"""What cannot be exported at all, reported before anything is run."""

from __future__ import annotations

import itertools

import torch

from entrepot.exporters.structure import Flat, constants, is_number
from entrepot.ir.errors import InputError


def check_module(module: torch.nn.Module) -> None:
    """Raise for a module whose weights cannot be read where they are.

    Raises:
        InputError: Weights lie on the meta device or on an accelerator, or are not initialised.
    """
    for name, tensor in itertools.chain(module.named_parameters(), module.named_buffers()):
        if torch.nn.parameter.is_lazy(tensor):
            raise InputError("a lazy parameter has no shape yet", value=name, hint="call the module once")
        if tensor.device.type == "meta":
            raise InputError(
                "the parameter has no values: it is on the meta device",
                value=name,
                hint='load the weights first, or say where they are: weights="model.safetensors"',
            )
        if tensor.device.type != "cpu":
            raise InputError(f"the module is on {tensor.device}", value=name, hint="export module.to('cpu')")


def check_tensors(call: Flat) -> None:
    """Raise for inputs that ONNX has no type for.

    Raises:
        InputError: There is no tensor at all, or one is complex, sparse, quantised or not on the CPU.
    """
    if not call.tensors:
        raise InputError("the sample contains no tensor", hint=_no_tensor(call))
    for name, tensor in zip(call.names, call.tensors, strict=True):
        if tensor.device.type != "cpu":
            raise InputError(f"the sample is on {tensor.device}", value=name, hint="give tensors on the CPU")
        if tensor.dtype.is_complex:
            raise InputError(
                f"its dtype is {tensor.dtype}, which ONNX graphs cannot take as an input",
                value=name,
                hint="take torch.view_as_real(x) as the input and torch.view_as_complex inside",
            )
        if tensor.layout is not torch.strided or tensor.is_quantized:
            raise InputError(
                "it is sparse or quantised", value=name, hint="give a dense tensor: x.to_dense(), x.dequantize()"
            )


def _no_tensor(call: Flat) -> str:
    numbers = [place.value for place in constants(call.tree) if isinstance(place.value, int | float)]
    if not numbers:
        return "give the tensors that the model is called with"
    return f"a number is a constant of the graph; what is to be an input is a tensor: torch.tensor({numbers[0]})"


def check_results(result: Flat) -> None:
    """Raise for results that ONNX has no type for.

    Raises:
        InputError: There is nothing among them that can be an output, or one is complex or quantised.
    """
    if not result.tensors and not any(is_number(place.value) for place in constants(result.tree)):
        raise InputError("forward returns no tensor", hint="return at least one")
    for name, tensor in zip(result.names, result.tensors, strict=True):
        if tensor.dtype.is_complex:
            raise InputError(
                f"forward returns {tensor.dtype}, which ONNX graphs cannot return",
                value=name or None,
                hint="return torch.view_as_real(y)",
            )
        if tensor.is_quantized:
            raise InputError(
                "forward returns a quantised tensor, which ONNX graphs cannot return",
                value=name or None,
                hint="return y.dequantize(), or y.int_repr() for the integers",
            )


def check_outputs(result: Flat) -> None:
    """Raise for a graph without outputs, once it is known which numbers are outputs.

    Raises:
        InputError: The numbers that the module returns do not depend on any size that varies.
    """
    if not result.tensors:
        raise InputError("the module returns nothing but constants", hint="return a tensor, or let an axis vary")
