"""Characters of texts are found in patterns, and replaced."""

from __future__ import annotations

import string

import pytest

from entrepot.exporters.functions.texts import parts_matched


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
        ("[é]", None),
        (".", None),
        ("", None),
        ("[", None),
    ],
)
def test_a_pattern_is_known_where_it_means_one_of_some_ascii_characters(pattern, found):
    some = parts_matched(pattern)
    assert (some if some is None else "".join(sorted(some))) == found


def test_a_pattern_of_letters_is_one_text():
    assert parts_matched(r"<br \/>") == ["<br />"]
