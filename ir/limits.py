"""What a file may ask for at most."""

from __future__ import annotations

import sys
from dataclasses import dataclass, fields

from entrepot.ir.arguments import as_integer, as_kind


@dataclass(frozen=True)
class Limits:
    """Bounds on what reading and running a model may cost; the defaults admit every real model.

    Attributes:
        nodes: Nodes in all graphs, subgraphs and functions of the file.
        expanded_nodes: Nodes after every call of a model-local function is expanded.
        nesting: Depth of subgraphs within subgraphs, and of types within types; a protobuf file can hold no more.
        tensor_bytes: Size of one tensor.
        total_bytes: Size of all tensors together.
        dense_bytes: Size of one sparse tensor in its dense form.
        dims: Rank of one tensor.
        result_bytes: Size of one result at run time; what is only a view of less counts with all its elements.
        loop_iterations: Trips of all loops in one run, those of loops within loops included.
    """

    nodes: int = 2_000_000
    expanded_nodes: int = 10_000_000
    nesting: int = 32
    tensor_bytes: int = 1 << 40
    total_bytes: int = 1 << 43
    dense_bytes: int = 1 << 34
    dims: int = 64
    result_bytes: int = 1 << 34
    loop_iterations: int = 10_000_000

    def __post_init__(self) -> None:
        """Refuse a bound that is not a whole number."""
        for field in fields(self):
            bound = as_integer(
                getattr(self, field.name), f"limit {field.name}", least=0, hint="Limits.unlimited() lifts all bounds"
            )
            object.__setattr__(self, field.name, bound)

    @classmethod
    def of(cls, given: Limits | None) -> Limits:
        """The limits given; the default ones for ``None``.

        Raises:
            InputError: They are something else.
        """
        return cls() if given is None else as_kind(given, cls, "limits", hint="limits=ep.Limits(nodes=1000)")

    @classmethod
    def unlimited(cls) -> Limits:
        """No bounds, for files of known origin; nesting stays within what protobuf itself admits."""
        none = sys.maxsize
        return cls(none, none, cls.nesting, none, none, none, none, none, none)
