"""How two steps on sequences are put together by means of Python: closures, lists, rows that are chosen."""

from __future__ import annotations

import functools

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere


def in_a_closure(self, x):
    scale = 0.5

    def both(z, times=scale):
        return self.second(self.first(z) * times)

    return both(x) + x


def _of_one_row(step, row):
    return step(row[None])


def mapped_over_rows(self, x):
    return self.second(torch.cat(list(map(functools.partial(_of_one_row, self.first), x))))


def reduced_over_steps(self, x):
    return functools.reduce(lambda z, step: step(z) + z, (self.first, self.second), x)


def kept_in_a_list(self, x):
    states = [x]
    for step in (self.first, self.second):
        states.append(step(states[-1]))
    return sum(states) / len(states)


def by_name(self, x):
    made = {name: getattr(self, name)(x) for name in ("first", "second")}
    made["both"] = made["first"] * made.pop("second")
    return torch.stack(list(made.values())).mean(0)


def padded_to_even(self, x):
    y = self.first(F.pad(x, (0, 0, 0, x.shape[1] % 2)))
    return self.second(y[:, : x.shape[1]])


def in_pieces_of_four(self, x):
    return self.second(torch.cat([self.first(piece) for piece in x.split(4, dim=1)], dim=1))


def until_it_settles(self, x):
    for _ in range(3):
        y = self.first(x) * 0.5
        if (y - x).abs().max() < 0.1:
            break
        x = y
    return self.second(x)


def where_rows_are_positive(self, x):
    rows = x.mean((1, 2)) > 0
    y = x.clone()
    if rows.any():
        y[rows] = self.first(x[rows])
    return self.second(y)


def row_by_row_in_place(self, x):
    out = torch.empty_like(x)
    for i, row in enumerate(x):
        out[i] = self.first(row[None]).squeeze(0)
    return self.second(out)


def longest_first(self, x):
    order = (x[..., 0] > 0).sum(1).argsort(descending=True, stable=True)
    return self.second(self.first(x[order]))[order.argsort()]


def twice_through_a_generator(self, x):
    def states(z):
        for _ in range(2):
            z = self.first(z)
            yield z

    return self.second(torch.stack(list(states(x))).sum(0))


ALL = (
    in_a_closure,
    mapped_over_rows,
    reduced_over_steps,
    kept_in_a_list,
    by_name,
    padded_to_even,
    in_pieces_of_four,
    until_it_settles,
    where_rows_are_positive,
    row_by_row_in_place,
    longest_first,
    twice_through_a_generator,
)
