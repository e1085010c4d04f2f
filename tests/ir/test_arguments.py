from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

import entrepot as ep
from entrepot.ir.arguments import as_flag, as_integer, as_names, as_number, as_path, described
from entrepot.ir.opset.convert import can_convert, convert_opset
from entrepot.ir.progress import reporter
from tests.ir.opset.evaluate import parse


@pytest.mark.parametrize("given", [18, 18.0, "18", " 18", np.int64(18), np.float64(18), np.array(18)])
def test_a_whole_number_may_be_written_in_many_ways(given):
    assert as_integer(given, "opset") == 18


@pytest.mark.parametrize(
    "given", [True, np.True_, 18.5, math.nan, math.inf, "", "18.0", b"18", None, [18], np.ones(2), 1j]
)
def test_what_is_no_whole_number_is_refused_with_what_was_given(given):
    with pytest.raises(ep.InputError, match=r"^opset is .*, expected a whole number of 1 or more \(hint: like 18\)"):
        as_integer(given, "opset", least=1, hint="like 18")


def test_a_number_that_is_too_small_is_refused():
    with pytest.raises(ep.InputError, match="threads is 0, expected a whole number of 1 or more"):
        as_integer("0", "threads", least=1)


@pytest.mark.parametrize("given", [0.5, "0.5", np.float32(0.5), np.array(0.5)])
def test_a_number_may_be_written_in_many_ways(given):
    assert as_number(given, "atol") == 0.5


@pytest.mark.parametrize("given", [True, -1, math.nan, math.inf, "much", b"1", None, [1], np.ones(1), 1j])
def test_what_is_no_number_is_refused(given):
    with pytest.raises(ep.InputError, match=r"^atol is .*, expected a finite number, not negative"):
        as_number(given, "atol")


def test_a_flag_is_a_boolean_and_nothing_that_is_true_by_accident():
    assert as_flag(True, "verify") is as_flag(np.True_, "verify") is True
    for given in (1, "no", None, [], np.array([True])):
        with pytest.raises(ep.InputError, match=r"verify is .* expected True or False"):
            as_flag(given, "verify")


def test_paths_and_names():
    assert as_path("a") == "a"
    assert as_path(Path("a")) == Path("a")
    assert as_names("x", "input_names") == as_names(["x"], "input_names") == ("x",)
    for given in ("", b"a", 3, None, ["a"]):
        with pytest.raises(ep.InputError, match=r"path is .* expected a path"):
            as_path(given)
    for given in (3, {"x": 1}, ["x", 3], ["x", ""], {"x"}):
        with pytest.raises(ep.InputError, match=r"input_names is .* expected a list of names"):
            as_names(given, "input_names")


def test_what_is_large_is_described_by_its_type():
    assert described(np.zeros(10**6)) == "an ndarray"
    assert described("x" * 1000) == f"'{'x' * 40}'..."
    assert described(10**5000) == "an int"
    assert described(ep.Model) == "the class Model"


def test_an_opset_is_read_as_it_is_meant():
    model = parse("y = Softmax<axis = 0>(x)", 13)
    for target in ("11", 11.0, {"": "11"}, {"ai.onnx": 11}):
        assert convert_opset(model, target).opset == 11
        assert can_convert(model, target) == ()


@pytest.mark.parametrize("target", [True, "eleven", 11.5, None, [11], {1: 11}, {"": None}])
def test_what_is_no_opset_is_refused(target):
    for function in (convert_opset, can_convert):
        with pytest.raises(ep.InputError, match=r"opset is .* expected a"):
            function(parse("y = Relu(x)", 13), target)


def test_a_path_stands_for_the_model_in_it(tmp_path):
    parse("y = Softmax<axis = 0>(x)", 13).save(tmp_path / "net.onnx")
    path = tmp_path / "net.onnx"
    for source in (path, str(path), path.read_bytes(), ep.load(path).to_proto(), ep.load(path).ir):
        assert ep.can_convert(source, 11) == ()
        assert ep.convert_opset(source, 11).opset == 11


def test_limits_are_whole_numbers():
    assert ep.Limits(nodes="3") == ep.Limits(nodes=3)
    for bad in (-1, None, 1.5, True):
        with pytest.raises(ep.InputError, match="limit nodes is"):
            ep.Limits(nodes=bad)
    with pytest.raises(ep.InputError, match="limits is 3, expected a Limits"):
        ep.load(b"", limits=3)


def test_progress_is_what_it_may_be():
    for bad in (3, "yes", [print]):
        with pytest.raises(ep.InputError, match=r"progress is .* function that is given each line"):
            reporter(bad)
