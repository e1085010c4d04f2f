"""Long files of which few nodes change: these are converted beside the file, and put in the place of the old ones."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet

import onnx_ir as ir

from entrepot.ir.errors import EntrepotError
from entrepot.ir.io.excerpt import Excerpt
from entrepot.ir.io.parsed import Parsed
from entrepot.ir.io.splice import spliced
from entrepot.ir.opset import ir_version
from entrepot.ir.opset.conversion import Conversion
from entrepot.ir.opset.names import Names
from entrepot.ir.typing.flow import FlowTypes

MOST = 0.25
"""Part of the nodes up to which this is worth it."""


def rewritten(parsed: Parsed, opsets: Mapping[str, int], version: int, changing: AbstractSet[ir.Node]) -> Parsed | None:
    """The file at newer versions, or ``None`` where that takes a graph of all of it.

    Args:
        parsed: The file.
        opsets: Its new versions.
        version: Its new format version.
        changing: Nodes of ``parsed.kinds`` that may not stay as they are.
    """
    chosen = [at for at, like in enumerate(parsed.alike) if like in changing]
    if len(chosen) > MOST * len(parsed.alike):
        return None
    excerpt = Excerpt(parsed, chosen)
    conversion = Conversion(excerpt.model, opsets, Names(parsed))
    if not conversion.run_on(excerpt.nodes, FlowTypes(excerpt)) or excerpt.renamed():
        return None
    try:
        result = spliced(excerpt, opsets, version)
        types = () if result is None else result.types.union(*map(ir_version.cast_to, result.kinds.values()))
    except EntrepotError:  # what was written is not plain: who has all of the graph can say more
        return None
    return result if all(ir_version.born(dtype) <= version for dtype in types) else None
