"""Sizes as formulas over others: read from a file's names of axes, written so that equal ones read the same."""

import itertools
import math

import pytest

from entrepot.ir.typing.formula import Formula

SIZES = {"a": 10, "b": 25, "t": 9, "n": 5}
MEANT = {
    "b + a": ("a + b", 35),
    "b+a*2+1": ("2*a + b + 1", 46),
    "-a + b": ("b - a", 15),
    "a*b - b*a + n": ("n", 5),
    "(t//4)": ("t//4", 2),
    "floor(t/2)": ("t//2", 4),
    "ceiling(n/2)": ("(n + 1)//2", 3),
    "TruncToInt(1.5*ToFloat(a))": ("(3*a)//2", 15),
    "CeilDiv(n, 2)": ("(n + 1)//2", 3),
    "(4*a + 6)//4": ("a + 1", 11),
    "(t - 3)//2 + 1": ("(t + 1)//2 - 1", 4),
    "t//4*2": ("2*(t//4)", 4),
    "a*(b - n)": ("a*b - a*n", 200),
    "n**2": ("n*n", 25),
    "Max(1, a)": ("max(1, a)", 10),
    "2*Min(a, n)": ("2*min(a, n)", 10),
    "Mod(a, 4) + 1": ("(a % 4) + 1", 3),
    "(a*b)//n": ("(a*b)//n", 50),
    "-((-t)//2)": ("-((-t)//2)", 5),
    "b - 3 - t//4": ("b - t//4 - 3", 20),
    "past_length + 1": ("past_length + 1", None),
}
NONE = [
    "",
    "?",
    "batch size",
    "unk__1 + ?",
    "a.b",
    "a b",
    "1.5*a",
    "True",
    "a if b else 1",
    "sqrt(a)",
    "f(a)",
    "a[0]",
    "TruncToInt(0.1*ToFloat(a))",
]
HOSTILE = ["9**9**9", "a**999999", "(" * 150 + "a", "-" * 250 + "a", "a" * 400, "\0", "*".join(["(a+b+c+n)"] * 25)]


@pytest.mark.parametrize("text", MEANT)
def test_a_formula_is_read_written_in_one_way_and_worked_out(text):
    formula = Formula.of(text)
    assert (formula.text, formula.size(SIZES)) == MEANT[text]
    assert Formula.of(formula.text) == formula


@pytest.mark.parametrize("text", [*NONE, *HOSTILE])
def test_a_name_that_is_no_formula_is_none(text):
    found = Formula.of(text)
    assert found is None or found.size({"a": 1}) is not None


@pytest.mark.parametrize("text", [text for text, (_, size) in MEANT.items() if size is not None])
def test_the_written_form_has_the_value_of_the_given_one_at_every_size(text):
    names = {
        "floor": math.floor, "ceiling": math.ceil, "Max": max, "Min": min, "Mod": lambda a, b: a % b,
        "TruncToInt": math.trunc, "ToFloat": float, "CeilDiv": lambda a, b: -(-a // b),
    }  # fmt: skip
    for a, b, t, n in itertools.product((3, 8, 13), (26, 40), (3, 9, 14), (1, 2, 7)):
        sizes = {"a": a, "b": b, "t": t, "n": n}
        assert Formula.of(text).size(sizes) == eval(text, {**names, **sizes})


def test_names_may_be_replaced_by_names_and_by_formulas():
    assert Formula.of("s0 + 2*s1").renamed({"s0": "sequence", "s1": "past"}).text == "2*past + sequence"
    assert Formula.of("2*s0").renamed({"s0": "length//4"}).text == "2*(length//4)"
    assert Formula.of("s0//2").renamed({"s0": "a - b"}).text == "(a - b)//2"


@pytest.mark.parametrize(
    ("text", "expected"), [("2*a + 1", (2, 1)), ("a", (1, 0)), ("a - 3", (1, -3)), ("a + b", None), ("a*b", None),
                           ("a//2", None), ("7", None), ("a*a", None)]
)  # fmt: skip
def test_a_multiple_of_one_name_with_an_offset_is_told_from_the_rest(text, expected):
    assert Formula.of(text).slope() == expected
    assert Formula.of(text).is_power == (text == "a*a")


def test_what_is_no_size_is_none():
    assert Formula.of("a - b").size({"a": 2, "b": 3}) is None
    assert Formula.of("a//b").size({"a": 2, "b": 0}) is None
    assert Formula.of("a + c").size({"a": 2}) is None
