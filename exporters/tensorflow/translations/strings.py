"""Text, as far as ONNX has operators for it: case, joining, splitting, patterns, and numbers in digits."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from entrepot.exporters.building import Builder, typed
from entrepot.exporters.functions.texts import parts_matched, replaced, stripped, words_of
from entrepot.exporters.tensorflow.arrays import texts
from entrepot.exporters.tensorflow.node import Node
from entrepot.exporters.tensorflow.sizes import joined, rank_of, reshaped
from entrepot.exporters.tensorflow.table import translates


@translates("StringLower", "StringUpper")
def in_case(node: Node, build: Builder, x: Any) -> Any:
    """Of ASCII letters only, as TensorFlow does unless it is told otherwise."""
    if node["encoding"]:
        node.refuse(f"of letters beyond ASCII ({node['encoding']}) has no counterpart")
    case = node.op.removeprefix("String").upper()
    flat = build.op(
        "StringNormalizer", build.op("Reshape", x, [-1]), case_change_action=case, is_case_sensitive=1, locale="C"
    )
    return reshaped(build, _text(flat), build.shape(x))


@translates("StringJoin")
def joined_text(node: Node, build: Builder, *values: Any) -> Any:
    """One after the other, with a separator between."""
    between = build.constant(np.array(node["separator"], object), ir.DataType.STRING)
    total = values[0]
    for each in values[1:]:
        start = _text(build.op("StringConcat", total, between)) if node["separator"] else total
        total = _text(build.op("StringConcat", start, each))
    return build.op("Identity", total)


@translates("RegexFullMatch", "StaticRegexFullMatch")
def matches(node: Node, build: Builder, x: Any, pattern: Any = None) -> Any:
    """Whether all of the text is as RE2's pattern says."""
    if pattern is not None:
        known = node.constant(1)
        if known is None:
            node.refuse("takes a pattern that varies")
        text = str(texts(known).item())
    else:
        text = node["pattern"]
    return build.op("RegexFullMatch", x, pattern=text)


@translates("RegexReplace", "StaticRegexReplace")
def replaced_text(node: Node, build: Builder, x: Any, *stated: Any) -> Any:
    """Characters of a set, or one text, replaced by what contains none of them."""
    given = [node.constant(at) for at in (1, 2)] if stated else [node["pattern"], node["rewrite"]]
    if any(each is None for each in given):
        node.refuse("takes a pattern that varies")
    pattern, by = (str(texts(each).item()) if stated else str(each) for each in given)
    some = parts_matched(pattern)
    if some is None or "\\" in by or not node["replace_global"] or any(part in by for part in some):
        known = "sets of characters and texts, by what contains none of them"
        node.refuse(f"replaces {pattern!r} by {by!r}; known are {known}")
    return replaced(build, x, rank_of(node), some, by)


@translates("StringStrip")
def stripped_text(node: Node, build: Builder, x: Any) -> Any:
    """Without white space at both ends."""
    return stripped(build, x, rank_of(node))


@translates("StringSplitV2")
def split_text(node: Node, build: Builder, x: Any, separator: Any) -> Any:
    """The parts of each text, as a sparse tensor."""
    known = node.constant(1)
    if known is None:
        node.refuse("takes a separator that varies")
    between = str(texts(known).item())
    if node["maxsplit"] >= 0:
        node.refuse("stops after some parts, in a way of its own")
    if not between:
        parts, counts = words_of(build, x, 1)
    else:  # nothing is a part of its own, which onnxruntime (1.31) leaves out
        parts, counts = build.op("StringSplit", x, outputs=2, delimiter=between)
        typed(parts, ir.DataType.STRING, [None, None])
        typed(counts, np.int64, [None])
        nothing = build.constant(np.array("", object), ir.DataType.STRING)
        rows = build.op("Expand", nothing, joined(build, build.op("Shape", x), [1]))
        parts = typed(build.op("Concat", parts, rows, axis=1), ir.DataType.STRING, [None, None])
        counts = build.op("Where", build.op("Equal", x, nothing), 1, counts)
    room = build.shape(parts, 1, 2)
    place = build.op("Range", 0, build.op("Squeeze", room), 1)
    here = build.op("Less", place, build.op("Unsqueeze", counts, [1]))
    indices = build.op("Transpose", build.op("NonZero", here), perm=[1, 0])
    values = _text(build.op("GatherND", parts, indices))
    longest = build.op("ReduceMax", build.op("Concat", counts, [0], axis=0), keepdims=1)
    return indices, values, build.op("Concat", build.op("Shape", x), longest, axis=0)


@translates("StringToHashBucketFast", "StringToHashBucketStrong", "StringToHashBucket")
def bucket(node: Node, build: Builder, x: Any) -> Any:
    """The only bucket, as tables have one for all words that they do not know; ONNX has no hashes of text."""
    if node["num_buckets"] != 1:
        node.refuse(f"spreads text over {node['num_buckets']} buckets by a hash, and ONNX has none of text")
    zero = build.constant(np.array(0, np.int64))
    return typed(build.op("Expand", zero, build.op("Shape", x)), np.int64, node.result_shape())


@translates("StringToNumber")
def to_number(node: Node, build: Builder, x: Any) -> Any:
    """The number that is written there."""
    return build.cast(x, node["out_type"])


@translates("AsString")
def as_text(node: Node, build: Builder, x: Any) -> Any:
    """Whole numbers in digits; how others are written is TensorFlow's own."""
    plain = node["width"] == -1 and not node["fill"]
    if x.dtype == ir.DataType.BOOL and plain:
        names = (build.constant(np.array(text, object), ir.DataType.STRING) for text in ("true", "false"))
        return build.op("Where", x, *names)
    if node.dtype(0).kind not in "iu" or not plain:
        node.refuse("writes numbers in a way of its own")
    return build.cast(x, ir.DataType.STRING)


def _text(value: Any) -> Any:
    value.type = ir.TensorType(ir.DataType.STRING)
    return value
