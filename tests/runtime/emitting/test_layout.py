"""Lines are broken as ``ruff format`` breaks them."""

from __future__ import annotations

import ast
import subprocess
from pathlib import Path

import pytest
import ruff

from entrepot.runtime.emitting.layout import wrapped

RUFF = ruff.find_ruff_bin()
LONG = [
    "y = conv(x, w, pads=(1, 1, 1, 1))",
    "y = convolution_of_a_long_name(first_operand, second_operand, pads=(1, 1, 1, 1), strides=(2, 2))",
    "y = convolution_of_a_long_name(first_operand, second_operand, third_operand, pads=(1, 1, 1, 1), strides=(2, 2))",
    "y = first(convolution_of_a_long_name(first_operand, second_operand, third_operand, fourth_operand, fifth=1))",
    'y = einsum(xp, first_operand_of_a_product, second_operand_of_a_product, equation="bhqd,bhkd->bhqk(]")',
    "y = np.array([1000000, 1000001, 1000002, 1000003, 1000004, 1000005, 1000006, 1000007, 1000008, 1000009])",
    "y = np.concatenate((first_operand, second_operand, third_operand, fourth_operand, fifth_operand), 0)",
    "first_target, second_target, *_ = gru(xp, first_operand, second_operand, third_operand, hidden_size=24)",
    "carried_state, going_on, counter = the_next_carried_state, the_next_going_on, the_next_counter_of_it",
    "a_carried_state_of_a_long_name, a_condition_of_a_long_name, a_counter_of_a_long_name_too = one_next, two_next",
    "a_sum_of_a_long_name_in_a_loop = the_first_operand_of_a_long_name_in_it + the_second_operand",
    "a_sum_of_a_long_name = the_first_operand_of_a_long_name_in_a_loop_body - the_second_operand_of_a_long_name_in_it",
    "self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(12, 16), nn.ReLU(), nn.Linear(16, 8)) for _ in range(3))",
    "self.blocks = nn.Sequential(*(nn.Sequential(nn.Linear(12, 16), nn.ReLU(), nn.Linear(16, 8)) for _ in range(3)))",
    "parts = [a_function_of_a_long_name(each, 1, 2, of_a_third_one) for each in an_argument_of_a_long_name.parts()]",
    "y = (a_quantised_operand_of_a_long_name.to(another_operand_of_a_long_name_too.dtype) - 135) * self.its_scale",
    "y = (the_first_operand_of_a_long_name_in_it + the_second_operand_of_a_long_name_in_it - the_third) * self.scale",
    "return first_result_of_a_long_name, second_result_of_a_long_name, third_result_of_a_long_name, fourth",
]


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("text", LONG)
def test_a_long_line_is_broken_as_formatters_do(text: str, depth: int, tmp_path: Path) -> None:
    head = ["def f():", "    if x:"][:depth]
    body = wrapped("    " * depth + text, 88)
    file = tmp_path / "made.py"
    file.write_text("\n".join([*head, *body]) + "\n")
    assert len(text) < 80 or len(body) > 1
    told = subprocess.run([RUFF, "format", "--diff", "--isolated", file], capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stdout


def test_brackets_around_one_operand_do_not_become_a_tuple() -> None:
    line = "y = (an_operand_of_a_very_long_name_in_a_body.to(another_operand_of_a_long_name.dtype) - 135) * self.scale"
    assert ast.dump(ast.parse("\n".join(wrapped(line, 88)))) == ast.dump(ast.parse(line))
