"""Shapes that enter and leave bodies; the expected ones follow from the operators' definitions."""

from __future__ import annotations

import pytest

from entrepot.ir.typing.bodies import LOST, Scanned, agreed, lost_axes, repeated, without_axis

N = "N"


@pytest.mark.parametrize(
    ("shape", "axis", "expected"),
    [
        ((2, N, 3), None, (2, N, 3)),
        ((2, N, 3), 1, (2, 3)),
        ((2, N, 3), -3, (N, 3)),
        ((2, N, 3), LOST, None),
        ((2,), 1, None),
        ((), 0, None),
        (None, 0, None),
    ],
)
def test_a_body_is_given_the_shape_without_the_axis_that_is_scanned(shape, axis, expected):
    assert without_axis(shape, axis) == expected


def test_what_a_scan_carries_stays_and_what_it_scans_loses_an_axis():
    assert lost_axes("Scan", 3, 3, Scanned(2, input_axes=(1,))) == [None, 1, 0]


@pytest.mark.parametrize(("op_type", "given", "scanned"), [("Loop", 3, Scanned()), ("Scan", 4, Scanned(1))])
def test_nothing_is_said_of_what_a_loop_carries_nor_of_scan_8(op_type, given, scanned):
    assert lost_axes(op_type, given, 3, scanned) == [LOST] * 3


def test_a_loop_keeps_the_sizes_that_no_turn_changes_and_stacks_the_rest():
    given = [(), (), (2, N), (5,)]
    results = [(2, 7), (5, 1), (4, N)]
    assert repeated("Loop", given, results, 4, Scanned()) == [(2, None), None, (None, 4, N)]


@pytest.mark.parametrize(("axis", "expected"), [(0, (None, 4, N)), (1, (4, None, N)), (-1, (4, N, None))])
def test_a_scan_collects_along_its_output_axis(axis, expected):
    scanned = Scanned(1, output_axes=(axis,))
    assert repeated("Scan", [(3,), (6, 2)], [(3,), (4, N)], 2, scanned) == [(3,), expected]


@pytest.mark.parametrize(
    ("shapes", "expected"), [([(2, N), (2, N)], (2, N)), ([(2,), (3,)], None), ([(2,), None], None)]
)
def test_an_if_has_the_shape_that_its_branches_agree_on(shapes, expected):
    assert agreed(shapes) == expected
