"""Regular expressions mean what they mean to RE2, which onnxruntime uses, and take time in proportion to the text."""

from __future__ import annotations

import itertools
import sys

import numpy as np
import onnx
import onnxruntime
import pytest

import entrepot as ep
from entrepot.runtime.providers.cpu.regular_match import _Automaton, _Program, full_match
from entrepot.runtime.providers.cpu.regular_syntax import parse

LETTERS = ["", *"abAB1_ -.\n\\]k\u212aéÉß{}"]
TEXTS = sorted(
    {"".join(pair) for pair in itertools.product(LETTERS, repeat=2)} | {"abab", "aab", "a{,2}", "xaBx", "ab\n"}
)

PATTERNS = [
    "", "a", "ab|ba", "a|", "|", "(a|b)*", "(a*)*", "(?:ab)+", "(?P<n>a)b?", "(?<n>a)", "a{2}", "a{1,2}b",
    "a{1,}", "a{0}b", "a{,2}", "{", "a}", ".", "..", "(?s)..", "(?s:.)b", "(?-s:.)", "(?i)ab", "(?i:a)b",
    "a(?i)b", "(?i)k", "(?i)[k]", "(?i)[^k]", r"(?i)\W", "(?i)É", "[ab]+", "[^ab]", "[]a]", "[^]a]", "[a-]",
    "[-a]", "[a-c1]", r"[\]\\]", r"[\d_-]", "[[:alpha:]]+", "[^[:space:]]", "[[:^alpha:]]", r"[\D]", r"\d",
    r"\D", r"\w+", r"\W", r"\s", r"\S+", r"\pL", r"\PL", r"\p{Lu}", r"\P{Lu}", r"\p{^Lu}", r"\p{Any}", "^a$",
    "a^", "(?m)a$\n^b?", "(?m)^\n?$", r"\Aa\z", r"a\b.*", r"a\Bb", r"\b", r"\B", r"\.", r"\x61", r"\x{e9}",
    r"\141", r"\0", r"\n", r"\Qa.\E", r"\Qab", "a*?", "a+?b??", "(?U)a*", "[^\\n]", "é|ß", "(a|(b|(A|B)))+",
    "x?a?B?x?", "((((a))))",
]  # fmt: skip

REFUSED = [
    "(", ")", "[", "a)", "*", "a**", "a{2}{3}", "{2}", "a{1001}", "a{3,1}", "[z-a]", "[[:what:]]", r"\p{What}",
    r"\1", "(?=a)", "(?!a)", "(?<=a)", "(?<!a)", "(?P=n)", "(?#a)", "(?x)a", r"\Z", r"\h", r"\8", r"[\b]",
    "a\\", r"\xZZ", r"\x{110000}",
]  # fmt: skip


def node(pattern: str) -> onnx.ModelProto:
    inputs = [onnx.helper.make_tensor_value_info("x", onnx.TensorProto.STRING, ["N"])]
    outputs = [onnx.helper.make_tensor_value_info("y", onnx.TensorProto.BOOL, ["N"])]
    made = onnx.helper.make_node("RegexFullMatch", ["x"], ["y"], pattern=pattern)
    graph = onnx.helper.make_graph([made], "g", inputs, outputs)
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 20)], ir_version=10)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_patterns_match_what_onnxruntime_matches(pattern: str) -> None:
    feeds = {"x": np.array(TEXTS, object)}
    judge = onnxruntime.InferenceSession(node(pattern).SerializeToString(), providers=["CPUExecutionProvider"])
    np.testing.assert_array_equal(ep.Session(node(pattern)).run(feeds)["y"], judge.run(None, feeds)[0])


@pytest.mark.parametrize("pattern", REFUSED)
def test_what_onnxruntime_refuses_is_refused_with_a_reason(pattern: str) -> None:
    with pytest.raises(onnxruntime.capi.onnxruntime_pybind11_state.Fail, match="regex"):
        onnxruntime.InferenceSession(node(pattern).SerializeToString(), providers=["CPUExecutionProvider"])
    with pytest.raises(ep.InputError, match="regular expression"):
        ep.Session(node(pattern)).run({"x": np.array(["a"], object)})


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|a)*b", "(a|aa)+b|(.*)*x", "(.*)(.*)(.*)(.*)(.*)c", "(x+x+)+y|a*z"])
def test_patterns_that_make_others_backtrack_take_a_few_states(pattern: str) -> None:
    automaton = _Automaton(_Program(parse(pattern)))
    assert not automaton.matches("a" * 50_000 + "!")
    assert len(automaton._states) < 10


def test_a_language_with_very_many_states_keeps_a_bounded_number_of_them() -> None:
    random = np.random.default_rng(0)
    text = "".join(random.choice(["a", "b"], 30_000))
    automaton = _Automaton(_Program(parse("(a|b)*a(a|b){20}")))
    assert automaton.matches(text) == (text[-21] == "a")
    assert len(automaton._states) <= 10_001


@pytest.mark.parametrize("pattern", ["((a{100}){100}){100}", "(" * 5000 + "a" + ")" * 5000, "((((a{9}){9}){9}){9}){9}"])
def test_patterns_too_large_are_refused(pattern: str) -> None:
    with pytest.raises(ep.ResourceLimitError, match="regular expression"):
        full_match(pattern)


def test_deeply_nested_patterns_stay_within_pythons_stack() -> None:
    assert sys.getrecursionlimit() <= 10_000
    assert full_match("(" * 99 + "a" + ")" * 99)("a")
