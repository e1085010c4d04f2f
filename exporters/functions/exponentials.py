"""Exponentials and logarithms near zero."""

from __future__ import annotations

import math

from entrepot.exporters.functions.terms import Term, choose, in_double


@in_double
def expm1(x: Term) -> Term:
    """exp(x) - 1, by Kahan's correction of the rounded exponential."""
    whole = x.exp()
    less = whole - 1
    plain = (less == -1) | whole.isinf()
    value = less * x / choose(plain | (whole == 1), 1.0, whole).log()
    return choose(whole == 1, x, choose(plain, less, value))


@in_double
def log1p(x: Term) -> Term:
    """log(1 + x), by the same correction."""
    return log_of_one_more(x)


def log_of_one_more(x: Term) -> Term:
    """The same of a term in float64."""
    whole = x + 1
    value = whole.log() * (x / choose(whole == 1, 1.0, whole - 1))
    return choose(whole == 1, x, choose(whole.isinf(), whole.log(), value))


@in_double
def softplus(x: Term) -> Term:
    """log(1 + exp(x)), which keeps the digits of both tails."""
    return x.at_least(0.0) + log_of_one_more((-x.abs()).exp())


@in_double
def logistic_log(x: Term) -> Term:
    """log(1 / (1 + exp(-x)))."""
    return x.at_most(0.0) - log_of_one_more((-x.abs()).exp())


LOG_OF_TWO = math.log(2)
