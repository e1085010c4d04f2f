"""``entrepot info``: what is in a model."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from entrepot.cli.group import verb
from entrepot.cli.models import MODEL_OR_PACKAGE, Source, read_model
from entrepot.cli.output import Output, rows, stack
from entrepot.ir.printable import size_text

if TYPE_CHECKING:
    import onnx_ir
    from rich.console import RenderableType

    from entrepot.ir.inference import NodeInfo
    from entrepot.ir.model import Model, ValueSpec


@verb("info")
@click.argument("model", type=MODEL_OR_PACKAGE)
@click.option("--nodes", "with_nodes", is_flag=True, help="List every node with the types and shapes it works on.")
def command(output: Output, model: Source, with_nodes: bool) -> None:
    """Show inputs, outputs, opsets, operators and weights of MODEL, which may be the folder of a package."""
    if model.folder is not None:
        from entrepot.cli.folders import show_package

        show_package(output, model.folder, with_nodes=with_nodes)
        return
    from entrepot.ir.inference import list_nodes

    loaded = read_model(model, output)
    facts = describe(loaded)
    facts["file_bytes"] = model.size
    if with_nodes:
        facts["node_list"] = [_node(node) for node in list_nodes(loaded)]
    output.result(facts, lambda: _text(facts))


def describe(model: Model) -> dict[str, Any]:
    """Everything there is to know about a model without running it."""
    graph = model.ir.graph
    operators = Counter(_op_name(node) for node in _nodes(model.ir))
    weights = [value.const_value for value in graph.initializers.values() if value.const_value is not None]
    by_dtype: Counter[str] = Counter()
    for weight in weights:
        by_dtype[weight.dtype.name.lower()] += weight.nbytes
    return {
        "path": str(model.path or "-"),
        "graph": graph.name,
        "producer": " ".join(filter(None, (model.ir.producer_name, model.ir.producer_version))),
        "ir_version": model.ir.ir_version,
        "opsets": {domain or "ai.onnx": version for domain, version in model.opsets.items()},
        "inputs": [_spec(spec) for spec in model.inputs],
        "outputs": [_spec(spec) for spec in model.outputs],
        "nodes": operators.total(),
        "operators": dict(operators.most_common()),
        "functions": [f"{function.domain}::{function.name}" for function in model.ir.functions.values()],
        "custom_operators": _custom(model),
        "weights": len(weights),
        "parameters": sum(weight.size for weight in weights),
        "weight_bytes": sum(by_dtype.values()),
        "weight_bytes_by_dtype": dict(by_dtype),
        "external_files": _external_files(weights),
        "metadata": dict(model.metadata),
    }


def _nodes(model: onnx_ir.Model) -> Iterator[onnx_ir.Node]:
    """Every node: of the graph, its subgraphs, and each model-local function once."""
    yield from model.graph.all_nodes()
    for function in model.functions.values():
        yield from function.all_nodes()


def _custom(model: Model) -> dict[str, str]:
    """Operators outside the standard, and who knows them."""
    from entrepot.ir.operators import in_force

    found: dict[str, str] = {}
    for node in _nodes(model.ir):
        if node.domain and not node.domain.startswith("ai.onnx"):
            known = in_force(node.domain, node.op_type, model.opsets.get(node.domain, 1))
            inside = node.op_identifier() in model.ir.functions
            registered = "not registered here" if known is None else f"registered, {known.function.__module__}"
            found[_op_name(node)] = "a function in the file" if inside else registered
    return found


def _op_name(node: onnx_ir.Node) -> str:
    return f"{node.domain}::{node.op_type}" if node.domain else node.op_type


def _spec(spec: ValueSpec) -> dict[str, Any]:
    shape = None if spec.shape is None else list(spec.shape)
    return {"name": spec.name, "kind": spec.kind, "dtype": spec.dtype, "shape": shape, "text": str(spec)}


def _node(node: NodeInfo) -> dict[str, Any]:
    inputs, outputs = ([spec and _spec(spec) for spec in specs] for specs in (node.inputs, node.outputs))
    facts = {"graph": node.graph, "name": node.name, "op_type": node.op_type, "domain": node.domain or "ai.onnx"}
    return facts | {"inputs": inputs, "outputs": outputs}


def _external_files(weights: list[Any]) -> list[str]:
    return sorted({str(weight.location) for weight in weights if hasattr(weight, "location")})


def _text(facts: dict[str, Any]) -> RenderableType:
    opsets = ", ".join(f"{domain} {version}" for domain, version in facts["opsets"].items())
    weights = f"{facts['weights']} tensors, {facts['parameters']:,} numbers, {size_text(facts['weight_bytes'])}"
    external = ", ".join(facts["external_files"])
    general = [
        ("file", f"{facts['path']} ({size_text(facts['file_bytes'])})"),
        ("graph", facts["graph"]),
        ("producer", facts["producer"]),
        ("opset", f"{opsets} (IR version {facts['ir_version']})"),
        ("weights", weights + (f", in {external}" if external else "")),
        *(("input", spec["text"]) for spec in facts["inputs"]),
        *(("output", spec["text"]) for spec in facts["outputs"]),
        *(("function", name) for name in facts["functions"]),
        *(("custom", f"{name}: {state}") for name, state in facts["custom_operators"].items()),
        ("nodes", facts["nodes"]),
    ]
    operators = [("", name, count) for name, count in facts["operators"].items()]
    filled = [(key, value) for key, value in general if value not in {None, ""}]
    return stack(
        rows("", "", cells=filled), rows("", "", "", cells=operators), *_node_table(facts.get("node_list", []))
    )


def _node_table(nodes: list[dict[str, Any]]) -> Iterator[RenderableType]:
    """A table per graph; absent optional values are left out."""
    for graph, members in itertools.groupby(nodes, key=lambda node: node["graph"]):
        cells = [(node["name"], _op_text(node), _values(node["inputs"]), _values(node["outputs"])) for node in members]
        yield rows("node", "op", "inputs", "outputs", cells=cells, title=f"\n{graph}")


def _op_text(node: dict[str, Any]) -> str:
    return node["op_type"] if node["domain"] == "ai.onnx" else f"{node['domain']}::{node['op_type']}"


def _values(specs: list[dict[str, Any] | None]) -> str:
    return ", ".join(spec["text"] for spec in specs if spec is not None)
