"""A ScriptModule as a module that Python runs: its graph, node by node, so that torch.export can follow it.

Branches and loops are taken as they go for the sizes at hand. A branch on the values of a tensor is computed both
ways, and the results are chosen element by element.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from entrepot.exporters.torch.scripts.values import DTYPES, FORMATS, NUMBERS, PLAIN
from entrepot.exporters.torch.upstream import ScriptNode, parsed_schema, script_graph
from entrepot.ir.errors import UnsupportedOpError

_MOST_TURNS = 10_000
_UNSET = object()
_DIRECT = {function.__name__: function for function in (torch.lstm, torch.gru, torch.rnn_tanh, torch.rnn_relu)}
"""Called by the names under which captures know them."""


class _Held(torch.nn.Module):
    """Parameters and buffers of a ScriptModule under their own names, and its other attributes."""

    def __init__(self, script: Any) -> None:
        super().__init__()
        self.script = (script,)  # in a tuple, so that it is no child of this module
        for name, value in script.named_parameters(recurse=False):
            known = value is None or isinstance(value, torch.nn.Parameter)  # of a file, they are plain tensors
            self.register_parameter(name, value if known else torch.nn.Parameter(value, value.requires_grad))
        for name, value in script.named_buffers(recurse=False):
            self.register_buffer(name, value)
        for name, child in script.named_children():
            self.add_module(name, _Held(child))

    def look_up(self, name: str) -> Any:
        for table in (self._modules, self._parameters, self._buffers):
            if name in table:
                return table[name]
        return getattr(self.script[0], name)


class Reader(_Held):
    """Runs what a ScriptModule's ``forward`` says."""

    def __init__(self, script: torch.jit.ScriptModule) -> None:
        super().__init__(script)
        self.training = False
        self._graph = script_graph(script)
        schema: Any = script.forward.schema  # type: ignore[attr-defined]
        self._names = [argument.name for argument in schema.arguments[1:]]
        self._defaults = {each.name: each.default_value for each in schema.arguments[1:] if each.has_default_value()}

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run it."""
        given = self._defaults | dict(zip(self._names, args, strict=False)) | kwargs
        values: dict[str, Any] = {}
        for name, value in zip(self._graph.inputs(), [self, *(given[name] for name in self._names)], strict=True):
            values[name.debugName()] = value
        _Run(values).block(self._graph)
        results = [values[each.debugName()] for each in self._graph.outputs()]
        return results[0] if len(results) == 1 else tuple(results)


class _Run:
    """One run, with its values by name."""

    def __init__(self, values: dict[str, Any]) -> None:
        self._values = values

    def block(self, block: Any) -> list[Any]:
        for node in block.nodes():
            self._node(node)
        return [self._values[each.debugName()] for each in block.outputs()]

    def _node(self, node: ScriptNode) -> None:
        kind = node.kind()
        if kind in ("prim::If", "prim::Loop"):
            results = self._if(node) if kind == "prim::If" else self._loop(node)
        else:
            inputs = [self._values[each.debugName()] for each in node.inputs()]
            form = _FORMS.get(kind) or _operator(node)
            found = form(node, inputs)
            several = node.outputsSize() != 1
            results = list(found) if several and found is not None else [found]
        for output, value in zip(node.outputs(), results, strict=False):
            self._values[output.debugName()] = value

    def _if(self, node: ScriptNode) -> list[Any]:
        (condition,) = (self._values[each.debugName()] for each in node.inputs())
        yes, no = node.blocks()
        if not isinstance(condition, torch.Tensor):
            return self.block(yes if condition else no)
        for block in (yes, no):
            _check_pure(block)
        first, second = self.block(yes), self.block(no)
        return [_chosen(condition, a, b) for a, b in zip(first, second, strict=True)]

    def _loop(self, node: ScriptNode) -> list[Any]:
        most, going_on, *carried = (self._values[each.debugName()] for each in node.inputs())
        (body,) = node.blocks()
        names = [each.debugName() for each in body.inputs()]
        turn = 0
        while turn < most:
            if isinstance(going_on, torch.Tensor):
                raise UnsupportedOpError(
                    f"a loop ends when a tensor says so{_place(node)}", hint="bound it by a number of turns"
                )
            if not going_on:
                break
            if turn > _MOST_TURNS:
                raise UnsupportedOpError(f"a loop has more than {_MOST_TURNS} turns{_place(node)}")
            self._values.update(zip(names, [turn, *carried], strict=True))
            going_on, *carried = self.block(body)
            turn += 1
        return carried


def _chosen(condition: torch.Tensor, first: Any, second: Any) -> Any:
    """What one of two branches returned, where a tensor says which."""
    if first is _UNSET or second is _UNSET:
        return second if first is _UNSET else first
    if isinstance(first, torch.Tensor) and isinstance(second, torch.Tensor) and first.dim() == second.dim():
        return torch.where(condition, first, second)
    if type(first) is type(second) and not isinstance(first, torch.Tensor | list | tuple) and first == second:
        return first
    if isinstance(first, _SINGLE) and isinstance(second, _SINGLE) and _dims(first) == _dims(second) == 0:
        return torch.where(condition, torch.as_tensor(first), torch.as_tensor(second))
    if isinstance(first, list | tuple) and isinstance(second, list | tuple) and len(first) == len(second):
        return type(first)(_chosen(condition, a, b) for a, b in zip(first, second, strict=True))
    raise UnsupportedOpError(
        "two branches return different things, and a tensor says which is taken",
        hint="let both return tensors of the same shape",
    )


_SINGLE = (torch.Tensor, bool, int, float)


def _dims(value: Any) -> int:
    return value.dim() if isinstance(value, torch.Tensor) else 0


def _check_pure(block: Any) -> None:
    """Refuse a branch that does more than compute, since it will be run whether it is taken or not."""
    for node in block.nodes():
        name = node.kind().partition("::")[2]
        writes = name.endswith("_") and not name.endswith("__")
        if writes or name in ("append", "_set_item", "extend", "insert", "pop", "SetAttr", "RaiseException"):
            raise UnsupportedOpError(
                f"a branch that a tensor decides on changes something, by {node.kind()}{_place(node)}",
                hint="compute new values in both branches, and return them",
            )
        for inner in node.blocks():
            _check_pure(inner)


def _place(node: ScriptNode) -> str:
    text = node.sourceRange()
    line = next((each for each in text.splitlines() if each.lstrip().startswith("File ")), "")
    return f" at {line.strip()}" if line else ""


def _operator(node: ScriptNode) -> Callable[[ScriptNode, list[Any]], Any]:
    """How an operator of a library is called."""
    domain, _, name = node.kind().partition("::")
    schema = node.schema()
    if schema == "(no schema)":
        raise UnsupportedOpError(
            f"{node.kind()} of TorchScript has no counterpart{_place(node)}",
            hint="export the nn.Module that it was made from",
        )
    single = "Tensor" in schema.partition("->")[0].replace("Tensor[]", "")
    if domain == "aten" and name in PLAIN and (not single or name in NUMBERS):
        return lambda _, inputs: PLAIN[name](*inputs)
    return lambda _, inputs: _call(domain, name, schema, inputs)


def _call(domain: str, name: str, schema: str, inputs: list[Any]) -> Any:
    parsed = parsed_schema(schema)
    given, named = [], {}
    for argument, written in zip(parsed.arguments, inputs, strict=True):
        value = _as_torch(str(argument.real_type), written)
        if argument.kwarg_only:
            named[argument.name] = value
        else:
            given.append(value)
    if domain == "aten" and name in _DIRECT:
        return _DIRECT[name](*given, **named)
    packet = getattr(getattr(torch.ops, domain), name)
    return getattr(packet, parsed.overload_name or "default")(*given, **named)


def _as_torch(kind: str, value: Any) -> Any:
    """What TorchScript writes as a number, as torch has it."""
    if not isinstance(value, int) or isinstance(value, bool):
        return value
    if "ScalarType" in kind:
        return DTYPES[value]
    if "MemoryFormat" in kind:
        return FORMATS[value]
    return torch.strided if "Layout" in kind else value


def _get(node: ScriptNode, inputs: list[Any]) -> Any:
    (holder,) = inputs
    name = node.s("name")
    return holder.look_up(name) if isinstance(holder, _Held) else getattr(holder, name)


def _refuse_write(node: ScriptNode, inputs: list[Any]) -> Any:
    raise UnsupportedOpError(
        f"forward changes the attribute '{node.s('name')}'{_place(node)}", hint="a graph keeps no state"
    )


def _raise(node: ScriptNode, inputs: list[Any]) -> Any:
    raise ValueError(str(inputs[0]))


def _same(node: ScriptNode, inputs: Sequence[Any]) -> Any:
    return inputs[0]


_FORMS: dict[str, Callable[[Any, list[Any]], Any]] = {
    "prim::Constant": lambda node, inputs: node.output().toIValue(),
    "prim::GetAttr": _get,
    "prim::SetAttr": _refuse_write,
    "prim::RaiseException": _raise,
    "prim::Uninitialized": lambda node, inputs: _UNSET,
    "prim::ListConstruct": lambda node, inputs: list(inputs),
    "prim::TupleConstruct": lambda node, inputs: tuple(inputs),
    "prim::DictConstruct": lambda node, inputs: dict(zip(inputs[::2], inputs[1::2], strict=True)),
    "prim::ListUnpack": lambda node, inputs: inputs[0] if node.outputsSize() != 1 else inputs[0][0],
    "prim::TupleUnpack": lambda node, inputs: inputs[0] if node.outputsSize() != 1 else inputs[0][0],
    "prim::TupleIndex": lambda node, inputs: inputs[0][inputs[1]],
    "prim::unchecked_cast": _same,
    "prim::unchecked_unwrap_optional": _same,
    "prim::data": _same,
    "prim::Print": lambda node, inputs: None,
    "prim::NumToTensor": lambda node, inputs: (
        torch.scalar_tensor(inputs[0]) if isinstance(inputs[0], float) else inputs[0]
    ),
    "prim::dtype": lambda node, inputs: DTYPES.index(inputs[0].dtype),
    "prim::device": lambda node, inputs: inputs[0].device,
    "prim::layout": lambda node, inputs: 0,
    "prim::is_cuda": lambda node, inputs: False,
    "prim::min": lambda node, inputs: min(*inputs),
    "prim::max": lambda node, inputs: max(*inputs),
    "prim::abs": lambda node, inputs: abs(inputs[0]),
    "aten::dim": lambda node, inputs: inputs[0].dim(),
    "aten::size": lambda node, inputs: list(inputs[0].shape) if len(inputs) == 1 else inputs[0].shape[inputs[1]],
    "aten::tensor": lambda node, inputs: torch.tensor(
        inputs[0], dtype=None if inputs[1] is None else DTYPES[inputs[1]]
    ),
    "aten::is_grad_enabled": lambda node, inputs: True,  # without gradients, layers take fused operators where they can
    "aten::is_floating_point": lambda node, inputs: inputs[0].is_floating_point(),
}
"""How nodes are run that are no operators of a library, or better in Python."""
