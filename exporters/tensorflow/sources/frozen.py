"""Graphs without variables: a GraphDef, and checkpoints of TensorFlow 1 that become one."""

from __future__ import annotations

import inspect
import itertools
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from google.protobuf import text_format  # type: ignore[import-untyped]
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

from entrepot.exporters.tensorflow.sources.callable import Opened
from entrepot.exporters.tensorflow.sources.harmless import check_harmless
from entrepot.ir.errors import InputError, ModelFormatError
from entrepot.ir.io.foreign import is_text_of_graph

_SINKS = frozenset({
    "NoOp", "Assert", "Const", "Placeholder", "PlaceholderWithDefault", "SaveV2", "RestoreV2", "Assign", "AssignAdd",
    "AssignSub", "AssignVariableOp", "VariableV2", "VarHandleOp", "Print", "PrintV2", "ShardedFilename",
    "MergeV2Checkpoints", "VarIsInitializedOp", "IsVariableInitialized", "Variable", "SaveSlices", "ScalarSummary",
    "HistogramSummary", "MergeSummary", "InitializeTableV2", "LookupTableImportV2",
})  # fmt: skip
"""Operators whose results nobody means when nothing reads them."""
_FED = frozenset({"Placeholder", "PlaceholderWithDefault"})
_FLOW = frozenset({"While", "StatelessWhile", "If", "StatelessIf", "Case", "StatelessCase"})
_FLOW_ENDS = frozenset({"Exit", "RefExit", "Switch", "RefSwitch", "Merge", "RefMerge"})
"""Operators that return what loops and branches carry, wanted or not."""
_FLOW_NAMES = ("/switch_t", "/switch_f", "/pred_id")
"""What ``tf.cond`` of TensorFlow 1 calls copies of its condition."""


def opened_graph(path: Path) -> Opened:
    """A frozen graph: its placeholders are what it takes, and what nothing reads is what it returns.

    Raises:
        ModelFormatError: It is no graph, or has operators that TensorFlow does not know.
    """
    definition, content = tf.compat.v1.GraphDef(), path.read_bytes()
    try:
        if is_text_of_graph(content):
            text_format.Parse(content, definition)
        else:
            definition.ParseFromString(content)
    except (DecodeError, text_format.ParseError, UnicodeDecodeError) as error:
        raise ModelFormatError(f"it is no GraphDef of TensorFlow: {error}", path=path) from error
    return opened_definition(definition, path.stem, path)


def opened_definition(
    definition: Any,
    name: str,
    path: Path,
    outputs: Mapping[str, str] | None = None,
    inputs: Mapping[str, str] | None = None,
) -> Opened:
    """A ``GraphDef``, with what its inputs and outputs are called where that is known.

    Raises:
        ModelFormatError: TensorFlow does not take it.
        InputError: It takes or returns nothing.
    """
    given = inputs or {node.name: f"{node.name}:0" for node in definition.node if node.op == "Placeholder"}
    wanted = outputs or {name: f"{name}:0" for name in _ends(definition)}
    if not definition.node:
        raise ModelFormatError("the graph is empty", path=path)
    if not wanted:
        raise InputError("the graph has no result: something reads every node", path=path)
    try:
        definition = _with_own_functions(definition)
        wrapped = tf.compat.v1.wrap_function(lambda: tf.graph_util.import_graph_def(definition, name=""), [])
        graph = wrapped.graph
        feeds = [graph.get_tensor_by_name(at) for at in given.values()]
        concrete = wrapped.prune(feeds, {key: graph.get_tensor_by_name(at) for key, at in wanted.items()})
    except (ValueError, KeyError, TypeError, tf.errors.OpError) as error:
        text = next(iter(str(error).splitlines()), "")
        raise ModelFormatError(f"TensorFlow does not take the graph: {text}", path=path) from error
    check_harmless(concrete)
    return _called_by_name(concrete, list(given), name)


def _with_own_functions(definition: Any) -> Any:
    """The graph, its functions renamed: a process has one function of each name, and others may be there.

    Those that it does not call are left out: SavedModels have one that reads their variables from files.
    """
    if not definition.library.function:
        return definition
    own, called = tf.compat.v1.GraphDef(), _called_functions(definition)
    own.CopyFrom(definition)
    del own.library.function[:], own.library.gradient[:]
    own.library.function.extend(each for each in definition.library.function if each.signature.name in called)
    own.library.gradient.extend(each for each in definition.library.gradient if each.function_name in called)
    number = next(_NUMBERS)
    names = {each.signature.name: f"{each.signature.name}_from_file_{number}" for each in own.library.function}
    for function in own.library.function:
        function.signature.name = names[function.signature.name]
    for node in [*own.node, *(node for function in own.library.function for node in function.node_def)]:
        node.op = names.get(node.op, node.op)
        for value in node.attr.values():
            for function in [*([value.func] if value.HasField("func") else []), *value.list.func]:
                function.name = names.get(function.name, function.name)
    for gradient in own.library.gradient:
        gradient.function_name = names.get(gradient.function_name, gradient.function_name)
        gradient.gradient_func = names.get(gradient.gradient_func, gradient.gradient_func)
    return own


def _called_functions(definition: Any) -> set[str]:
    """The functions that nodes of a graph call, those that these call, and their gradients."""
    bodies = {each.signature.name: each.node_def for each in definition.library.function}
    gradients = {each.function_name: each.gradient_func for each in definition.library.gradient}
    found, waiting = set[str](), [definition.node]
    while waiting:
        nodes = waiting.pop()
        used = {name for node in nodes for name in (node.op, *_functions_of(node))}
        used |= {gradients[name] for name in used if name in gradients}
        fresh = (used & bodies.keys()) - found
        found |= fresh
        waiting += [bodies[name] for name in fresh]
    return found


def _functions_of(node: Any) -> list[str]:
    return [function.name for value in node.attr.values() for function in (value.func, *value.list.func)]


_NUMBERS = itertools.count()


def _called_by_name(concrete: Any, names: Sequence[str], title: str) -> Opened:
    def call(*given: Any) -> Any:
        return concrete(*tensors(given))

    words = [name.replace("/", "_").replace("-", "_").replace(".", "_") for name in names]
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    call.__signature__ = inspect.Signature([inspect.Parameter(word, kind) for word in words])  # type: ignore[attr-defined]
    specs = tuple(tf.TensorSpec(tensor.shape, tensor.dtype) for tensor in concrete.inputs[: len(names)])
    return Opened(call, title, f"graph:{title}", noun="graph", has_python=False, takes=(specs, {}))


def _ends(definition: Any, besides: str = "") -> list[str]:
    """Nodes that nothing reads and whose results depend on what is fed.

    What loops and branches return besides counts only if there is nothing else.

    Args:
        definition: The graph.
        besides: A scope whose nodes do not count.
    """
    nodes = [node for node in definition.node if not (besides and node.name.startswith(f"{besides}/"))]
    inputs = {node.name: [_producer(text) for text in node.input] for node in nodes}
    read = {name for names in inputs.values() for name in names}
    fed = _downstream(inputs, [node.name for node in nodes if node.op in _FED])
    ends = [node for node in nodes if node.name not in read and node.op not in _SINKS]
    ends = [node for node in ends if not fed or node.name in fed]
    flow = tuple(f"{node.name}/" for node in nodes if node.op in _FLOW)
    decided = any(node.op == "Switch" for node in nodes)
    meant = [
        node for node in ends
        if node.op not in _FLOW_ENDS and not node.name.startswith(flow)
        and not (decided and node.op == "Identity" and node.name.endswith(_FLOW_NAMES))
    ]  # fmt: skip
    return [node.name for node in meant or ends]


def _producer(text: str) -> str:
    return text.lstrip("^").partition(":")[0]


def _downstream(inputs: Mapping[str, Sequence[str]], sources: Sequence[str]) -> set[str]:
    """The nodes that read some others, directly or not, and those themselves."""
    readers = defaultdict(list)
    for name, names in inputs.items():
        for each in names:
            readers[each].append(name)
    found, waiting = set(sources), list(sources)
    while waiting:
        fresh = set(readers[waiting.pop()]) - found
        found |= fresh
        waiting += fresh
    return found


def opened_checkpoint(prefix: Path) -> Opened:
    """A checkpoint of TensorFlow 1 with its graph, ``prefix.meta``.

    Raises:
        ModelFormatError: It cannot be restored.
    """
    meta = prefix.with_name(f"{prefix.name}.meta")
    v1 = tf.compat.v1
    try:
        with tf.Graph().as_default() as graph, v1.Session() as session:
            v1.train.import_meta_graph(str(meta), clear_devices=True).restore(session, str(prefix))
            proto = v1.MetaGraphDef.FromString(meta.read_bytes())
            outputs = _signature(proto)
            scope = proto.saver_def.restore_op_name.partition("/")[0]
            definition = graph.as_graph_def()
            wanted = outputs or {name: f"{name}:0" for name in _ends(definition, besides=scope)}
            nodes = [text.partition(":")[0] for text in wanted.values()]
            frozen = v1.graph_util.convert_variables_to_constants(session, definition, nodes)
    except (OSError, ValueError, TypeError, KeyError, AttributeError, DecodeError, tf.errors.OpError) as error:
        text = next(iter(str(error).splitlines()), "")
        raise ModelFormatError(f"TensorFlow cannot restore the checkpoint: {text}", path=meta) from error
    return opened_definition(frozen, prefix.name.partition(".")[0], meta, wanted)


def opened_sessions(folder: Path, tags: Sequence[str], wanted: str) -> Opened:
    """A SavedModel of TensorFlow 1, whose variables become constants.

    Args:
        folder: Where it is.
        tags: Of the graph to take.
        wanted: The signature to take; the default or only one if empty.

    Raises:
        ModelFormatError: It cannot be restored.
        InputError: It has no such signature.
    """
    v1 = tf.compat.v1
    try:
        with tf.Graph().as_default() as graph, v1.Session() as session:
            proto = v1.saved_model.load(session, list(tags), str(folder))
            signature = _named_signature(proto, wanted, folder)
            inputs, outputs = (
                {key: places[key].name for key in sorted(places)} for places in (signature.inputs, signature.outputs)
            )
            nodes = [text.partition(":")[0] for text in outputs.values()]
            frozen = v1.graph_util.convert_variables_to_constants(session, graph.as_graph_def(), nodes)
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RuntimeError, tf.errors.OpError) as error:
        if isinstance(error, InputError):
            raise
        text = next(iter(str(error).splitlines()), "")
        raise ModelFormatError(f"TensorFlow cannot restore it: {text}", path=folder) from error
    return opened_definition(frozen, folder.name, folder, outputs, inputs)


def _named_signature(proto: Any, wanted: str, folder: Path) -> Any:
    found = dict(proto.signature_def)
    usable = {name: each for name, each in found.items() if each.outputs}
    chosen = wanted or ("serving_default" if "serving_default" in usable or len(usable) != 1 else next(iter(usable)))
    if chosen not in usable:
        raise InputError(
            f"the SavedModel has no signature '{chosen}'; it has: {', '.join(sorted(usable)) or 'none'}",
            hint=f"name one: '{folder.name}#{next(iter(sorted(usable)))}'" if usable else "save it with signatures",
        )
    return usable[chosen]


def tensors(values: Any) -> Any:
    """Arrays as tensors, which functions from files insist on."""
    return tf.nest.map_structure(lambda value: tf.constant(value) if isinstance(value, np.ndarray) else value, values)


def _signature(proto: Any) -> Mapping[str, str]:
    """What the outputs of the default or only signature are called, and where they are."""
    found = dict(proto.signature_def)
    chosen = found.get("serving_default") or (next(iter(found.values())) if len(found) == 1 else None)
    return {} if chosen is None else {key: chosen.outputs[key].name for key in sorted(chosen.outputs)}
