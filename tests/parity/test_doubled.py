"""Choices that the last digit of single precision decides are proved in double precision, and wrong models are not."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx.parser
import pytest

import entrepot as ep
from entrepot.parity.choices import Choices
from entrepot.parity.compare import compare
from entrepot.parity.doubled import Doubled, in_double, most_moved, mostly_excused, typed_alike
from entrepot.parity.judge import Judge
from entrepot.parity.plan import Case
from entrepot.parity.untouched import opened

BEST = """<ir_version: 10, opset_import: ["": 20]>
best (float[N, 33] x, float[N, 2] y) => (float[8, 2] chosen) {{
  axes = Constant <value_ints = [1]> ()
  k = Constant <value_ints = [8]> ()
  {scores}
  values, places = TopK (scores, k)
  chosen = Gather (y, places) }}"""
RIGHT = "scores = ReduceSum <keepdims = 0> (x, axes)"
WRONG = "most = ReduceSum <keepdims = 0> (x, axes)  scores = Neg (most)"
ALMOST = "most = ReduceSum <keepdims = 0> (x, axes)  more = Sin (most)  scores = Mul (more, more)"


def model(text: str) -> ep.Model:
    return ep.load(onnx.parser.parse_model(text))


class Best:
    """The rows with the best eight sums, which it adds up from the right, where others may from the left."""

    name = "numpy"

    def run(self, feeds: dict[str, np.ndarray]) -> dict[str, Any]:
        scores = np.zeros(len(feeds["x"]), feeds["x"].dtype)
        for column in reversed(range(feeds["x"].shape[1])):
            scores = scores + feeds["x"][:, column]
        return {"chosen": feeds["y"][np.argsort(-scores, kind="stable")[:8]]}

    def exact(self, feeds: dict[str, np.ndarray]) -> dict[str, Any]:
        return self.run({name: value.astype(np.float64) for name, value in feeds.items()})


def close_scores() -> dict[str, np.ndarray]:
    """Rows whose sums differ in the ninth digit, by their first column."""
    rng = np.random.default_rng(5)
    base = rng.standard_normal(32)
    rows = np.stack([np.concatenate([[at * 1e-9], rng.permutation(base)]) for at in rng.permutation(40)])
    return {"x": rows.astype(np.float32), "y": rng.standard_normal((40, 2)).astype(np.float32)}


@pytest.mark.parametrize(("scores", "right"), [(RIGHT, True), (WRONG, False), (ALMOST, False)])
def test_rows_that_the_last_digit_chooses_are_proved_in_double_precision(scores: str, right: bool) -> None:
    feeds, judged = close_scores(), model(BEST.format(scores=scores))
    expected, actual = Best().run(feeds), ep.Session(judged, providers=["cpu"]).run(feeds)
    assert not np.allclose(expected["chosen"], actual["chosen"], atol=0.1)  # or there is nothing to be proved
    found = Judge(Best(), judged, None, {}).compare(Case("sample", feeds), expected, actual, "cpu")
    assert found.ok == right


class Counted(Best):
    """Counts how often it is run, and how often in double precision."""

    def __init__(self) -> None:
        self.times = self.runs = 0

    def run(self, feeds: dict[str, np.ndarray]) -> dict[str, Any]:
        self.runs += 1
        return super().run(feeds)

    def exact(self, feeds: dict[str, np.ndarray]) -> dict[str, Any]:
        self.times += 1
        return super().exact(feeds)


def test_what_a_model_chooses_comes_of_the_run_that_computes_its_outputs(monkeypatch: pytest.MonkeyPatch) -> None:
    feeds, doubled, runs = close_scores(), Doubled(model(BEST.format(scores=RIGHT))), []
    compute = ep.Session.run
    monkeypatch.setattr(ep.Session, "run", lambda *given: runs.append(1) or compute(*given))
    outputs, (places,) = doubled.run(feeds), doubled.choices(feeds)
    assert outputs is not None
    assert np.array_equal(outputs["chosen"], feeds["y"][places].astype(np.float64))
    assert len(runs) == 1
    assert not np.array_equal(doubled.choices({**feeds, "x": -feeds["x"]})[0], places)


def test_where_double_precision_decided_it_is_asked_first() -> None:
    judged, source = model(BEST.format(scores=RIGHT)), Counted()
    judge, times = Judge(source, judged, None, {}), []
    for name in ("sample", "other", "third"):
        feeds = close_scores() | {"y": np.random.default_rng(len(name)).standard_normal((40, 2)).astype(np.float32)}
        expected, actual = Best().run(feeds), ep.Session(judged, providers=["cpu"]).run(feeds)
        before = source.runs
        assert judge.compare(Case(name, feeds), expected, actual, "cpu").ok
        times.append(source.runs - before)
    assert times[0] > 1
    assert times[1:] == [1, 1]  # in double precision


def test_a_source_computes_a_case_in_double_precision_once_for_all_providers() -> None:
    judged, source = model(BEST.format(scores=RIGHT)), Counted()
    judge = Judge(source, judged, None, {})
    cases = [Case("sample", close_scores()), Case("other", {**close_scores(), "y": np.ones((40, 2), np.float32)})]
    for provider in ("cpu", "onnxruntime"):
        for case in cases:
            expected, actual = source.run(case.feeds), ep.Session(judged, providers=["cpu"]).run(case.feeds)
            assert judge.compare(case, expected, actual, provider).ok
    assert source.times == 1  # what is the same in each row does not differ
    assert not judge.compare(cases[1], source.run(cases[1].feeds), {"chosen": np.zeros((8, 2), np.float32)}, "cpu").ok
    assert source.times == 2


def test_what_a_source_is_sure_of_is_not_excused() -> None:
    """A result that does not move from one precision to the other has to be that of the source."""
    feeds, judged = close_scores(), model(BEST.format(scores=RIGHT))
    feeds["x"][:, 0] *= 1e6
    expected = Best().run(feeds)
    chosen = np.array(expected["chosen"])
    chosen[0] += 1
    judge = Judge(Best(), judged, None, {})
    assert judge.compare(Case("sample", feeds), expected, expected, "cpu").ok
    assert not judge.compare(Case("sample", feeds), expected, {**expected, "chosen": chosen}, "cpu").ok


def test_sequences_of_several_shapes_are_compared_in_double_precision_item_by_item() -> None:
    single = [np.ones(2, np.float32), np.ones((1, 3), np.float32)]
    found = typed_alike({"s": [each.astype(np.float64) for each in single], "none": None}, {"s": single, "none": None})
    assert [each.dtype for each in found["s"]] == [np.dtype(np.float32)] * 2
    assert [each.shape for each in found["s"]] == [(2,), (1, 3)]
    assert found["none"] is None


def test_nan_in_both_is_nothing_that_was_excused() -> None:
    value = np.array([np.nan, np.nan, np.nan, 1, 2], np.float32)
    assert not mostly_excused({"y": value}, {"y": value.copy()})
    assert not mostly_excused({"y": value}, {"y": np.array([np.nan, np.nan, np.nan, 7, 8], np.float32)})
    assert mostly_excused({"y": value}, {"y": np.array([5, 6, np.nan, 7, 2], np.float32)})


MIXED = """<ir_version: 10, opset_import: ["": 19, "own": 1]>
mixed (float[1, 1, 4, 4] x, bool c, int64 n) => (float[1, 1, 8, 8] large, double[1, 1, 4, 4] a, float[S, 1, 4, 4] all)
<float third = {0.333333333333}>
{
  scales = Constant <value_floats = [1.0, 1.0, 2.0, 2.0]> ()
  roi, none = own.nothing (x)
  scaled = Mul (x, third)
  large = Resize <mode = "linear"> (scaled, , scales)
  whole = Cast <to = 6> (x)
  back = Cast <to = 1> (whole)
  chosen = If (c) <then_branch = t () => (float[1, 1, 4, 4] p) { p = Exp (back) },
                   else_branch = e () => (float[1, 1, 4, 4] q) { h = Constant <value_float = 0.1> ()  q = Mul (x, h) }>
  a = Cast <to = 11> (chosen)
  yes = Cast <to = 9> (n)
  last, all = Loop (n, yes, x) <body = step (int64 i, bool go, float[1, 1, 4, 4] s)
      => (bool on, float[1, 1, 4, 4] t, float[1, 4, 4] u) { on = Identity (go)  t = Tanh (s)
      front = Constant <value_ints = [0]> ()  u = Squeeze (t, front) }>
}
<domain: "own", opset_import: ["": 19]>
nothing (v) => (r, w) { r = Constant <value_floats = [0.1]> ()  w = Add (v, r) }
"""


@pytest.mark.parametrize("chosen", [True, False])
def test_bodies_functions_and_operators_of_single_precision_only_are_doubled(chosen: bool) -> None:
    x = np.random.default_rng(0).standard_normal((1, 1, 4, 4))
    doubled = in_double(model(MIXED))
    assert {spec.name: spec.dtype for spec in doubled.inputs}["x"] == "float64"
    results = ep.Session(doubled, providers=["cpu"]).run({"x": x, "c": np.bool_(chosen), "n": np.int64(3)})
    third = np.float64(np.float32(0.333333333333))
    np.testing.assert_allclose(results["large"][..., 0, 0], x[..., 0, 0] * third, rtol=1e-14)
    factor = np.float64(np.float32(0.1))
    np.testing.assert_allclose(results["a"], np.exp(np.trunc(x)) if chosen else x * factor, rtol=1e-14)
    np.testing.assert_allclose(results["all"][2], np.tanh(np.tanh(np.tanh(x)))[0], rtol=1e-14)


def test_operators_of_others_and_of_chance_have_no_double() -> None:
    text = '<ir_version: 10, opset_import: ["": 20, "x": 1]> g (float[2] x) => (float[2] y) { y = x.Other (x) }'
    with pytest.raises(ep.EntrepotError, match="Other"):
        in_double(model(text))
    text = '<ir_version: 10, opset_import: ["": 20]> g (float[2] x) => (float[2] y) { y = RandomNormalLike (x) }'
    with pytest.raises(ep.EntrepotError, match="RandomNormalLike"):
        in_double(model(text))


ROUNDED = """<ir_version: 10, opset_import: ["": 20]>
best (float[N, 33] x, float[N, 2] y) => (float[8, 2] chosen)
<float[40] more = {{{more}}}> {{
  axes = Constant <value_ints = [1]> ()
  k = Constant <value_ints = [8]> ()
  sums = ReduceSum <keepdims = 0> (x, axes)
  all = Add (sums, more)
  scores = {scores} (all)
  values, places = TopK (scores, k)
  chosen = Gather (y, places) }}"""


class Offset(Best):
    """Rows whose scores have numbers added that a graph holds in single precision."""

    more = np.where(np.arange(40) % 2, 1 / 3, 1 / 4) + np.arange(40) * 1e-9
    apart = 1e-6

    def run(self, feeds: dict[str, np.ndarray], choices: Any = None) -> dict[str, Any]:
        scores = np.zeros(40, feeds["x"].dtype)
        for column in reversed(range(33)):
            scores = scores + feeds["x"][:, column]
        scores = scores + self.more.astype(scores.dtype)
        own = np.argsort(-scores, kind="stable")[:8]
        taken = own if choices is None or abs(scores[choices[0]] - scores[own]).max() > self.apart else choices[0]
        return {"chosen": feeds["y"][taken]}

    def choosing(self, feeds: dict[str, np.ndarray], choices: Any) -> dict[str, Any] | None:
        return None

    def exact_choosing(self, feeds: dict[str, np.ndarray], choices: Any) -> dict[str, Any] | None:
        return self.run({name: value.astype(np.float64) for name, value in feeds.items()}, choices)


class Untold(Offset):
    """One that cannot be told."""

    def exact_choosing(self, feeds: dict[str, np.ndarray], choices: Any) -> None:
        return None


class Lucky(Offset):
    """One that happens to choose the same in both precisions, and can be told otherwise in single precision."""

    apart = 1e-5

    def exact(self, feeds: dict[str, np.ndarray]) -> dict[str, Any]:
        return {name: value.astype(np.float64) for name, value in self.run(feeds).items()}

    def exact_choosing(self, feeds: dict[str, np.ndarray], choices: Any) -> None:
        return None

    def choosing(self, feeds: dict[str, np.ndarray], choices: Any) -> dict[str, Any] | None:
        return self.run(feeds, choices)


def close_in_single_precision(scores: str) -> tuple[ep.Model, Case]:
    """A model of ``Offset``, and rows whose sums are the same but for rounding."""
    rng = np.random.default_rng(5)
    base = rng.standard_normal(33)
    feeds = {"x": np.stack([rng.permutation(base) for _ in range(40)]).astype(np.float32)}
    feeds["y"] = rng.standard_normal((40, 2)).astype(np.float32)
    more = ", ".join(map(repr, Offset.more.astype(np.float32).tolist()))
    return model(ROUNDED.format(scores=scores, more=more)), Case("sample", feeds)


@pytest.mark.parametrize("provider", ["cpu", "onnxruntime"])
@pytest.mark.parametrize(("scores", "right"), [("Identity", True), ("Neg", False)])
def test_a_source_is_told_what_a_provider_chose_in_single_precision(provider: str, scores: str, right: bool) -> None:
    judged, case = close_in_single_precision(scores)
    expected, actual = Offset().run(case.feeds), opened(judged, provider).run(case.feeds)
    assert not np.allclose(expected["chosen"], actual["chosen"], atol=0.1)
    assert Judge(Lucky(), judged, None, {}).compare(case, expected, actual, provider).ok is right


def test_a_source_is_told_once_what_several_providers_chose() -> None:
    told: list[Any] = []

    class Listening(Lucky):
        def choosing(self, feeds: dict[str, np.ndarray], choices: Any) -> dict[str, Any] | None:
            told.append(choices)
            return super().choosing(feeds, choices)

    judged, case = close_in_single_precision("Identity")
    judge, expected = Judge(Listening(), judged, None, {}), Offset().run(case.feeds)
    actual = opened(judged, "cpu").run(case.feeds)
    judge._choices = dict.fromkeys(("cpu", "like cpu"), Choices(judged, "cpu"))
    assert all(judge.compare(case, expected, actual, provider).ok for provider in ("cpu", "like cpu"))
    assert len(told) == 1


def test_what_follows_from_equal_choices_has_to_be_equal() -> None:
    judged, case = close_in_single_precision("Identity")
    expected, actual = Offset().run(case.feeds), ep.Session(judged, providers=["cpu"]).run(case.feeds)
    actual["chosen"][0] += 1e-3
    assert not Judge(Lucky(), judged, None, {}).compare(case, expected, actual, "cpu").ok


@pytest.mark.parametrize(("scores", "right"), [("Identity", True), ("Neg", False)])
def test_rows_that_single_precision_does_not_tell_apart_are_chosen_alike(scores: str, right: bool) -> None:
    judged, case = close_in_single_precision(scores)
    feeds = case.feeds
    expected, actual = Offset().run(feeds), ep.Session(judged, providers=["cpu"]).run(feeds)
    assert not np.allclose(expected["chosen"], actual["chosen"], atol=0.1)
    assert Judge(Offset(), judged, None, {}).compare(case, expected, actual, "cpu").ok is right
    assert not Judge(Untold(), judged, None, {}).compare(case, expected, actual, "cpu").ok


@pytest.mark.parametrize(("off", "own"), [(-3.5, 1.0), (3.5, 1.0), (-4.5, 0.0), (4.8, 0.0), (np.nan, 0.0)])
def test_a_model_may_be_four_times_as_far_off_what_is_exact_as_its_source(off: float, own: float) -> None:
    """On either side: the two may be further from each other, or nearer."""
    exact = np.array([100.0, 200.0])
    single, actual = (exact + np.array([each, 0]) for each in (1.0, off))
    found = compare({"y": single.astype(np.float32)}, {"y": actual.astype(np.float32)}).outputs[0]
    assert most_moved({"y": single}, {"y": exact}, {"y": actual}, found) == own
