"""Strings."""

from __future__ import annotations

import numpy as np

from tests.op_cases.case import Case, i64, ints, strings

WORDS = strings(["monday", "tuesday", "Monday", "wednesday"])
POOL = {"ngram_counts": [0, 4], "ngram_indexes": [0, 1, 2, 3, 4, 5, 6], "pool_int64s": [2, 3, 5, 4, 5, 6, 7, 8, 6, 7]}
TOKENS = ints(1, 1, 3, 3, 3, 7, 8, 6, 7, 5, 6, 8)
TWO_ROWS = TOKENS.reshape(2, 6)

CASES = [
    Case("StringConcat", strings(["a", "b"]), strings(["x", ""])),
    Case("StringConcat", strings([["a"], ["b"]]), strings(["x", "y", "z"])),
    Case("StringConcat", strings("é"), strings("ü")),
    Case("StringConcat", strings([]), strings([])),
    Case("RegexFullMatch", strings([["www.a-b.com", "a.com"], ["x.org", ""]]), pattern=r"www\.[\w.-]+\.com"),
    Case("RegexFullMatch", strings([]), pattern="a"),
    Case("StringSplit", strings(["a b  c", "", "d"])),
    Case("StringSplit", strings(["a.b.c", "d", ".e"]), delimiter="."),
    Case("StringSplit", strings([["a-b-c"], ["d-e"]]), delimiter="-", maxsplit=1),
    Case("StringNormalizer", WORDS),
    Case("StringNormalizer", WORDS, case_change_action="LOWER", is_case_sensitive=1, stopwords=["monday"]),
    Case("StringNormalizer", WORDS, case_change_action="UPPER", is_case_sensitive=0, stopwords=["monday"]).giving(
        strings(["TUESDAY", "WEDNESDAY"])
    ),
    Case("StringNormalizer", WORDS.reshape(1, 4), stopwords=["tuesday"], is_case_sensitive=1, locale="en_US"),
    Case("StringNormalizer", strings(["ÄbC", "É"]), case_change_action="LOWER", is_case_sensitive=1, locale="C").giving(
        strings(["Äbc", "É"])  # as onnxruntime does; en_US is not installed everywhere
    ),
    Case("StringNormalizer", strings(["äBc"]), case_change_action="UPPER", locale="C").giving(strings(["äBC"])),
    Case("StringNormalizer", strings(["a"]), stopwords=["a"], is_case_sensitive=1).giving(strings([""])),
    Case("TfIdfVectorizer", TOKENS, mode="TF", min_gram_length=2, max_gram_length=2, max_skip_count=0, **POOL),
    Case("TfIdfVectorizer", TOKENS, mode="TF", min_gram_length=2, max_gram_length=2, max_skip_count=5, **POOL),
    Case("TfIdfVectorizer", TOKENS, mode="TF", min_gram_length=1, max_gram_length=2, max_skip_count=5, **POOL),
    Case("TfIdfVectorizer", TWO_ROWS, mode="IDF", min_gram_length=1, max_gram_length=1, max_skip_count=0, **POOL),
    Case(
        "TfIdfVectorizer", TWO_ROWS, mode="TFIDF", min_gram_length=1, max_gram_length=2, max_skip_count=1,
        weights=[0.5, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0], **POOL,
    ),
    Case(
        "TfIdfVectorizer", strings(["b", "a", "b"]), mode="TF", min_gram_length=1, max_gram_length=1, max_skip_count=0,
        ngram_counts=[0], ngram_indexes=[1, 0], pool_strings=["a", "b"],
    ).giving(np.array([2.0, 1.0], np.float32)),
    Case("TfIdfVectorizer", i64(0), mode="TF", min_gram_length=1, max_gram_length=1, max_skip_count=0, **POOL).giving(
        np.zeros(7, np.float32)
    ),
]  # fmt: skip
