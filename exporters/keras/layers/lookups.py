"""Categories and words as numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from entrepot.exporters.building import typed
from entrepot.exporters.cutting import CUT
from entrepot.exporters.functions.texts import replaced, words_of
from entrepot.exporters.keras.arrays import numpy_of
from entrepot.exporters.keras.dtypes import element_of
from entrepot.exporters.keras.reading.step import Step, rank_of, shape_of
from entrepot.exporters.keras.reading.table import layer
from entrepot.exporters.truth import any_of


@layer("IntegerLookup", "StringLookup")
def lookup(step: Step, inputs: Any) -> ir.Value:
    """The number of a word or a number in a vocabulary, encoded as the layer says; or what has that number."""
    given = step.operation
    return encoded(step, indices(step, given, inputs), given, len(given.get_vocabulary()))


def indices(step: Step, given: Any, inputs: Any) -> ir.Value:
    """Numbers in the vocabulary of a lookup layer."""
    value = step.value(inputs)
    text = given.name and type(given).__name__ == "StringLookup"
    words = given.get_vocabulary(include_special_tokens=False)
    start = len(given.get_vocabulary()) - len(words)
    if given.invert:
        return _inverted(step, given, value, text=bool(text))
    if given.num_oov_indices == 0:
        raise step.refuse("words that it does not know are an error, which a graph cannot raise; use num_oov_indices=1")
    if given.num_oov_indices > 1 and text:
        raise step.refuse("several numbers for words that it does not know: ONNX has no such hash")
    keys = words if text else [int(word) for word in words]
    first = start - given.num_oov_indices
    numbers = list(range(start, start + len(words)))
    if given.mask_token is not None:
        keys, numbers = [given.mask_token, *keys], [0 if given.output_mode == "int" else -1, *numbers]
    found = _mapped(step, value, keys, numbers, -2, text=bool(text))
    unknown = step.op("Equal", found, -2)
    other: Any = step.value(first, np.int64)
    if given.num_oov_indices > 1:
        rest = step.op("Mod", step.build.cast(value, np.int64), given.num_oov_indices)
        other = step.op("Add", rest, first)
    return typed(step.op("Where", unknown, other, found), np.int64, shape_of(value))


def _mapped(step: Step, value: ir.Value, keys: list[Any], numbers: list[int], default: int, *, text: bool) -> ir.Value:
    if text:
        found = step.op(
            "LabelEncoder", value, domain="ai.onnx.ml", keys_strings=[str(key) for key in keys], values_int64s=numbers,
            default_int64=default,
        )  # fmt: skip
        return typed(found, np.int64, shape_of(value))
    order = np.argsort(np.asarray(keys, np.int64))
    table, values = np.asarray(keys, np.int64)[order], np.asarray(numbers, np.int64)[order]
    same = step.op("Equal", step.op("Unsqueeze", step.build.cast(value, np.int64), [-1]), table)
    hit = step.op("ReduceMax", step.build.cast(same, np.int32), [-1], keepdims=0)
    at = step.op("ArgMax", step.build.cast(same, np.int32), axis=-1, keepdims=0)
    found = step.op(
        "Where", step.build.cast(hit, np.bool_), step.op("Gather", values, at), step.value(default, np.int64)
    )
    return typed(found, np.int64, shape_of(value))


def _inverted(step: Step, given: Any, value: ir.Value, *, text: bool) -> ir.Value:
    words = given.get_vocabulary()
    value = typed(step.build.cast(value, np.int64), np.int64, shape_of(value))
    if text:
        made = step.op(
            "LabelEncoder", value, domain="ai.onnx.ml", keys_int64s=list(range(len(words))),
            values_strings=[str(word) for word in words], default_string=str(given.oov_token),
        )  # fmt: skip
        return typed(made, element_of("string"), shape_of(value))
    inside = step.op("And", step.op("GreaterOrEqual", value, 0), step.op("Less", value, len(words)))
    at = step.op("Where", inside, value, step.value(0, np.int64))
    found = step.op("Gather", np.asarray([int(word) for word in words], np.int64), at)
    return step.op("Where", inside, found, step.value(int(given.oov_token), np.int64))


def encoded(step: Step, found: ir.Value, given: Any, size: int) -> ir.Value:
    """Numbers as they are, one hot, several hot, or counted."""
    mode = given.output_mode
    if mode == "int":
        return found
    size = given.max_tokens if getattr(given, "pad_to_max_tokens", False) else size
    shape = shape_of(found)
    if mode == "one_hot":
        if shape and shape[-1] == 1:
            found = typed(step.op("Squeeze", found, [-1]), np.int64, shape[:-1])
        return step.build.cast(_hot(step, found, size), _kind(given))
    if not shape:
        found = typed(step.op("Unsqueeze", found, [0]), np.int64, [1])
    hot = step.op("Equal", step.op("Unsqueeze", found, [-1]), np.arange(size))
    if mode == "multi_hot":
        return step.build.cast(any_of(step.build, hot, [-2]), _kind(given))
    counts = step.op("ReduceSum", step.build.cast(hot, _kind(given)), [-2], keepdims=0)
    if mode == "tf_idf":
        weights = numpy_of(given.idf_weights_const)
        return step.op("Mul", step.build.cast(counts, weights.dtype), weights)
    return counts


def _kind(given: Any) -> ir.DataType:
    """The type in which a layer counts."""
    if hasattr(given, "get_vocabulary"):
        return element_of("int64")
    return element_of(getattr(given, "output_dtype", None) or given.compute_dtype)


def _hot(step: Step, found: ir.Value, size: int) -> ir.Value:
    return step.op("Equal", step.op("Unsqueeze", found, [-1]), np.arange(size))


@layer("Discretization")
def discretization(step: Step, inputs: Any) -> ir.Value:
    """The number of the bin."""
    given, value = step.operation, step.value(inputs, np.float32)
    bounds = np.asarray(given.bin_boundaries, np.float32)
    reached = step.op("LessOrEqual", bounds, step.op("Unsqueeze", value, [-1]))
    found = step.op("ReduceSum", step.build.cast(reached, np.int64), [-1], keepdims=0)
    typed(found, np.int64, shape_of(value))
    return step.build.cast(encoded(step, found, given, len(bounds) + 1), _kind(given))


@layer("CategoryEncoding")
def category_encoding(step: Step, inputs: Any, count_weights: Any = None) -> ir.Value:
    """Categories one hot, several hot, or counted."""
    given, found = step.operation, step.build.cast(step.value(inputs), np.int64)
    found.shape = step.value(inputs).shape
    if count_weights is None:
        return encoded(step, found, given, int(given.num_tokens))
    hot = step.build.cast(step.op("Equal", step.op("Unsqueeze", found, [-1]), np.arange(given.num_tokens)), step.dtype)
    weights = step.op("Unsqueeze", step.value(count_weights, step.dtype), [-1])
    return step.op("ReduceSum", step.op("Mul", hot, weights), [-2], keepdims=0)


_PUNCTUATION = list("!\"#$%&()*+,-./:;<=>?@[\\]^_`{|}~'")


@layer("TextVectorization")
def text_vectorization(step: Step, inputs: Any) -> ir.Value:
    """Words of ASCII text split at white space, and runs of them; what else the layer can do is left in Python."""
    given = step.operation
    config = given.get_config()
    if config["split"] != "whitespace" or callable(config["standardize"]):
        raise step.refuse("text is split at white space alone")
    value = step.value(inputs)
    if rank_of(value) > 1:
        value = typed(step.op("Squeeze", value, [-1]), value.dtype, shape_of(value)[:-1])
    if "lower" in (config["standardize"] or ""):
        lower = step.op("StringNormalizer", value, case_change_action="LOWER", is_case_sensitive=1, locale="C")
        value = typed(lower, value.dtype, shape_of(value))
    if "punctuation" in (config["standardize"] or ""):
        value = replaced(step.build, value, rank_of(value), _PUNCTUATION, "")
    words, _ = words_of(step.build, value, rank_of(value))
    if config["ngrams"] is not None:
        words = _runs(step, words, given._ngrams)  # noqa: SLF001
    lookup_layer = given._lookup_layer  # noqa: SLF001
    length = config["output_sequence_length"]
    found = indices(step, lookup_layer, words)
    if config["output_mode"] != "int":
        empty = step.op("Equal", words, np.array("", object))
        found = typed(step.op("Where", empty, step.value(-1, np.int64), found), np.int64, shape_of(found))
        return encoded(step, found, lookup_layer, len(lookup_layer.get_vocabulary()))
    if length is None:
        return found
    padded = step.op("Pad", found, [*[0] * (rank_of(found) * 2 - 1), length], np.array(0, np.int64))
    return step.op("Slice", padded, [0], [length], [-1])


def _runs(step: Step, words: ir.Value, lengths: Sequence[int]) -> ir.Value:
    """Runs of so many words, joined by spaces: all of one length, then those of the next, then nothing."""
    last, shape = rank_of(words) - 1, shape_of(words)
    found = [_run(step, words, length, last) for length in lengths]
    every = typed(step.op("Concat", *found, axis=last), words.dtype, shape)
    if len(found) == 1:
        return every
    place = step.op("Range", 0, step.build.size(every, last), 1)
    behind = step.op("Equal", every, np.array("", object))
    order = step.op("Where", behind, step.op("Add", place, np.array(1 << 32)), place)
    _, at = step.op("TopK", order, step.build.shape(every, last), axis=last, largest=0, outputs=2)
    return typed(step.op("GatherElements", every, at, axis=last), words.dtype, shape)


def _run(step: Step, words: ir.Value, length: int, last: int) -> ir.Value:
    """Each word with those after it; nothing where there are too few."""
    if length == 1:
        return words
    end = np.iinfo(np.int64).max
    parts = [
        step.op("Slice", words, [at], [at - length + 1 if at < length - 1 else end], [last]) for at in range(length)
    ]
    for each in parts:
        typed(each, words.dtype, shape_of(words))
    joined = parts[0]
    for each in parts[1:]:
        joined = step.op("StringConcat", step.op("StringConcat", joined, np.array(" ", object)), each)
    nothing = np.array("", object)
    return typed(step.op("Where", step.op("Equal", parts[-1], nothing), nothing, joined), words.dtype, shape_of(words))


@layer("Hashing", "HashedCrossing")
def hashing(step: Step, inputs: Any) -> ir.Value:
    """ONNX has no fingerprints."""
    raise step.refuse("fingerprints are no operators of ONNX", hint=CUT)  # of numbers, they are those of their digits
