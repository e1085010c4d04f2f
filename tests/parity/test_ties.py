"""Either of two equal elements may come first: what depends on it is not held against a model."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest

import entrepot as ep
from entrepot.parity import ties
from entrepot.parity.plan import Case
from entrepot.parity.ties import Ties, with_equal_choices
from entrepot.parity.verify import verify

BEST = """<ir_version: 10, opset_import: ["": 20]>
g (float[N] x) => (float[K] best, float[N] all, int64[M] first) {
  scores = Tanh(x)
  k = Constant <value_ints = [2]> ()
  values, places = TopK (scores, k)
  best = Gather (x, places)
  all = Relu (x)
  first = ArgMin <axis = 0> (x) }"""

INSIDE = """<ir_version: 10, opset_import: ["": 20]>
g (float[N] x, bool c) => (int64[M] y, float[N] z) {
  z = Neg (x)
  y = If (c) <then_branch = a () => (int64[P] p) { p = ArgMax <axis = 0> (x) },
              else_branch = b () => (int64[Q] q) { q = ArgMin <axis = 0> (x) }> }"""


def model(text: str) -> ep.Model:
    return ep.load(onnx.parser.parse_model(text))


@pytest.mark.parametrize(
    ("x", "names"),
    [
        ([1, 2, 3, 0.5], set()),
        ([100, 200, 3, 0.5], {"best"}),  # both are 1 after Tanh: either may be the first
        ([3, 2, 100, 200, 300], {"best"}),
        ([1, 2, 0.5, 0.5], {"first"}),
        ([1, 2, -100, 0.5, 0.5], set()),  # no choice is made between equal elements
        ([1, 2, np.nan], {"best", "first"}),
    ],
)
def test_outputs_behind_a_choice_between_equal_elements_are_named(x: list[float], names: set[str]) -> None:
    assert Ties(model(BEST)).undecided({"x": np.array(x, np.float32)}) == names


@pytest.mark.parametrize(
    ("x", "how", "names"),
    [
        ([1, 1, 0.5], "", {"y"}),  # which one is open, but not what the best two are
        ([1, 1, 0.5], "<sorted = 0>", {"v", "y"}),
        ([1, np.nan, 0.5], "", {"v", "y"}),
        ([1, 0.75, 0.5], "", set()),
    ],
)
def test_the_best_values_are_the_same_whichever_of_equal_elements_they_come_from(
    x: list[float], how: str, names: set[str]
) -> None:
    text = f"""<ir_version: 10, opset_import: ["": 20]>
    g (float[N] x) => (float[K] v, int64[K] y) {{ k = Constant <value_ints = [2]> ()  v, y = TopK {how} (x, k) }}"""
    assert Ties(model(text)).undecided({"x": np.array(x, np.float32)}) == names


def test_choices_in_a_branch_are_taken_for_undecided() -> None:
    feeds = {"x": np.array([1, 2], np.float32), "c": np.array(True)}
    assert Ties(model(INSIDE)).undecided(feeds) == {"y"}


class Last:
    """The best two, of equal ones the last."""

    name = "last"

    def __init__(self, wrong: float = 0.0) -> None:
        self.wrong = wrong

    def run(self, feeds: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        x = feeds["x"]
        order = np.argsort(np.tanh(x)[::-1] * -1, kind="stable")[:2]
        best = x[::-1][order] + self.wrong
        return {"best": best, "all": np.maximum(x, 0), "first": np.array([x.argmin()])}


def at_edges(source: Last, x: list[float]) -> bool:
    sample = Case("sample", {"x": np.array([3, 2, 1], np.float32) / 4})
    edge = Case("edge values", {"x": np.array(x, np.float32)}, edge="finite")
    report = verify(source, model(BEST), [sample, edge], providers=["cpu"])
    return next(run for run in report.runs if run.label == "edge values").ok


def test_a_source_that_takes_another_of_equal_elements_agrees_at_edge_values() -> None:
    assert at_edges(Last(), [100, 200, 300, 0.5])
    assert at_edges(Last(), [1, 2, 0.5])


def test_a_source_is_not_run_again_where_equal_elements_explain_all_that_differs() -> None:
    class Counted(Last):
        asked = 0

        def run(self, feeds: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
            self.asked += 1
            return super().run(feeds)

    source = Counted()
    assert at_edges(source, [100, 200, 300, 0.5])
    assert source.asked == 2  # the sample, and the edge values


def test_no_more_is_computed_than_what_choices_are_made_from_and_made_ready_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[set[str]] = []
    session = ties.Session

    def counted(model: ep.Model, **options: object) -> ep.Session:
        made.append({node.op_type for node in model.ir.graph})
        return session(model, **options)

    monkeypatch.setattr(ties, "Session", counted)
    known = Ties(model(BEST))
    for x in ([100, 200, 3, 0.5], [3, 2, 100, 200]):
        assert known.undecided({"x": np.array(x, np.float32)}) == {"best"}
    assert made == [{"Tanh", "Constant"}]


def test_a_wrong_result_at_edge_values_is_found_where_nothing_is_tied() -> None:
    assert not at_edges(Last(wrong=1.0), [1, 2, 0.5])


def test_a_source_is_asked_once_what_it_computes_with_the_first_of_equal_elements() -> None:
    class First(Last):
        asked = 0

        def first_of_equal(self, feeds: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
            self.asked += 1
            return self.run(feeds)

    source = First(wrong=1.0)
    sample = Case("sample", {"x": np.array([3, 2, 1], np.float32) / 4})
    report = verify(source, model(BEST), [sample], providers=["cpu", "onnxruntime"])
    assert len(report.failures) == 2
    assert source.asked == 1


PLACES = """<ir_version: 10, opset_import: ["": 20]>
g (float[N, 4] x) => (float[N, 2] values, int64[N, 2] places, int32[N] first) {
  k = Constant <value_ints = [2]> ()
  values, places = TopK (x, k)
  least = ArgMin <axis = 1, keepdims = 0> (x)
  first = Cast <to = 6> (least) }"""


@pytest.mark.parametrize(
    ("places", "first", "right"),
    [
        ([1, 2], 0, {"places", "first"}),
        ([2, 1], 0, {"places", "first"}),
        ([2, 1], 3, {"places", "first"}),
        ([2, 2], 3, {"first"}),  # one place twice
        ([2, 0], 0, {"first"}),  # another number
        ([1, 2], 2, {"places"}),
        ([1, 7], 0, {"first"}),  # no such place
    ],
)
def test_an_index_is_right_where_it_points_to_the_same_number(places: list[int], first: int, right: set[str]) -> None:
    x = np.array([[0, 5, 5, 0]], np.float32)
    expected = {"values": x[:, 1:3], "places": np.array([[1, 2]]), "first": np.array([0], np.int32)}
    actual = {**expected, "places": np.array([places]), "first": np.array([first], np.int32)}
    settled = with_equal_choices(model(PLACES), {"x": x}, expected, actual)
    assert {name for name in ("places", "first") if (settled[name] == expected[name]).all()} == right


def test_a_model_that_chooses_the_other_of_two_equal_elements_is_verified_and_one_that_chooses_a_smaller_is_not() -> (
    None
):
    class Source:
        name = "source"
        places = np.array([[2, 1]])

        def run(self, feeds):
            x = feeds["x"]
            return {
                "values": np.sort(x)[:, :1:-1],
                "places": np.broadcast_to(self.places, (len(x), 2)).copy(),
                "first": x.argmin(1).astype(np.int32),
            }

    source = Source()
    cases = [Case("sample", {"x": np.array([[0, 5, 5, 1]], np.float32)})]
    assert verify(source, model(PLACES), cases).ok
    source.places = np.array([[1, 3]])
    assert not verify(source, model(PLACES), cases).ok
