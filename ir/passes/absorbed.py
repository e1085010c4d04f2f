"""What is said of a node whose weights have taken in what other nodes did."""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir

_KEY = "entrepot.absorbed"


def mark_absorbed(product: ir.Node, gone: ir.Node) -> None:
    """Say that the weights of ``product`` do the work of ``gone``, too."""
    what = gone.metadata_props.get("entrepot.module") or gone.name or gone.op_type
    earlier = product.metadata_props.get(_KEY)
    product.metadata_props[_KEY] = f"{earlier}, {what}" if earlier else what


def absorbing_weights(model: ir.Model) -> Iterator[str]:
    """The names of the weights that have taken something in."""
    for node in model.graph.all_nodes():
        if _KEY in node.metadata_props:
            yield from (str(value.name) for value in node.inputs[1:] if value is not None and value.is_initializer())
