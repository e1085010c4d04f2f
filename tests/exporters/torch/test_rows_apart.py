"""Lists of dicts, dataclasses and named tuples that a loop gives some, and what is taken out of them afterwards."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from typing import NamedTuple

import pytest
import torch

import entrepot as ep
from tests.exporters.torch.control_flow import Module


@dataclasses.dataclass
class State:
    hidden: torch.Tensor
    sum: torch.Tensor


class Seen(NamedTuple):
    hidden: torch.Tensor
    total: torch.Tensor


class Steps(Module):
    """States in dicts, whose fields are stacked by name."""

    def forward(self, x):
        state, states = {"hidden": x[0], "sum": x[0]}, []
        for row in x:
            state = {**state, "hidden": torch.tanh(self.a(row) + state["sum"])}
            state = {key: 0.5 * value for key, value in state.items()}
            states.append(state)
        return {key: torch.stack([each[key] for each in states]) for key in states[0]}


class Unpacked(Module):
    """Two lists of dicts, taken apart by one generator."""

    def forward(self, x):
        after = {"hidden": x[0], "sum": x[0]}
        first, second = [], []
        for row in x:
            before = {key: torch.tanh(self.a(value) + row) for key, value in after.items()}
            after = {"hidden": before["hidden"], "sum": after["hidden"]}
            first.append(before)
            second.append(after)
        one, other = ({key: torch.stack([each[key] for each in rows]) for key in rows[0]} for rows in (first, second))
        return one, other


class Objects(Module):
    """The same as objects, with the last of them, and tuples that hold dicts."""

    def forward(self, x):
        state, states, seen, pairs = State(x[0], x[0]), [], [], []
        for row in x:
            hidden = torch.tanh(self.a(row) + state.sum)
            state = State(hidden, 0.5 * (state.sum + hidden))
            states.append(state)
            seen.append(Seen(hidden, state.sum))
            pairs.append(({"hidden": hidden}, row.sum()))
        total = torch.zeros(4)
        for each, weight in pairs:
            total = total + each["hidden"] * weight
        return torch.stack([each.hidden for each in states]), states[-1].sum, seen[-1].total, total


class Chunks(Module):
    """Pieces of different sizes by name, in a list of dicts and in dicts of lists."""

    def part(self, x):
        return {"changed": self.a(x), "norm": x.norm(dim=-1), "kind": None}

    def forward(self, x):
        parts, lists, more = [], {}, defaultdict(list)
        for start in range(0, x.shape[0], 4):
            part = self.part(x[start : start + 4])
            parts.append(part)
            for key in ("changed", "norm"):
                if key not in lists:
                    lists[key] = []
                lists[key].append(part[key])
                more[key] += [2 * part[key]]
        joined = {key: torch.cat([each[key] for each in parts]) for key in ("changed", "norm")}
        return joined, {key: torch.cat(each) for key, each in lists.items()}, torch.cat(more["norm"])


class Some(Module):
    """Only those that a value chooses."""

    def forward(self, x):
        found = []
        for row in x:
            if row.sum() > 0:
                found.append({"row": self.a(row), "mean": row.mean()})
        rows = torch.stack([each["row"] for each in found]) if found else torch.zeros(0, 4)
        return rows, torch.tensor(len(found))


@pytest.mark.parametrize("kind", [Steps, Unpacked, Objects, Chunks, Some])
def test_rows_of_several_things_may_be_of_any_number(kind):
    module = kind().eval()
    torch.manual_seed(0)
    model = ep.export(module, (torch.randn(6, 4),), progress=False)
    for rows in (3, 9, 5):
        x = torch.randn(rows, 4)
        expected = torch.utils._pytree.tree_leaves(module(x))
        for provider in ("cpu", "onnxruntime"):
            found = ep.Session(model, providers=[provider]).run({"x": x.numpy()}).values()
            for one, other in zip(found, expected, strict=True):
                torch.testing.assert_close(torch.from_numpy(one), other)
