"""Packages of a narrower type: products and caches in float16 or bfloat16, everything else in float32."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Literal

import onnx_ir as ir

from entrepot.ir.errors import VerificationError
from entrepot.ir.model import Model
from entrepot.ir.passes.narrow_products import NarrowProducts
from entrepot.parity.compare import compare
from entrepot.parity.tolerance import default_tolerance
from entrepot.runtime.generation.package import Package
from entrepot.runtime.providers.onnxruntime.weights import passing

Precision = Literal["float32", "float16", "bfloat16"]
PRECISIONS: tuple[Precision, ...] = ("float32", "float16", "bfloat16")


def narrowed(package: Package, precision: Precision) -> Package:
    """The package with weights, products and caches in a narrower type; scores and what a caller gives stay float32."""
    if precision == "float32":
        return package
    manifest, dtype = package.manifest, ir.DataType[precision.upper()]
    between = {*manifest.constants, *(name for state in manifest.states for name in (state.past, state.present))}
    graphs = {role: _narrowed(model, dtype, between) for role, model in package.graphs.items()}
    states = tuple(
        dataclasses.replace(state, dtype=precision) if state.dtype == "float32" else state for state in manifest.states
    )
    note = f"products, weights and caches are {precision}, everything else is float32"
    changed = dataclasses.replace(manifest, states=states, notes=(*manifest.notes, note))
    return Package(graphs, changed, files=package.files, report=package.report)


def _narrowed(model: Model, dtype: ir.DataType, between: set[str]) -> Model:
    graph = model.ir.clone()
    NarrowProducts(dtype, between)(graph)
    return Model(graph, report=model.report)


def check_close(narrow: Package, wide: Package, inputs: Mapping[str, Any], precision: Precision) -> None:
    """Compare the scores of a prompt with those in float32, as closely as the type allows.

    Raises:
        VerificationError: They are further apart.
    """
    tolerance = default_tolerance(ir.DataType[precision.upper()].numpy())
    with passing():
        comparison = compare(wide.using().forward(**inputs), narrow.using().forward(**inputs), tolerance)
    if not comparison.ok:
        raise VerificationError(f"in {precision} the results are others: {'; '.join(comparison.problems)}")
