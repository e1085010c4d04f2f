"""Modules of flax linen, with their variables."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
from flax import linen
from jax import Array

from entrepot.models_zoo.registry import Built

KEY = jax.random.key(20)


class _ResBlock(linen.Module):
    features: int
    strides: int = 1

    @linen.compact
    def __call__(self, x: Array) -> Array:
        norm = functools.partial(linen.BatchNorm, use_running_average=True)
        y = linen.relu(norm()(linen.Conv(self.features, (3, 3), self.strides, use_bias=False)(x)))
        y = norm()(linen.Conv(self.features, (3, 3), use_bias=False)(y))
        if x.shape != y.shape:
            x = norm()(linen.Conv(self.features, (1, 1), self.strides, use_bias=False)(x))
        return linen.relu(x + y)


class _ResNet(linen.Module):
    @linen.compact
    def __call__(self, x: Array) -> Array:
        pooled: Any = linen.max_pool  # has no annotations
        x = pooled(linen.relu(linen.Conv(8, (3, 3))(x)), (2, 2), (2, 2))
        x = _ResBlock(16, 2)(_ResBlock(8)(x))
        return linen.Dense(5)(x.mean((1, 2)))


class _Block(linen.Module):
    causal: bool = False

    @linen.compact
    def __call__(self, x: Array) -> Array:
        mask = linen.make_causal_mask(x[..., 0]) if self.causal else None
        y = linen.LayerNorm()(x)
        x = x + linen.MultiHeadDotProductAttention(2)(y, y, mask=mask)
        return x + linen.Dense(x.shape[-1])(linen.gelu(linen.Dense(16)(linen.LayerNorm()(x))))


class _ViT(linen.Module):
    @linen.compact
    def __call__(self, x: Array) -> Array:
        x = linen.Conv(8, (4, 4), strides=(4, 4))(x)
        x = x.reshape(x.shape[0], -1, 8)
        token = self.param("token", linen.initializers.zeros, (1, 1, 8))
        x = jnp.concatenate([jnp.tile(token, (x.shape[0], 1, 1)), x], 1)
        x = x + self.param("positions", linen.initializers.normal(), (1, 17, 8))
        return linen.Dense(5)(linen.LayerNorm()(_Block()(_Block()(x)))[:, 0])


class _Decoder(linen.Module):
    @linen.compact
    def __call__(self, tokens: Array) -> Array:
        embed = linen.Embed(20, 8)
        x = embed(tokens) + linen.Embed(32, 8)(jnp.arange(tokens.shape[1]))
        for _ in range(2):
            x = _Block(causal=True)(x)
        return embed.attend(linen.LayerNorm()(x))


class _Mixer(linen.Module):
    @linen.compact
    def __call__(self, x: Array) -> Array:
        x = linen.Conv(8, (4, 4), strides=(4, 4))(x).reshape(x.shape[0], -1, 8)
        y = linen.LayerNorm()(x).swapaxes(1, 2)
        x = x + linen.Dense(16)(linen.gelu(linen.Dense(6)(y))).swapaxes(1, 2)
        return linen.Dense(3)((x + linen.Dense(8)(linen.gelu(linen.Dense(12)(linen.LayerNorm()(x))))).mean(1))


class _UNet(linen.Module):
    """A denoiser: an image and a time."""

    @linen.compact
    def __call__(self, x: Array, t: Array) -> Array:
        freqs = jnp.exp(-jnp.log(1e4) * jnp.arange(4) / 4)
        angles = t[:, None] * freqs
        time = linen.Dense(8)(linen.swish(linen.Dense(8)(jnp.concatenate([jnp.sin(angles), jnp.cos(angles)], -1))))
        first = linen.swish(linen.GroupNorm(4)(linen.Conv(8, (3, 3))(x)))
        down = linen.swish(linen.Conv(8, (3, 3), 2)(first)) + time[:, None, None]
        places = down.reshape(down.shape[0], -1, 8)
        middle = linen.MultiHeadDotProductAttention(2)(places).reshape(down.shape) + down
        up = jax.image.resize(middle, (*first.shape[:3], 8), "nearest")
        return linen.Conv(3, (3, 3))(jnp.concatenate([first, up], -1))


def _built(module: Any, dynamic: str, *samples: tuple[Array, ...]) -> Built:
    """The module with variables: statistics as after training, not those of a fresh one."""
    variables = module.init(KEY, *samples[0])
    drawn = jax.tree.map(lambda leaf: leaf * jax.random.uniform(KEY, leaf.shape, minval=0.7, maxval=1.4), variables)
    return Built((module, drawn), samples, frozenset(dynamic.split()))


def _image(at: int, batch: int, size: int) -> Array:
    return jax.random.normal(jax.random.fold_in(KEY, at), (batch, size, size, 3))


def resnet(*, size: int = 16) -> Built:
    """Two residual blocks."""
    return _built(_ResNet(), "x.0", (_image(0, 1, size),), (_image(1, 3, size),))


def vit() -> Built:
    """Patches of four by four of an image of sixteen by sixteen."""
    return _built(_ViT(), "x.0", (_image(2, 1, 16),), (_image(3, 3, 16),))


def mixer() -> Built:
    """The same patches, mixed by dense layers."""
    return _built(_Mixer(), "x.0", (_image(4, 1, 16),), (_image(5, 3, 16),))


def decoder() -> Built:
    """Two causal blocks over up to 32 tokens."""
    tokens = [jax.random.randint(jax.random.fold_in(KEY, at), (at, 4 + at), 0, 20) for at in (1, 3)]
    return _built(_Decoder(), "tokens.0 tokens.1", *((each,) for each in tokens))


def diffusion_unet() -> Built:
    """One level of a U-Net, with attention in the middle."""
    samples = [(_image(at, at, 8), jnp.linspace(1.0, 9.0, at)) for at in (1, 3)]
    return _built(_UNet(), "x.0 t.0", *samples)
