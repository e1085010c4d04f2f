"""Graphs from files are run to be judged: those that would reach beyond their tensors are refused before."""

from __future__ import annotations

from typing import Any

from entrepot.ir.errors import UnsupportedOpError

_PYTHON = frozenset({"PyFunc", "PyFuncStateless", "EagerPyFunc"})
_FILES = frozenset({
    "ReadFile", "WriteFile", "MatchingFiles", "SaveV2", "Save", "SaveSlices", "RestoreV2", "Restore", "RestoreSlice",
    "MergeV2Checkpoints", "ImmutableConst", "FixedLengthRecordReaderV2", "TextLineReaderV2", "TFRecordReaderV2",
    "WholeFileReaderV2", "ShardedFilename", "PrintV2WithFile", "DebugNumericSummaryV2", "SaveDataset", "LoadDataset",
})  # fmt: skip


def check_harmless(concrete: Any) -> None:
    """Refuse a graph that runs Python or touches files.

    Raises:
        UnsupportedOpError: It does.
    """
    definition = concrete.graph.as_graph_def()
    nodes = [*definition.node, *(node for function in definition.library.function for node in function.node_def)]
    for node in nodes:
        if node.op in _PYTHON:
            raise UnsupportedOpError(
                f"the graph calls Python by {node.op}, which no file can hold",
                node=f"node '{node.name}' ({node.op} of TensorFlow)",
                hint="express it with TensorFlow's operators",
            )
        if node.op in _FILES:
            raise UnsupportedOpError(
                f"the graph reads or writes files by {node.op}", node=f"node '{node.name}' ({node.op} of TensorFlow)"
            )
