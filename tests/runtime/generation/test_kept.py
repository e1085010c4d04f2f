"""Rows that leave a batch and join it, and states that stay where they are computed."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

import entrepot as ep
from entrepot.runtime.generation.manifest import Manifest, State
from entrepot.runtime.generation.package import Package
from tests.runtime import toy_device
from tests.runtime.generation.test_generation import chain, successor

VOCABULARY = 5
_STATES = (State("past", "present", (-1, 0, VOCABULARY), "float32"),)


def remembering(states: tuple[State, ...] = _STATES, **more: Any) -> Package:
    """A decoder whose scores add up those of all tokens that count: past ones are in a cache that grows."""
    proto = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["": 17]>
    adding (int64[batch, sequence] input_ids, int64[batch, whole] attention_mask, float[batch, past, 5] past)
        => (float[batch, sequence, 5] logits, float[batch, whole, 5] present) {
        depth = Constant<value_int: int = 5>()
        values = Constant<value: tensor = float[2] {0.0, 1.0}>()
        new = OneHot(input_ids, depth, values)
        present = Concat<axis: int = 1>(past, new)
        last = Constant<value: tensor = int64[1] {2}>()
        numbers = Cast<to: int = 1>(attention_mask)
        weights = Unsqueeze(numbers, last)
        counted = Mul(present, weights)
        one = Constant<value: tensor = int64[1] {1}>()
        sum = ReduceSum<keepdims: int = 1>(counted, one)
        logits = Add(sum, new)
    }""")
    manifest = Manifest(kind="decoder", mask="attention_mask", states=states, **more)
    return Package({"decoder": ep.load(proto)}, manifest, providers="cpu")


def counts(*rows: list[int]) -> np.ndarray[Any, Any]:
    """The scores after rows of tokens: how often each token was there, and the last one once more."""
    return np.array([np.bincount([*row, row[-1]], minlength=VOCABULARY) for row in rows], np.float32)


def test_rows_that_join_go_on_as_they_would_alone() -> None:
    package = remembering()
    decoding, other = package.start(input_ids=[[1, 2, 3], [3, 3, 4]]), package.start(input_ids=[[2]])
    decoding.select([1])
    decoding.join(other)
    np.testing.assert_array_equal(decoding.logits, counts([3, 3, 4], [2]))
    np.testing.assert_array_equal(decoding.tokens, [[3, 3, 4], [0, 0, 2]])
    np.testing.assert_array_equal(decoding.step([1, 4]), counts([3, 3, 4, 1], [2, 4]))
    longer = package.start(input_ids=[[1, 1, 1, 1, 1, 2]])
    decoding.join(longer)
    np.testing.assert_array_equal(decoding.step([0, 0, 0]), counts([3, 3, 4, 1, 0], [2, 4, 0], [1, 1, 1, 1, 1, 2, 0]))
    np.testing.assert_array_equal(longer.step([3]), counts([1, 1, 1, 1, 1, 2, 3]))


def test_what_cannot_join_is_refused() -> None:
    package = remembering()
    decoding = package.start(input_ids=[[1, 2]])
    with pytest.raises(ep.InputError, match="the same package"):
        decoding.join(remembering().start(input_ids=[[1, 2]]))
    with pytest.raises(ep.InputError, match="the same package"):
        decoding.join([[1, 2]])  # type: ignore[arg-type]
    unmasked = chain(successor())
    with pytest.raises(ep.InputError, match="rows of 1 tokens cannot join rows of 2: the model takes no padding"):
        unmasked.start(input_ids=[[1, 2]]).join(unmasked.start(input_ids=[[3]]))
    alike = unmasked.start(input_ids=[[1, 2]])
    alike.join(unmasked.start(input_ids=[[3, 4]]))
    assert alike.logits.argmax(1).tolist() == [3, 0]


@pytest.mark.parametrize("rows", [[7], [-3], "a", [0.5], [[0]], None, [0, None]])
def test_rows_that_there_are_not_are_refused(rows: Any) -> None:
    decoding = chain(successor()).start(input_ids=[[0], [3]])
    with pytest.raises(ep.InputError, match="rows"):
        decoding.select(rows)
    assert decoding.tokens.tolist() == [[0], [3]]


@pytest.mark.parametrize("tokens", [[0.5, 1.0], ["a", "b"], [None, 1], [1], [[1, 2]]])
def test_tokens_of_a_step_are_whole_numbers_one_row_for_each(tokens: Any) -> None:
    decoding = chain(successor()).start(input_ids=[[0], [3]])
    with pytest.raises(ep.InputError, match="the tokens of a step"):
        decoding.step(tokens)


def test_a_cache_is_handed_from_step_to_step_as_it_is() -> None:
    """No copy between steps: each is given the very memory that the last one wrote."""
    pytest.importorskip("onnxruntime")
    package = remembering().using("onnxruntime")
    decoding = package.start(input_ids=[[1, 2, 3], [3, 3, 4]])
    session, seen = package.session("decoder"), []
    run = session.run

    def watched(feeds: Any, *rest: Any, **named: Any) -> Any:
        results = run(feeds, *rest, **named)
        seen.append((feeds["past"].__array_interface__["data"][0], results["present"].__array_interface__["data"][0]))
        return results

    session.run = watched  # type: ignore[method-assign]
    for token in range(3):
        decoding.step([token, token])
    assert [before for before, _ in seen[1:]] == [after for _, after in seen[:-1]]


def test_a_cache_on_a_device_stays_there() -> None:
    with toy_device.installed() as crossings:
        package = remembering().using("toy")
        decoding = package.start(input_ids=[[1, 2, 3], [3, 3, 4]])
        crossings.clear()
        toy_device.DEVICE.bytes = 0
        for token in range(3):
            decoding.step([token, token])
        assert crossings["to host"] == 3  # scores
        moved = toy_device.DEVICE.bytes
        decoding.select([1])
        np.testing.assert_array_equal(decoding.step([2]), counts([3, 3, 4, 0, 1, 2, 2]))
        before = toy_device.DEVICE.bytes
        decoding.join(package.start(input_ids=[[2]]))
        np.testing.assert_array_equal(decoding.step([1, 4]), counts([3, 3, 4, 0, 1, 2, 2, 1], [2, 4]))
    assert moved < before < toy_device.DEVICE.bytes
