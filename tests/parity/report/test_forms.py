from __future__ import annotations

import dataclasses
import io
import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest
import rich.console

from entrepot.parity.compare import compare
from entrepot.parity.report import Report, Run

X = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)
HOSTILE = '<script>alert("y")</script>[/bold]'


def run_of(label, expected, actual, provider="cpu", symbol=""):
    found = compare(expected, actual)
    verdict = "agrees" if found.ok else "differs"
    return Run(label, provider, verdict, "; ".join(found.problems), symbol, 0.01, found)


@pytest.fixture
def good():
    runs = (run_of("sample", {"y": X}, {"y": X + np.float32(1e-6)}), run_of("batch=0", {"y": X[:0]}, {"y": X[:0]}))
    return Report("LeNet", "net.onnx", ("cpu",), runs)


@pytest.fixture
def bad():
    with_nan = X.copy()
    with_nan[0, 0] = np.nan
    runs = (
        run_of("sample", {"y": X, "s": [X, None]}, {"y": with_nan, "s": [X, None]}),
        run_of(HOSTILE, {HOSTILE: X}, {}),
        Run("batch=7", "onnxruntime", "error", "node 'conv1' (Conv, opset 22): broke", "batch"),
        Run("batch=0", "source", "refused", "needs a row", "batch"),
    )
    return Report("LeNet", "net.onnx", ("cpu", "onnxruntime"), runs)


def test_a_good_report_says_so_in_one_line(good):
    assert good.ok
    assert good.summary().startswith("verified against LeNet: 2 runs on cpu agree; largest error ")
    assert "\n" not in good.summary()


def test_a_bad_report_names_the_worst_run(bad):
    assert not bad.ok
    assert bad.summary().startswith("NOT verified against LeNet: 3 of 3 runs failed")
    assert "1 refused by the source" in bad.summary()


def test_the_text_has_a_line_per_run_and_the_messages(bad):
    text = str(bad)
    assert re.search(r"^sample +cpu +differs +inf ", text, re.MULTILINE)
    assert re.search(r"^batch=0 +source +refused$", text, re.MULTILINE)
    assert "batch=7 on onnxruntime: node 'conv1' (Conv, opset 22): broke" in text


def test_an_error_of_many_lines_is_told_on_one():
    report = Report("a", "b", ("cpu",), (Run("sample", "cpu", "error", "no kernel for:\n  - node 'a'\n  - node 'b'"),))
    assert report.summary().count("\n") == 0
    assert str(report).splitlines()[-1] == "sample on cpu: no kernel for: - node 'a' - node 'b'"


def test_a_refusal_of_the_graph_is_not_put_down_to_the_source(good):
    excused = dataclasses.replace(good, runs=(*good.runs, Run("batch=0", "cpu", "refused", "no rows")))
    assert "1 empty inputs refused by the exported graph" in excused.summary()
    assert "refused by the source" not in excused.summary()


def test_names_in_a_file_cannot_drive_the_terminal():
    report = Report("a", "\x1b[2J", ("cpu",), (Run("b\x1b[m=1", "cpu", "error", "value '\x07'"),))
    shown = io.StringIO()
    rich.console.Console(file=shown, width=300).print(report)
    for text in (str(report), shown.getvalue()):
        assert not {"\x1b", "\x07"} & set(text)
        assert r"b\x1b[m=1" in text


def test_of_many_failures_the_first_are_told():
    report = Report("a", "b", ("cpu",), tuple(Run(f"batch={size}", "cpu", "error", "broke") for size in range(30)))
    assert str(report).splitlines()[-1] == "... and 20 more"


def test_rich_shows_names_that_look_like_markup(bad):
    shown = io.StringIO()
    rich.console.Console(file=shown, width=300).print(bad)
    assert HOSTILE in shown.getvalue()


def test_the_json_is_strict_and_versioned(bad):
    def refuse(name):
        raise AssertionError(name)

    document = json.loads(bad.to_json(), parse_constant=refuse)
    assert document["schema"] == "entrepot.parity.report/1"
    assert document["ok"] is False
    assert [run["verdict"] for run in document["runs"]] == ["differs", "differs", "error", "refused"]
    output = document["runs"][0]["outputs"][0]
    assert output["metrics"]["max_abs"] == "inf"
    assert output["metrics"]["worst"] == {"index": [0, 0], "expected": float(X[0, 0]), "actual": "nan"}
    assert output["tolerance"]["rtol"] == 1e-4


class Page(HTMLParser):
    """Checks nesting and collects what a browser would load."""

    def __init__(self):
        super().__init__()
        self.open, self.loaded, self.tags = [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.loaded += [value for name, value in attrs if name in {"src", "href"}]
        if tag not in {"meta", "!doctype", "br"}:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.mark.parametrize("name", ["good", "bad"])
def test_the_page_is_well_formed_and_loads_nothing(name, request, tmp_path):
    request.getfixturevalue(name).to_html(tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    page = Page()
    page.feed(text)
    assert page.open == []
    assert page.loaded == []
    assert "script" not in page.tags
    assert "http" not in text
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_the_page_shows_every_metric_and_a_histogram(good):
    page = good._repr_html_()
    for heading in ("of tolerance", "max abs", "max rel", "mean abs", "rms", "cosine", "differ", "worst element"):
        assert f"<th>{heading}</th>" in page
    assert page.count("<svg") == 2


def test_runs_that_agree_fold_into_one_line(good):
    page = good._repr_html_()
    (fold,) = re.findall(r"<details(.*?)><summary>(.*?)</summary>", page)
    assert fold[0] == ' class="run"'
    assert re.sub("<.*?>", "", fold[1]).startswith("2 runs agree, largest error ")
    assert fold[1].endswith(" of the tolerance (sample on cpu)")
    assert page.count("<tr>") == 3  # the headings and a row for each run, with its one output in it


def test_runs_of_which_nothing_was_measured_are_not_the_worst(good, monkeypatch):
    unmeasured = dataclasses.replace(good.runs[0], label="NaN")
    excess = Run.excess.fget
    monkeypatch.setattr(Run, "excess", property(lambda run: np.nan if run.label == "NaN" else excess(run)))
    assert "(sample on cpu)" in dataclasses.replace(good, runs=(unmeasured, *good.runs))._repr_html_()


def test_several_outputs_that_agree_fold_out_beneath_their_run():
    outputs = {f"y{at}": X for at in range(3)}
    page = Report("a", "b", ("cpu",), (run_of("sample", outputs, outputs),))._repr_html_()
    assert re.findall("<details.*?>", page) == ['<details class="run">', "<details>"]
    assert "<summary>3 outputs</summary>" in page


def test_what_failed_is_open_with_the_outputs_that_differ(good):
    outputs = {f"y{at}": X for at in range(40)}
    failed = run_of("batch=2", outputs, outputs | {"y7": X + 1})
    report = dataclasses.replace(good, runs=(*good.runs * 6, failed))
    opened, rest = report._repr_html_().split("<summary>39 outputs within tolerance</summary>")
    assert opened.count(" open>") == 1
    assert "batch=2 on cpu" in opened
    assert re.findall(r"<td>(y\d+)</td>", opened) == ["y7"]
    assert "12 runs" in rest
    assert " open>" not in rest


def test_an_error_is_open_with_its_message_as_it_is(bad):
    assert "<pre>node &#x27;conv1&#x27; (Conv, opset 22): broke</pre>" in bad._repr_html_()


def test_what_was_not_compared_is_told_with_its_reason(bad):
    assert "<summary>1 not counted</summary>" in bad._repr_html_()
    assert '<td>refused</td><td class="text">needs a row</td>' in bad._repr_html_()


def test_in_a_notebook_the_page_around_it_keeps_its_colours(good):
    style = re.search("<style>(.*?)</style>", good._repr_html_(), re.DOTALL).group(1)
    assert not [rule for rule in re.findall(r"[^{}]+(?=\{)", style) if not re.search(r"\.parity|@media", rule)]


def test_a_report_that_cannot_be_written_leaves_the_old_one(good, tmp_path, monkeypatch):
    target = tmp_path / "report.html"
    target.write_text("old")
    monkeypatch.setattr("entrepot.parity.report.html.fragment", lambda report: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        good.to_html(target)
    assert target.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_a_notebook_gets_the_same_table(good):
    assert good._repr_html_().startswith('<div class="parity">')


@pytest.fixture
def hollow():
    nothing = np.full((2, 2), np.nan, np.float32)
    runs = tuple(run_of(label, {"y": nothing}, {"y": nothing}) for label in ("sample", "batch=3"))
    return Report("LeNet", "net.onnx", ("cpu",), runs)


def test_the_truth_of_reports_and_runs_is_whether_they_agree(good, bad):
    assert good
    assert not bad
    assert [bool(run) for run in good.runs] == [True, True]
    assert [bool(run) for run in bad.runs] == [False] * 4
    assert not Report("LeNet", "net.onnx", ("cpu",), ())


def test_a_report_in_which_nothing_was_finite_does_not_look_like_a_proof(hollow):
    assert hollow.hollow == ("y",)
    assert hollow.summary().startswith("agrees with LeNet in 2 runs on cpu, but no finite element was compared")
    assert "largest error" not in str(hollow)
    assert "n/a" in str(hollow)
    assert "no finite element" in hollow._repr_html_()
    assert "agrees, not proved</span>" in hollow._repr_html_()
    assert ">verified<" not in hollow._repr_html_()
    assert "nan" not in re.sub(r"expected nan|: nan", "", hollow._repr_html_())
    document = json.loads(hollow.to_json())
    assert document["hollow"] == ["y"]
    assert document["runs"][0]["outputs"][0]["metrics"]["max_abs"] == "nan"


def test_a_report_names_the_outputs_of_which_nothing_was_finite(good, hollow):
    mixed = dataclasses.replace(
        good, runs=(*good.runs, run_of("sample", {"z": np.full(2, np.nan)}, {"z": np.full(2, np.nan)}))
    )
    assert mixed.hollow == ("z",)
    assert mixed.summary().startswith("verified against LeNet")
    assert "no finite element compared in z" in mixed.summary()
    healed = dataclasses.replace(hollow, runs=(*hollow.runs, run_of("other values", {"y": X}, {"y": X})))
    assert healed.hollow == ()


def test_the_repr_of_a_report_is_its_summary(good):
    assert repr(good) == f"<Report: {good.summary()}>"
