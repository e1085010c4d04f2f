"""The operators of the standard domains and when each changed, read from ``onnx.defs``."""

from __future__ import annotations

import functools
from bisect import bisect_right

import onnx

from entrepot.ir.opset import ML_OPSET, OPSET

CEILINGS = {"": OPSET, "ai.onnx.ml": ML_OPSET}
"""The newest version of each domain that our rules cover; a newer installed onnx does not change it."""


def canonical(domain: str) -> str:
    """``""`` for ai.onnx, however it is spelled."""
    return "" if domain == "ai.onnx" else domain


@functools.cache
def histories() -> dict[tuple[str, str], tuple[int, ...]]:
    """(domain, operator) to its since-versions, oldest first, up to the ceilings."""
    found: dict[tuple[str, str], list[int]] = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.since_version <= CEILINGS.get(schema.domain, 0):
            found.setdefault((schema.domain, schema.name), []).append(schema.since_version)
    return {key: tuple(sorted(versions)) for key, versions in found.items()}


@functools.cache
def since(domain: str, op_type: str, opset: int) -> int:
    """The since-version in force at ``opset``; 0 when the operator does not exist yet or is unknown."""
    versions = histories().get((domain, op_type), ())
    index = bisect_right(versions, opset)
    return versions[index - 1] if index else 0


@functools.cache
def schema(domain: str, op_type: str, since_version: int) -> onnx.defs.OpSchema:
    """The schema that came into force at ``since_version``."""
    return onnx.defs.get_schema(op_type, since_version, domain)
