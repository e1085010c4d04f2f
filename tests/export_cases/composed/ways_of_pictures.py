"""How two steps on pictures are put together."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere


def one_after_the_other(self, x):
    x = self.first(x)
    return self.second(x)


def residual(self, x):
    return x + 0.5 * self.second(self.first(x))


def either_by_mean(self, x):
    if x.mean() > 0:
        return self.first(x)
    else:
        return self.second(x)


def either_by_shape(self, x):
    h, w = x.shape[-2:]
    if h >= w:
        x = self.first(x)
    else:
        x = self.second(x.transpose(2, 3)).transpose(2, 3)
    return x


def at_twice_the_size(self, x):
    a = self.first(F.interpolate(x, scale_factor=2, mode="nearest"))
    b = F.avg_pool2d(a, 2)
    return self.second(b + x)


def each_on_a_half(self, x):
    h = x.shape[2] // 2
    return torch.cat([self.first(x[:, :, :h]), self.second(x[:, :, h:])], 2)


def image_by_image(self, x):
    return self.second(torch.cat([self.first(i.unsqueeze(0)) for i in x]))


def twice(self, x):
    for _ in range(2):
        x = self.first(x)
    return self.second(x)


def with_a_border(self, x):
    p = F.pad(x, (1, 2, 1, 2))
    y = self.first(p)[:, :, 1:-2, 1:-2]
    return self.second(y)


def at_half_the_size(self, x):
    y = self.first(x[:, :, ::2, ::2])
    y = F.interpolate(y, size=x.shape[2:], mode="nearest")
    return self.second(x + y)


ALL = (
    one_after_the_other,
    residual,
    either_by_mean,
    either_by_shape,
    at_twice_the_size,
    each_on_a_half,
    image_by_image,
    twice,
    with_a_border,
    at_half_the_size,
)
