"""Characters of texts are found in patterns, and replaced."""

from __future__ import annotations

import string

import pytest

from entrepot.exporters.functions.texts import characters


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("[!-/]", "!\"#$%&'()*+,-./"),
        (r"[!\"#$%&()\*\+,-\./:;<=>?@\[\\\]^_`{|}~\']", string.punctuation),
        ("[ab]", "ab"),
        (",", ","),
        (r"\.", "."),
        ("[^a]", None),
        (r"\s", None),
        (r"[\d,]", None),
        ("a+", None),
        ("ab", None),
        ("[é]", None),
        (".", None),
        ("", None),
        ("[", None),
    ],
)
def test_a_pattern_is_known_where_it_means_one_of_some_ascii_characters(pattern, found):
    some = characters(pattern)
    assert (some if some is None else "".join(sorted(some))) == found
