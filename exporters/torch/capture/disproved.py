"""What is not so in the sample is not so for all sizes, and torch need not try to prove it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import torch

from entrepot.exporters.torch.capture.upstream import size_questions
from entrepot.exporters.torch.upstream import size_settings


@contextlib.contextmanager
def disproved_by_the_sample() -> Iterator[None]:
    """Inside, torch proves of sizes only what the sample leaves open: which takes a tenth off a capture.

    Where nothing is held to the sample (``backed_size_oblivious``), torch (2.13) takes what it can prove for the answer
    to a question, and else an answer that the question brings along. It tries to prove the question even where the
    sample has that answer, which can only be proved, too; its ``statically_known_true`` looks at the sample first.
    """
    asked: Any = size_questions._guard_or  # noqa: SLF001 - has no other name
    with mock.patch.object(size_questions, "_guard_or", _answering(asked)):
        yield


def _answering(asked: Callable[[Any, bool], bool]) -> Callable[[Any, bool], bool]:
    settings: Any = size_settings

    def answer(question: Any, default: bool) -> bool:
        held = not settings.backed_size_oblivious  # as in some bodies: then the sample is what decides, and is noted
        if held or not isinstance(question, torch.SymBool) or question.node._hint is not default:  # noqa: SLF001
            return asked(question, default)
        return default

    return answer
