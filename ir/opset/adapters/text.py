"""Operators on strings, which have no older form."""

from __future__ import annotations

from entrepot.ir.opset.rules import impossible

for _name, _born in (
    ("StringConcat", 20),
    ("StringNormalizer", 10),
    ("StringSplit", 20),
    ("RegexFullMatch", 20),
    ("TfIdfVectorizer", 9),
):
    impossible(_name, _born, 0, "string processing has no older form")
