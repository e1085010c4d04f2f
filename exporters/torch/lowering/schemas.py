"""What the schemas of operators say: which are made of others, which write, and into what."""

from __future__ import annotations

import torch

from entrepot.exporters.torch.upstream import OpOverload


def is_composite(operator: OpOverload) -> bool:
    """Whether it is made of others."""
    return bool(operator._can_decompose())  # noqa: SLF001


def may_write(operator: OpOverload) -> bool:
    """Whether it writes into what it is given; what forgets how that was computed only claims to."""
    return bool(operator._schema.is_mutable) and operator is not torch.ops.aten.detach_.default  # noqa: SLF001


def has_results(operator: OpOverload) -> bool:
    """Whether it computes something; what asserts does not."""
    return bool(operator._schema.returns)  # noqa: SLF001


def memory_of(tensor: torch.Tensor) -> int:
    """The same number for tensors that share memory, with values or without."""
    return int(tensor.untyped_storage()._cdata)  # noqa: SLF001


def viewed(operator: OpOverload) -> list[int]:
    """The places of the arguments whose memory its results may share."""
    schema = operator._schema  # noqa: SLF001
    return [at for at, argument in enumerate(schema.arguments) if argument.alias_info is not None]


def functional_form(operator: OpOverload) -> OpOverload | None:
    """What computes, as a new tensor, what an operator writes into its first argument."""
    schema = operator._schema  # noqa: SLF001
    packet = getattr(getattr(torch.ops, operator.namespace), schema.name.partition("::")[2].removesuffix("_"), None)
    found = getattr(packet, operator._overloadname, None)  # noqa: SLF001
    if found is None or found is operator or found._schema.is_mutable:  # noqa: SLF001
        return None
    same = [(each.name, str(each.type)) for each in found._schema.arguments]  # noqa: SLF001
    writes = [each.is_write for argument in schema.arguments if (each := argument.alias_info) is not None]
    alike = same == [(each.name, str(each.type)) for each in schema.arguments] and len(found._schema.returns) == 1  # noqa: SLF001
    return found if alike and writes == [True] and schema.arguments[0].alias_info is not None else None


def takes_tensors(operator: OpOverload) -> list[bool]:
    """Whether each argument of an operator is a tensor."""
    return [isinstance(each.type, torch.TensorType) for each in operator._schema.arguments]  # noqa: SLF001


def takes_numbers(operator: OpOverload) -> list[bool]:
    """Whether each argument of an operator is a number, whole or not, rather than a tensor."""
    kinds = [each.type for each in operator._schema.arguments]  # noqa: SLF001
    return [isinstance(each.getElementType() if isinstance(each, torch.OptionalType) else each, torch.NumberType)
            for each in kinds]  # fmt: skip
