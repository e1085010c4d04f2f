"""What is done with pictures [batch, 4, height, width], each a method of ``Pictures``."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - its name everywhere


def convolved(self, x):
    return torch.relu(self.conv(x))


def group_normalised(self, x):
    return self.norm(x)


def windows_padded(self, x):
    B, C, H, W = x.shape
    ph, pw = (4 - H % 4) % 4, (4 - W % 4) % 4
    y = F.pad(x, (0, pw, 0, ph))
    Hp, Wp = H + ph, W + pw
    y = y.view(B, C, Hp // 4, 4, Wp // 4, 4).permute(0, 2, 4, 3, 5, 1).reshape(-1, 16, C)
    y = (y @ y.transpose(1, 2)).softmax(-1) @ y
    y = y.view(B, Hp // 4, Wp // 4, 4, 4, C).permute(0, 5, 1, 3, 2, 4).reshape(B, C, Hp, Wp)
    return y[:, :, :H, :W]


def padded_if_odd(self, x):
    H, W = x.shape[-2:]
    if H % 2 or W % 2:
        x = F.pad(x, (0, W % 2, 0, H % 2), mode="replicate")
    y = x.reshape(x.shape[0], 4, x.shape[2] // 2, 2, x.shape[3] // 2, 2).amax((3, 5))
    return F.interpolate(y, size=(H, W), mode="nearest")


def places_interpolated(self, x):
    p = F.interpolate(self.pos, size=x.shape[-2:], mode="bicubic", align_corners=False)
    return x + p


def places_interpolated_if_need_be(self, x):
    h, w = x.shape[-2:]
    p = self.pos
    if (h, w) != (6, 6):
        p = F.interpolate(p, size=(h, w), mode="bilinear", align_corners=True)
    return x + p


def down_and_up(self, x):
    d = self.down(x)
    u = self.up(d)
    dh, dw = x.size(2) - u.size(2), x.size(3) - u.size(3)
    u = F.pad(u, [dw // 2, dw - dw // 2, dh // 2, dh - dh // 2])
    return x + u


def down_up_and_cropped(self, x):
    u = self.up(self.down(x))
    return u[:, :, : x.shape[2], : x.shape[3]] - x


def coordinates_beside(self, x):
    B, _, H, W = x.shape
    ys = torch.linspace(-1, 1, H).view(1, 1, H, 1).expand(B, 1, H, W)
    xs = torch.linspace(-1, 1, W).view(1, 1, 1, W).expand(B, 1, H, W)
    return self.coord(torch.cat([x, ys, xs], 1))


def moved_a_little(self, x):
    B, _, H, W = x.shape
    gy, gx = torch.meshgrid(torch.arange(H), torch.arange(W), indexing="ij")
    g = torch.stack([gx, gy], -1).float()
    g = g + 0.3
    g = 2 * g / torch.tensor([max(W - 1, 1), max(H - 1, 1)]) - 1
    return F.grid_sample(x, g.expand(B, -1, -1, -1), align_corners=True)


def squeezed_and_excited(self, x):
    w = torch.sigmoid(self.se(x.mean((2, 3))))
    return x * w[:, :, None, None]


def shifted(self, x):
    _, _, H, W = x.shape
    y = torch.roll(x, (-(H // 3), -(W // 3)), dims=(2, 3))
    y = self.conv(y)
    return torch.roll(y, (H // 3, W // 3), dims=(2, 3))


def weighed_neighbours(self, x):
    B, C, H, W = x.shape
    p = F.unfold(x, 3, padding=1).view(B, C, 9, H, W)
    return (p.softmax(2) * p).sum(2)


def unfolded_and_folded(self, x):
    H, W = x.shape[-2:]
    p = F.unfold(x, 2, stride=1)
    y = F.fold(p, (H, W), 2, stride=1)
    n = F.fold(F.unfold(torch.ones_like(x), 2), (H, W), 2)
    return y / n


def attention_with_a_token(self, x):
    B, C, H, W = x.shape
    t = x.flatten(2).transpose(1, 2)
    t = torch.cat([self.tok.expand(B, -1, -1), t], 1)
    t = t + (t @ t.transpose(1, 2)).softmax(-1) @ self.lin(t)
    return t[:, 1:].transpose(1, 2).reshape(B, C, H, W)


def attention_along_axes(self, x):
    b, c, h, w = x.size()
    r = x.permute(0, 2, 3, 1).reshape(b * h, w, c)
    r = (r @ r.mT).softmax(-1) @ r
    k = x.permute(0, 3, 2, 1).reshape(b * w, h, c)
    k = (k @ k.mT).softmax(-1) @ k
    return r.view(b, h, w, c).permute(0, 3, 1, 2) + k.view(b, w, h, c).permute(0, 3, 2, 1)


def rows_through_a_network(self, x):
    B, C, H, W = x.shape
    y, _ = self.gru(x.permute(0, 2, 3, 1).reshape(B * H, W, C))
    return y.reshape(B, H, W, C).permute(0, 3, 1, 2)


def pyramid(self, x):
    outs = [x]
    for s in (1, 2, 3):
        p = F.adaptive_avg_pool2d(x, s)
        outs.append(F.interpolate(self.one(p), size=x.shape[2:], mode="bilinear", align_corners=False))
    return sum(outs)


def channels_shuffled(self, x):
    B, C, H, W = x.shape
    y = x.view(B, 2, C // 2, H, W).transpose(1, 2).reshape(B, C, H, W)
    return y * 1.5


def row_upon_row(self, x):
    rows = [x[:, :, 0]]
    for i in range(1, x.shape[2]):
        rows.append(x[:, :, i] + 0.5 * torch.tanh(rows[-1]))
    return torch.stack(rows, 2)


def columns_reversed(self, x):
    out = []
    for j in range(x.shape[3] - 1, -1, -1):
        out.append(x[..., j])
    return torch.stack(out, -1)


def quadrants(self, x):
    h, w = x.shape[2] // 2, x.shape[3] // 2
    top = torch.cat([x[:, :, :h, :w], x[:, :, :h, w:]], 3)
    bottom = torch.cat([x[:, :, h:, :w] * 2, x[:, :, h:, w:]], 3)
    return torch.cat([top, bottom], 2)


def chessboard(self, x):
    _, _, H, W = x.shape
    m = (torch.arange(H)[:, None] + torch.arange(W)[None]) % 2
    return torch.where(m.bool(), x, self.one(x))


def halved_while_large(self, x):
    y = x
    while y.shape[-1] > 4 and y.shape[-2] > 4:
        y = F.avg_pool2d(y, 2)
    return x + F.interpolate(y, size=x.shape[-2:])


def enlarged_and_back(self, x):
    H, W = x.shape[-2:]
    s = 1.5
    y = F.interpolate(x, scale_factor=s, mode="bilinear", align_corners=False, recompute_scale_factor=True)
    return F.interpolate(y, size=(H, W), mode="area")


def brightest_place(self, x):
    _, _, H, W = x.shape
    i = x.flatten(2).argmax(-1)
    yy, xx = i // W, i % W
    return x + (yy.float() / H - xx.float() / W)[:, :, None, None]


def bright_places_kept(self, x):
    y = torch.zeros_like(x)
    for b in range(x.shape[0]):
        at = torch.nonzero(x[b, 0] > 0)
        y[b, :, at[:, 0], at[:, 1]] = x[b, :, at[:, 0], at[:, 1]]
    return y


def branch_on_brightness(self, x):
    if x.mean() > 0:
        return x.flip(-1)
    return self.conv(x)


def image_by_image(self, x):
    out = []
    for image in x:
        bright = image / image.abs().amax().clamp(min=1e-3)
        out.append(self.one(bright[None])[0])
    return torch.stack(out)


def plane_spectrum(self, x):
    f = torch.fft.rfft2(x)
    return torch.fft.irfft2(f * 0.7, s=x.shape[-2:])


def integral_image(self, x):
    return x.cumsum(2).cumsum(3) / (x.shape[2] * x.shape[3])


def first_quarter(self, x):
    B, C, H, W = x.shape
    n = H * W // 4
    y = x.reshape(B, C, H * W)[:, :, :n]
    k = y.mean(-1)
    return x - k[..., None, None]


def attention_with_relative_places(self, x):
    B, C, H, W = x.shape
    t = x.flatten(2).transpose(1, 2)
    i = torch.arange(H * W) // W
    d = (i[:, None] - i[None]).clamp(-24, 24) + 24
    a = (t @ t.transpose(1, 2) + self.bias_table[d]).softmax(-1)
    return (a @ t).transpose(1, 2).view(B, C, H, W)


def pooled_and_unpooled(self, x):
    p, i = F.max_pool2d(x, 2, return_indices=True)
    return F.max_unpool2d(p, i, 2, output_size=x.shape[-2:])


def reflected_border(self, x):
    y = F.pad(x, (2, 2, 2, 2), mode="reflect")
    return F.avg_pool2d(y, 5, 1)


def every_other_pixel(self, x):
    _, _ = x.shape[2:]
    y = x[:, :, ::2, ::2]
    z = torch.zeros_like(x)
    z[:, :, ::2, ::2] = self.one(y)
    return x + z


ALL = (
    convolved,
    group_normalised,
    windows_padded,
    padded_if_odd,
    places_interpolated,
    places_interpolated_if_need_be,
    down_and_up,
    down_up_and_cropped,
    coordinates_beside,
    moved_a_little,
    squeezed_and_excited,
    shifted,
    weighed_neighbours,
    unfolded_and_folded,
    attention_with_a_token,
    attention_along_axes,
    rows_through_a_network,
    pyramid,
    channels_shuffled,
    row_upon_row,
    columns_reversed,
    quadrants,
    chessboard,
    halved_while_large,
    enlarged_and_back,
    brightest_place,
    bright_places_kept,
    branch_on_brightness,
    image_by_image,
    plane_spectrum,
    integral_image,
    first_quarter,
    attention_with_relative_places,
    pooled_and_unpooled,
    reflected_border,
    every_other_pixel,
)
