from __future__ import annotations

import itertools

import numpy as np
import pytest

from tests.judges.apart import Apart
from tests.judges.settle import settle
from tests.op_cases.case import Case, f32, f64, ints, strings
from tests.op_cases.variants import pairs, variants


@pytest.mark.parametrize("sizes", [[3, 4], [2, 3, 4, 2], [5, 1, 5]])
def test_every_pair_of_values_meets(sizes: list[int]) -> None:
    rows = pairs(sizes)
    for a, b in itertools.combinations(range(len(sizes)), 2):
        assert {(row[a], row[b]) for row in rows} == set(itertools.product(range(sizes[a]), range(sizes[b])))


@pytest.mark.parametrize("sizes", [[2], []])
def test_where_nothing_can_meet_there_are_no_rows(sizes: list[int]) -> None:
    assert pairs(sizes) == []


def test_pairs_take_fewer_rows_than_everything() -> None:
    assert len(pairs([4, 4, 4, 4, 4])) < 40


def _attributes(cases: list[Case], name: str) -> set[object]:
    return {case.attributes.get(name) for case in variants(cases, settle, strength=1)}


def test_an_axis_takes_its_whole_range() -> None:
    assert _attributes([Case("Softmax", f32(2, 3, 4), axis=1)], "axis") == {None, -3, -2, -1, 0, 1, 2}


def test_the_values_that_a_description_names_are_tried() -> None:
    reductions = _attributes([Case("ScatterND", f32(4), ints(1, 2).reshape(2, 1), f32(2))], "reduction")
    assert reductions == {None, "none", "add", "mul", "max", "min"}


def test_every_element_type_is_tried() -> None:
    found = {case.inputs[0].dtype for case in variants([Case("Relu", f32(3))], settle, strength=1)}
    assert {np.dtype(kind) for kind in (np.float64, np.float16, np.int8, np.int64)} <= found


def test_what_onnxruntime_refuses_is_no_variant() -> None:
    assert settle(Case("Slice", f32(4, 5), ints(0), ints(4), ints(0, 1))) is None


def test_what_only_the_reference_runs_is_one() -> None:
    assert settle(Case("Pad", strings([["a"]]), ints(1, 0, 0, 1))) is not None


def test_a_process_that_dies_costs_one_answer() -> None:
    apart, case = Apart(), Case("Relu", f64(2))
    first = apart.run(case.model(20), case.feeds())
    assert apart.process is not None
    apart.process.kill()
    with pytest.raises(RuntimeError, match="ended the process"):
        apart.run(case.model(20), case.feeds())
    np.testing.assert_array_equal(apart.run(case.model(20), case.feeds())[0], first[0])
    apart.close()
