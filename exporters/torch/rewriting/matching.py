"""``match`` by values, written as branches."""

from __future__ import annotations

import ast
from collections.abc import Sequence


class Matching(ast.NodeTransformer):
    """Rewrites ``match`` statements whose patterns are values, names and wildcards; others are left."""

    def __init__(self) -> None:
        self._count = 0

    def visit_Match(self, node: ast.Match) -> ast.AST | list[ast.stmt]:
        """``subject = ...``, and a branch for each case."""
        self.generic_visit(node)
        self._count += 1
        subject = f"_ep_subject_{self._count}"
        tests = [_test(case.pattern, subject) for case in node.cases]
        if any(test is None for test in tests):
            return node
        rest: list[ast.stmt] = []
        for case, test in reversed(list(zip(node.cases, tests, strict=True))):
            rest = _arm(case, [each for each in (test, case.guard) if each is not None], subject, rest)
        first = ast.Assign([ast.Name(subject, ast.Store())], node.subject)
        return [ast.fix_missing_locations(ast.copy_location(each, node)) for each in (first, *rest)]


def _arm(case: ast.match_case, tests: Sequence[ast.expr], subject: str, rest: list[ast.stmt]) -> list[ast.stmt]:
    """A case, and those after it."""
    bound: list[ast.stmt] = []
    if isinstance(case.pattern, ast.MatchAs) and case.pattern.name:
        bound = [ast.Assign([ast.Name(case.pattern.name, ast.Store())], ast.Name(subject, ast.Load()))]
    test = tests[0] if len(tests) == 1 else ast.BoolOp(ast.And(), list(tests))
    if isinstance(test, ast.Constant) and test.value is True:
        return [*bound, *case.body]
    return [*bound, ast.If(test, case.body, rest)]


def _test(pattern: ast.pattern, subject: str) -> ast.expr | None:
    """Whether a pattern matches; ``None`` for patterns that take things apart."""
    match pattern:
        case ast.MatchValue(value):
            return ast.Compare(ast.Name(subject, ast.Load()), [ast.Eq()], [value])
        case ast.MatchSingleton(value):
            return ast.Compare(ast.Name(subject, ast.Load()), [ast.Is()], [ast.Constant(value)])
        case ast.MatchAs(None):
            return ast.Constant(True)
        case ast.MatchAs(inner) if inner is not None:
            return _test(inner, subject)
        case ast.MatchOr(patterns):
            tests = [_test(each, subject) for each in patterns]
            known = [each for each in tests if each is not None]
            return ast.BoolOp(ast.Or(), list(known)) if len(known) == len(tests) else None
    return None
