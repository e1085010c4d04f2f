"""Axes whose sizes depend on one another: sums, multiples, products, halves."""

from __future__ import annotations

import torch
from torch import Tensor, nn, randn

from tests.export_cases.case import case


class Decoder(nn.Module):
    """One step of a decoder: keys and values of the past, a mask over past and new tokens."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.qkv = nn.Linear(width, 3 * width)

    def forward(self, x: Tensor, mask: Tensor, past_k: Tensor, past_v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        q, k, v = self.qkv(x).chunk(3, -1)
        k, v = torch.cat([past_k, k], 1), torch.cat([past_v, v], 1)
        scores = q @ k.transpose(1, 2) + (1 - mask[:, None, :]) * -1e4
        return scores.softmax(-1) @ v, k, v


def _decoder(batch: int, new: int, past: int) -> tuple[Tensor, ...]:
    return randn(batch, new, 8), torch.ones(batch, past + new), randn(batch, past, 8), randn(batch, past, 8)


@case("x.0", "x.1", "mask.1", "past_k.1", "past_v.1")
def mask_of_past_and_new():
    return Decoder(), _decoder(2, 3, 5), _decoder(3, 2, 9), _decoder(1, 1, 4)


@case("x.0", "mask.1", "past_k.1", "past_v.1")
def mask_of_past_and_one():
    return Decoder(), _decoder(1, 1, 5), _decoder(2, 1, 9)


class TwiceAsMany(nn.Module):
    """A query at twice the rate of its memory."""

    def forward(self, slow: Tensor, fast: Tensor) -> Tensor:
        return fast + slow.repeat_interleave(2, dim=1)


@case("slow.0", "slow.1", "fast.0", "fast.1")
def twice_the_rate():
    return TwiceAsMany(), (randn(2, 4, 3), randn(2, 8, 3)), (randn(3, 7, 3), randn(3, 14, 3))


class Tokens(nn.Module):
    """A flat sequence of tokens and the grid that it is from."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(4, 4, 3, padding=1)

    def forward(self, tokens: Tensor, image: Tensor) -> Tensor:
        h, w = image.shape[-2:]
        grid = tokens.transpose(1, 2).reshape(-1, 4, h, w)
        return (self.conv(grid) * image).flatten(2)


@case("tokens.0", "tokens.1", "image.0", "image.2", "image.3")
def product_of_two_axes():
    return Tokens(), (randn(2, 12, 4), randn(2, 1, 3, 4)), (randn(3, 35, 4), randn(3, 1, 7, 5))


class Subsampled(nn.Module):
    """A quarter of the frames, with a mask at that rate."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv1d(3, 4, 4, stride=4)

    def forward(self, frames: Tensor, mask: Tensor) -> Tensor:
        return self.conv(frames.transpose(1, 2)).transpose(1, 2) * mask.unsqueeze(-1)


@case("frames.0", "frames.1", "mask.0", "mask.1")
def a_quarter_of_the_frames():
    return Subsampled(), (randn(2, 16, 3), torch.ones(2, 4)), (randn(3, 28, 3), torch.ones(3, 7))


class OneLonger(nn.Module):
    """Boundaries of segments: one more than there are segments."""

    def forward(self, values: Tensor, edges: Tensor) -> Tensor:
        return values * (edges[1:] - edges[:-1])


@case("values.0", "edges.0")
def one_more_than():
    return OneLonger(), (randn(4), torch.arange(5.0)), (randn(9), torch.arange(10.0))


class Cross(nn.Module):
    """Attention from text to text and image tokens together, with one bias for all of them."""

    def forward(self, text: Tensor, image: Tensor, bias: Tensor) -> Tensor:
        memory = torch.cat([image, text], 1)
        return (text @ memory.transpose(1, 2) + bias).softmax(-1) @ memory


@case("text.0", "text.1", "image.1", "bias.1", "bias.2")
def bias_of_both_modalities():
    first = randn(2, 3, 4), randn(2, 5, 4), randn(2, 3, 8)
    return Cross(), first, (randn(3, 4, 4), randn(3, 7, 4), randn(3, 4, 11))


class Three(nn.Module):
    """Three segments in one mask."""

    def forward(self, a: Tensor, b: Tensor, c: Tensor, mask: Tensor) -> Tensor:
        return torch.cat([a, b, c], 1) * mask.unsqueeze(-1)


@case("a.1", "b.1", "c.1", "mask.1")
def sum_of_three():
    return (
        Three(),
        (randn(2, 3, 4), randn(2, 4, 4), randn(2, 5, 4), torch.ones(2, 12)),
        (randn(3, 2, 4), randn(3, 7, 4), randn(3, 4, 4), torch.ones(3, 13)),
    )


class Spectrogram(nn.Module):
    """A spectrogram and the mask of its frames, made by a convolution of stride two."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv1d(4, 4, 3, stride=2, padding=1)

    def forward(self, mel: Tensor, mask: Tensor) -> Tensor:
        return self.conv(mel) + mask.unsqueeze(1)


@case("mel.0", "mel.2", "mask.0", "mask.1")
def strided_convolution_and_mask():
    return Spectrogram(), (randn(2, 4, 9), randn(2, 5)), (randn(3, 4, 14), randn(3, 7))


class Einsum(nn.Module):
    """Two axes with different names that have to be equal."""

    def forward(self, left: Tensor, right: Tensor) -> Tensor:
        return torch.einsum("bij,bjk->bik", left, right)


@case("left.0", "left.1", "left.2", "right.0", "right.1", "right.2")
def einsum_of_equal_axes():
    return Einsum(), (randn(2, 3, 4), randn(2, 4, 5)), (randn(3, 5, 7), randn(3, 7, 2))


class Heads(nn.Module):
    """A fused axis of heads times width, split by another input."""

    def forward(self, fused: Tensor, scale: Tensor) -> Tensor:
        heads = scale.shape[0]
        return fused.reshape(fused.shape[0], heads, -1) * scale.view(1, heads, 1)


@case("fused.0", "scale.0")
def split_by_another_input():
    return Heads(), (randn(2, 12), randn(3)), (randn(4, 20), randn(5))


class SkipUnet(nn.Module):
    """A skip connection handed in from outside, at half the size."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.MaxPool2d(2)

    def forward(self, x: Tensor, skip: Tensor) -> Tensor:
        return self.down(x) + skip


@case("x.0", "x.2", "x.3", "skip.0", "skip.2", "skip.3")
def skip_at_half_the_size():
    return SkipUnet(), (randn(2, 3, 8, 12), randn(2, 3, 4, 6)), (randn(1, 3, 13, 6), randn(1, 3, 6, 3))


class Pairs(nn.Module):
    """Scores for every pair of spans, squared in the number of spans."""

    def forward(self, spans: Tensor, bias: Tensor) -> Tensor:
        n = spans.shape[0]
        pairs = torch.cat([spans[:, None].expand(n, n, -1), spans[None].expand(n, n, -1)], -1)
        return pairs.reshape(n * n, -1).sum(-1) + bias


@case("spans.0", "bias.0")
def square_of_an_axis():
    return Pairs(), (randn(3, 4), randn(9)), (randn(5, 4), randn(25))
