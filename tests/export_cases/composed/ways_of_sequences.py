"""How two steps on sequences are put together."""

from __future__ import annotations

import torch


def one_after_the_other(self, x):
    x = self.first(x)
    return self.second(x)


def residual(self, x):
    y = self.first(x)
    return x + 0.5 * self.second(y)


def either_by_mean(self, x):
    if x.mean() > 0:
        y = self.first(x)
    else:
        y = self.second(x)
    return y


def either_by_length(self, x):
    if x.shape[1] > 6:
        x = self.first(x)
    else:
        x = self.second(x)
    return x


def row_by_row(self, x):
    out = []
    for i in range(x.shape[0]):
        out.append(self.first(x[i : i + 1]))
    return self.second(torch.cat(out, 0))


def rows_in_a_comprehension(self, x):
    return self.second(torch.cat([self.first(r.unsqueeze(0)) for r in x]))


def twice(self, x):
    for _ in range(2):
        x = self.first(x)
    return self.second(x)


def while_large(self, x):
    n = 0
    while n < 3 and x.abs().mean() > 0.1:
        x = self.first(x) * 0.5
        n += 1
    return self.second(x)


def each_on_a_half(self, x):
    h = x.shape[1] // 2
    return torch.cat([self.first(x[:, :h]), self.second(x[:, h:])], 1)


def on_every_beginning(self, x):
    out = []
    for n in range(1, x.shape[1] + 1):
        out.append(self.first(x[:, :n])[:, -1])
    return self.second(torch.stack(out, 1))


def on_one_more_step(self, x):
    y = torch.cat([x, x.mean(1, keepdim=True)], 1)
    y = self.first(y)
    return self.second(y[:, :-1])


def on_the_reverse(self, x):
    return self.first(x.flip(1)).flip(1) + self.second(x)


def either_for_each_row(self, x):
    out = []
    for row in x:
        if row.sum() > 0:
            out.append(self.first(row[None]))
        else:
            out.append(self.second(row[None]))
    return torch.cat(out)


def on_twice_the_rows(self, x):
    y = torch.cat([x, x * 0.5], 0)
    y = self.first(y)
    a, b = y.chunk(2, 0)
    return self.second(a + b)


ALL = (
    one_after_the_other,
    residual,
    either_by_mean,
    either_by_length,
    row_by_row,
    rows_in_a_comprehension,
    twice,
    while_large,
    each_on_a_half,
    on_every_beginning,
    on_one_more_step,
    on_the_reverse,
    either_for_each_row,
    on_twice_the_rows,
)
