"""Whole models of JAX, written as their users write them."""

from __future__ import annotations

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
from flax import linen, nnx
from jax import lax

from tests.export_cases.jax.making import add, f32, i32

KEY = jax.random.key(0)
IMAGE, TOKENS = f32("b", 16, 16, 3), i32("b", "t", high=20)


def _weights(*shapes):
    return [jax.random.normal(jax.random.fold_in(KEY, at), shape) / shape[0] ** 0.5 for at, shape in enumerate(shapes)]


def mlp():
    params = _weights((4, 8), (8, 3))
    return functools.partial(lambda ps, x: jax.nn.relu(x @ ps[0]) @ ps[1], params)


class ResBlock(linen.Module):
    features: int
    strides: int = 1

    @linen.compact
    def __call__(self, x):
        norm = functools.partial(linen.BatchNorm, use_running_average=True)
        y = linen.relu(norm()(linen.Conv(self.features, (3, 3), self.strides, use_bias=False)(x)))
        y = norm()(linen.Conv(self.features, (3, 3), use_bias=False)(y))
        if x.shape != y.shape:
            x = norm()(linen.Conv(self.features, (1, 1), self.strides, use_bias=False)(x))
        return linen.relu(x + y)


class ResNet(linen.Module):
    @linen.compact
    def __call__(self, x):
        x = linen.max_pool(linen.relu(linen.Conv(8, (3, 3))(x)), (2, 2), (2, 2))
        x = ResBlock(16, 2)(ResBlock(8)(x))
        return linen.Dense(5)(x.mean((1, 2)))


class Block(linen.Module):
    causal: bool = False

    @linen.compact
    def __call__(self, x):
        mask = linen.make_causal_mask(x[..., 0]) if self.causal else None
        y = linen.LayerNorm()(x)
        x = x + linen.MultiHeadDotProductAttention(2)(y, y, mask=mask)
        return x + linen.Dense(x.shape[-1])(linen.gelu(linen.Dense(16)(linen.LayerNorm()(x))))


class ViT(linen.Module):
    @linen.compact
    def __call__(self, x):
        x = linen.Conv(8, (4, 4), strides=(4, 4))(x)
        x = x.reshape(x.shape[0], -1, 8)
        token = self.param("token", linen.initializers.zeros, (1, 1, 8))
        x = jnp.concatenate([jnp.tile(token, (x.shape[0], 1, 1)), x], 1)
        x = x + self.param("positions", linen.initializers.normal(), (1, 17, 8))
        return linen.Dense(5)(linen.LayerNorm()(Block()(Block()(x)))[:, 0])


class Decoder(linen.Module):
    @linen.compact
    def __call__(self, tokens):
        embed = linen.Embed(20, 8)
        x = embed(tokens) + linen.Embed(32, 8)(jnp.arange(tokens.shape[1]))
        for _ in range(2):
            x = Block(causal=True)(x)
        return embed.attend(linen.LayerNorm()(x))


class Mixer(linen.Module):
    @linen.compact
    def __call__(self, x):
        x = linen.Conv(8, (4, 4), strides=(4, 4))(x).reshape(x.shape[0], -1, 8)
        y = linen.LayerNorm()(x).swapaxes(1, 2)
        x = x + linen.Dense(16)(linen.gelu(linen.Dense(6)(y))).swapaxes(1, 2)
        return linen.Dense(3)((x + linen.Dense(8)(linen.gelu(linen.Dense(12)(linen.LayerNorm()(x))))).mean(1))


class UNet(linen.Module):
    """A denoiser: an image and a time."""

    @linen.compact
    def __call__(self, x, t):
        freqs = jnp.exp(-jnp.log(1e4) * jnp.arange(4) / 4)
        angles = t[:, None] * freqs
        time = linen.Dense(8)(linen.swish(linen.Dense(8)(jnp.concatenate([jnp.sin(angles), jnp.cos(angles)], -1))))
        first = linen.swish(linen.GroupNorm(4)(linen.Conv(8, (3, 3))(x)))
        down = linen.swish(linen.Conv(8, (3, 3), 2)(first)) + time[:, None, None]
        middle = linen.SelfAttention(2)(down.reshape(down.shape[0], -1, 8)).reshape(down.shape) + down
        up = jax.image.resize(middle, (*first.shape[:3], 8), "nearest")
        return linen.Conv(3, (3, 3))(jnp.concatenate([first, up], -1))


class Autoencoder(nnx.Module):
    def __init__(self, rngs):
        self.encoder, self.mean, self.spread = (nnx.Linear(*size, rngs=rngs) for size in ((12, 8), (8, 3), (8, 3)))
        self.decoder = nnx.Linear(3, 12, rngs=rngs)

    def __call__(self, x, key):
        h = nnx.relu(self.encoder(x))
        mean, spread = self.mean(h), self.spread(h)
        z = mean + jnp.exp(spread / 2) * jax.random.normal(key, mean.shape)
        return {"image": nnx.sigmoid(self.decoder(z)), "mean": mean, "spread": spread}


def graph_network():
    w, v = _weights((3, 8), (8, 4))

    def forward(nodes, senders, receivers):
        messages = jax.nn.relu(nodes @ w)[senders]
        gathered = jax.ops.segment_sum(messages, receivers, nodes.shape[0])
        degree = jax.ops.segment_sum(jnp.ones_like(receivers, jnp.float32), receivers, nodes.shape[0])
        return (gathered / jnp.maximum(degree, 1)[:, None]) @ v

    return forward


def recurrent():
    w, u = _weights((4, 8), (8, 8))

    def forward(x):
        def step(h, each):
            h = jnp.tanh(each @ w + h @ u)
            return h, h

        last, every = lax.scan(step, jnp.zeros((x.shape[0], 8)), x.swapaxes(0, 1))
        return last, every.swapaxes(0, 1)

    return forward


def cached_attention():
    """One step of a decoder with a cache of a fixed length."""
    q, k, v = _weights((8, 8), (8, 8), (8, 8))

    def step(x, keys, values, at):
        keys = lax.dynamic_update_slice(keys, (x @ k)[:, None], (0, at, 0))
        values = lax.dynamic_update_slice(values, (x @ v)[:, None], (0, at, 0))
        scores = jnp.einsum("bd,btd->bt", x @ q, keys) / 8**0.5
        weights = jax.nn.softmax(jnp.where(jnp.arange(keys.shape[1]) <= at, scores, -1e9))
        return jnp.einsum("bt,btd->bd", weights, values), keys, values

    return step


def greedy():
    """A loop of decoding steps, each taking the likeliest token."""
    embedding, out = _weights((20, 8), (8, 20))

    def decode(first):
        def step(token, _):
            token = jnp.argmax(jnp.tanh(embedding[token]) @ out, -1)
            return token, token

        return lax.scan(step, first, None, length=6)[1]

    return decode


def diffusion_sampler():
    w, u = _weights((4, 8), (8, 4))

    def sample(x):
        def step(i, x):
            return x - 0.1 * (jax.nn.silu(x @ w) @ u) / (i + 1)

        return lax.fori_loop(0, 8, step, x)

    return sample


def rotary_attention():
    w = _weights((8, 24))[0]

    def forward(x):
        q, k, v = jnp.split(x @ w, 3, -1)
        angle = jnp.arange(x.shape[1])[:, None] / 100.0 ** (jnp.arange(4) / 4)
        sin, cos = jnp.sin(angle), jnp.cos(angle)

        def rotate(z):
            a, b = jnp.split(z, 2, -1)
            return jnp.concatenate([a * cos - b * sin, a * sin + b * cos], -1)

        scores = jnp.einsum("btd,bsd->bts", rotate(q), rotate(k)) / 8**0.5
        mask = jnp.tril(jnp.ones((x.shape[1], x.shape[1]), bool))
        return jax.nn.softmax(jnp.where(mask, scores, -jnp.inf)) @ v

    return forward


def experts():
    gate, w = _weights((8, 4), (4, 8, 8))

    def forward(x):
        weights, chosen = lax.top_k(jax.nn.softmax(x @ gate), 2)
        outs = jnp.einsum("bd,edf->bef", x, w)
        return jnp.einsum("bk,bkf->bf", weights, jnp.take_along_axis(outs, chosen[..., None], 1))

    return forward


def _linen(module, *samples):
    return lambda: (module, module.init(KEY, *samples))


class EqxTransformer(eqx.Module):
    attention: eqx.nn.MultiheadAttention
    norm: eqx.nn.LayerNorm
    head: eqx.nn.MLP

    def __init__(self, key):
        one, two = jax.random.split(key)
        self.attention, self.norm = eqx.nn.MultiheadAttention(2, 8, key=one), eqx.nn.LayerNorm(8)
        self.head = eqx.nn.MLP(8, 3, 16, 1, key=two)

    def __call__(self, x):
        x = x + self.attention(x, x, x)
        return jax.vmap(self.head)(jax.vmap(self.norm)(x))


ONES = jnp.ones
add("models", "mlp", mlp, f32("b", 4))
add("models", "resnet", _linen(ResNet(), ONES((1, 16, 16, 3))), IMAGE)
add("models", "vit", _linen(ViT(), ONES((1, 16, 16, 3))), IMAGE)
add("models", "decoder", _linen(Decoder(), ONES((1, 5), jnp.int32)), TOKENS)
add("models", "mixer", _linen(Mixer(), ONES((1, 16, 16, 3))), IMAGE)
add("models", "diffusion_unet", _linen(UNet(), ONES((1, 8, 8, 3)), ONES(1)), f32("b", 8, 8, 3), f32("b", low=0, high=9))
add("models", "autoencoder", lambda: Autoencoder(nnx.Rngs(0)), f32("b", 12), i32(2, high=2**31, dtype="uint32"))
add("models", "graph_network", graph_network, f32(6, 3), i32("t"), i32("t"))
add("models", "recurrent", recurrent, f32("b", "t", 4))
add("models", "cached_attention", cached_attention, f32("b", 8), f32("b", 7, 8), f32("b", 7, 8), i32())
add("models", "greedy", greedy, i32("b"))
add("models", "diffusion_sampler", diffusion_sampler, f32("b", 4))
add("models", "rotary_attention", rotary_attention, f32("b", "t", 8))
add("models", "experts", experts, f32("b", 8))
add("models", "equinox_transformer", lambda: jax.vmap(EqxTransformer(KEY)), f32("b", "t", 8))
