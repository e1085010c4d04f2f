"""What the sample says of sizes spares torch from proving it, and decides nothing."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from entrepot.exporters.torch.capture import blame
from entrepot.exporters.torch.capture.settings import capture_settings
from entrepot.exporters.torch.capture.upstream import size_questions
from entrepot.exporters.torch.upstream import ShapeEnv, size_notes, size_settings


class Asking(nn.Module):
    """Asks something of the size of its input, 6 in the sample."""

    def __init__(self, question):
        super().__init__()
        self.question = question
        self.answers = []

    def forward(self, *tensors):
        self.answers.append(self.question(tensors[0].shape[0]))
        return (tensors[0] + 1,)


def captured(question):
    module = Asking(question).eval()
    program = blame.export_flat(module, [torch.randn(6, 4)], {(0, 0): torch.export.Dim.AUTO})
    return module.answers[-1], size_notes(program).guards


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        (lambda size: size_questions.guard_or_false(size == 1), False),
        (lambda size: size_questions.guard_or_true(size != 1), True),
        (lambda size: size_questions.guard_or_false(size == 6), False),  # so in the sample, but not at all sizes
        (lambda size: size_questions.guard_or_true(size != 6), True),
        (lambda size: size_questions.guard_or_false(size + 1 > 0), True),
        (lambda size: size_questions.guard_or_true(size + 1 < 0), False),
    ],
)
def test_answers_hold_at_all_sizes_and_make_no_conditions(question, answer):
    found, conditions = captured(question)
    assert found is answer
    assert not conditions


def test_what_the_sample_disproves_is_not_proved(monkeypatch):
    proved = []
    evaluate = ShapeEnv._maybe_evaluate_static
    monkeypatch.setattr(
        ShapeEnv,
        "_maybe_evaluate_static",
        lambda env, formula, **how: proved.append(str(formula)) or evaluate(env, formula, **how),
    )
    captured(lambda size: size_questions.guard_or_false(3 * size == 57))
    assert not [each for each in proved if "57" in each]
    captured(lambda size: size_questions.guard_or_false(3 * size == 18))
    assert [each for each in proved if "18" in each]


def test_where_the_sample_decides_its_answer_is_noted():
    def question(size):
        with size_settings.patch(backed_size_oblivious=False):
            return size_questions.guard_or_false(size > 7)

    found, conditions = captured(question)
    assert found is False
    assert conditions


def test_torch_is_left_as_it_was():
    before = size_questions._guard_or
    with capture_settings():
        assert size_questions._guard_or is not before
    assert size_questions._guard_or is before
