"""Layers of flax and equinox, each class in two configurations where it has any."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from flax import linen, nnx

from tests.export_cases.jax.making import add, f32, i32

X, IMAGE, SEQUENCE, TOKENS = f32("b", 4), f32("b", 8, 6, 4), f32("b", "t", 4), i32("b", "t")


def _linen(name, layer, *arguments):
    def make():
        sample = [jnp.asarray(each.make({"b": 2, "t": 5}, 0)) for each in arguments]
        return layer, layer.init({"params": jax.random.key(0), "dropout": jax.random.key(1)}, *sample)

    add("linen", name, make, *arguments)


LINEN = {
    "dense": (linen.Dense(3), X), "dense_plain": (linen.Dense(3, use_bias=False), SEQUENCE),
    "dense_general": (linen.DenseGeneral((2, 3)), X), "dense_general_axes": (linen.DenseGeneral(5, axis=(-2, -1)), SEQUENCE2 := f32("b", "t", 2, 4)),
    "einsum": (linen.Einsum((4, 3), "...i,io->...o"), SEQUENCE), "embed": (linen.Embed(7, 4), TOKENS),
    "conv": (linen.Conv(5, (3, 3)), IMAGE), "conv_strided": (linen.Conv(6, (3, 2), strides=2, padding="VALID", feature_group_count=2), IMAGE),
    "conv_circular": (linen.Conv(3, (3, 3), padding="CIRCULAR"), IMAGE), "conv_causal": (linen.Conv(3, (3,), padding="CAUSAL", kernel_dilation=2), SEQUENCE),
    "conv_reflect": (linen.Conv(3, (3, 3), padding="REFLECT"), IMAGE),
    "conv_transpose": (linen.ConvTranspose(3, (3, 3), strides=(2, 2)), IMAGE), "conv_transpose_valid": (linen.ConvTranspose(3, (2, 2), padding="VALID", transpose_kernel=True), IMAGE),
    "conv_local": (linen.ConvLocal(3, (2, 2)), IMAGE),
    "batch_norm": (linen.BatchNorm(use_running_average=True), IMAGE), "batch_norm_plain": (linen.BatchNorm(use_running_average=True, use_scale=False, use_bias=False), X),
    "layer_norm": (linen.LayerNorm(), SEQUENCE), "layer_norm_axes": (linen.LayerNorm(reduction_axes=(1, 2, 3), feature_axes=-1), IMAGE),
    "rms_norm": (linen.RMSNorm(), SEQUENCE), "group_norm": (linen.GroupNorm(num_groups=2), IMAGE), "group_norm_size": (linen.GroupNorm(num_groups=None, group_size=1), IMAGE),
    "instance_norm": (linen.InstanceNorm(), IMAGE), "weight_norm": (linen.WeightNorm(linen.Dense(3)), X),
    "dropout": (linen.Dropout(0.5, deterministic=True), X),
    "attention": (linen.MultiHeadDotProductAttention(2, qkv_features=8), SEQUENCE, SEQUENCE), "self_attention": (linen.SelfAttention(2), SEQUENCE),
    "prelu": (linen.PReLU(), X), "sequential": (linen.Sequential([linen.Dense(4), linen.gelu, linen.Dense(2)]), X),
    "lstm": (linen.RNN(linen.OptimizedLSTMCell(6)), SEQUENCE), "lstm_plain": (linen.RNN(linen.LSTMCell(6), reverse=True, keep_order=True), SEQUENCE),
    "gru": (linen.RNN(linen.GRUCell(5)), SEQUENCE), "mgu": (linen.RNN(linen.MGUCell(5)), SEQUENCE), "simple_rnn": (linen.RNN(linen.SimpleCell(5)), SEQUENCE),
    "bidirectional": (linen.Bidirectional(linen.RNN(linen.GRUCell(3)), linen.RNN(linen.GRUCell(3))), SEQUENCE),
    "conv_lstm": (linen.RNN(linen.ConvLSTMCell(3, (3, 3))), f32("b", 4, 6, 6, 2)),
}  # fmt: skip
for _name, (_layer, *_arguments) in LINEN.items():
    _linen(_name, _layer, *_arguments)


class Pool(linen.Module):
    """Pools of linen, which are functions."""

    kind: str
    padding: str = "VALID"

    @linen.compact
    def __call__(self, x):
        return getattr(linen.pooling, self.kind)(x, (3, 2), strides=(2, 2), padding=self.padding)


for _kind in ("max_pool", "avg_pool", "min_pool"):
    for _padding in ("VALID", "SAME"):
        _linen(f"{_kind}_{_padding.lower()}", Pool(_kind, _padding), IMAGE)


def _nnx(name, make, *arguments):
    def built():
        module = make(nnx.Rngs(0))
        if isinstance(module, nnx.Module):
            module.eval()
        return module

    add("nnx", name, built, *arguments)


NNX = {
    "linear": (lambda r: nnx.Linear(4, 3, rngs=r), X), "linear_plain": (lambda r: nnx.Linear(4, 3, use_bias=False, rngs=r), SEQUENCE),
    "linear_general": (lambda r: nnx.LinearGeneral(4, (2, 3), rngs=r), X), "linear_general_axes": (lambda r: nnx.LinearGeneral((2, 4), 5, axis=(-2, -1), rngs=r), SEQUENCE2),
    "einsum": (lambda r: nnx.Einsum("...i,io->...o", (4, 3), (3,), rngs=r), SEQUENCE), "embed": (lambda r: nnx.Embed(7, 4, rngs=r), TOKENS),
    "conv": (lambda r: nnx.Conv(4, 5, (3, 3), rngs=r), IMAGE), "conv_strided": (lambda r: nnx.Conv(4, 6, (3, 2), strides=2, padding="VALID", feature_group_count=2, rngs=r), IMAGE),
    "conv_transpose": (lambda r: nnx.ConvTranspose(4, 3, (3, 3), strides=(2, 2), rngs=r), IMAGE),
    "batch_norm": (lambda r: nnx.BatchNorm(4, rngs=r), IMAGE), "layer_norm": (lambda r: nnx.LayerNorm(4, rngs=r), SEQUENCE), "rms_norm": (lambda r: nnx.RMSNorm(4, rngs=r), SEQUENCE),
    "group_norm": (lambda r: nnx.GroupNorm(4, num_groups=2, rngs=r), IMAGE), "instance_norm": (lambda r: nnx.InstanceNorm(4, rngs=r), IMAGE),
    "dropout": (lambda r: nnx.Dropout(0.5, rngs=r), X), "prelu": (lambda r: nnx.PReLU(), X),
    "attention": (lambda r: nnx.MultiHeadAttention(2, 4, 8, decode=False, rngs=r), SEQUENCE),
    "sequential": (lambda r: nnx.Sequential(nnx.Linear(4, 4, rngs=r), nnx.gelu, nnx.Linear(4, 2, rngs=r)), X),
    "lora": (lambda r: nnx.LoRA(4, 2, 3, rngs=r), X), "lora_linear": (lambda r: nnx.LoRALinear(4, 3, lora_rank=2, rngs=r), X),
    "lstm": (lambda r: nnx.RNN(nnx.OptimizedLSTMCell(4, 6, rngs=r), rngs=r), SEQUENCE), "lstm_plain": (lambda r: nnx.RNN(nnx.LSTMCell(4, 6, rngs=r), reverse=True, rngs=r), SEQUENCE),
    "gru": (lambda r: nnx.RNN(nnx.GRUCell(4, 5, rngs=r), rngs=r), SEQUENCE), "simple_rnn": (lambda r: nnx.RNN(nnx.SimpleCell(4, 5, rngs=r), rngs=r), SEQUENCE),
    "bidirectional": (lambda r: nnx.Bidirectional(nnx.RNN(nnx.GRUCell(4, 3, rngs=r), rngs=r), nnx.RNN(nnx.GRUCell(4, 3, rngs=r), rngs=r), rngs=r), SEQUENCE),
    "max_pool": (lambda r: lambda x: nnx.max_pool(x, (2, 2), strides=(2, 2)), IMAGE), "avg_pool": (lambda r: lambda x: nnx.avg_pool(x, (3, 3), padding="SAME"), IMAGE),
}  # fmt: skip
for _name, (_make, *_arguments) in NNX.items():
    _nnx(_name, _make, *_arguments)

KEY = jax.random.key(0)
ROW, PLANES, RUN = f32("b", 4), f32("b", 4, 8, 6), f32("b", 4, 9)
EQUINOX = {
    "linear": (lambda: eqx.nn.Linear(4, 3, key=KEY), ROW), "linear_plain": (lambda: eqx.nn.Linear(4, "scalar", use_bias=False, key=KEY), ROW),
    "identity": (lambda: eqx.nn.Identity(), ROW), "mlp": (lambda: eqx.nn.MLP(4, 3, 5, 2, activation=jax.nn.gelu, key=KEY), ROW),
    "sequential": (lambda: eqx.nn.Sequential([eqx.nn.Linear(4, 4, key=KEY), eqx.nn.Lambda(jnp.tanh)]), ROW),
    "conv1d": (lambda: eqx.nn.Conv1d(4, 3, 3, key=KEY), RUN), "conv2d": (lambda: eqx.nn.Conv2d(4, 6, 3, 2, 1, groups=2, key=KEY), PLANES),
    "conv2d_circular": (lambda: eqx.nn.Conv2d(4, 6, 3, padding="SAME", padding_mode="CIRCULAR", key=KEY), PLANES),
    "conv_transpose2d": (lambda: eqx.nn.ConvTranspose2d(4, 3, 3, 2, 1, 1, key=KEY), PLANES), "conv_transpose1d": (lambda: eqx.nn.ConvTranspose1d(4, 3, 4, 2, key=KEY), RUN),
    "conv3d": (lambda: eqx.nn.Conv3d(2, 3, 2, key=KEY), f32("b", 2, 4, 4, 4)),
    "max_pool2d": (lambda: eqx.nn.MaxPool2d(3, 2, padding=1), PLANES), "avg_pool2d": (lambda: eqx.nn.AvgPool2d(2, 2), PLANES), "max_pool1d": (lambda: eqx.nn.MaxPool1d(2, 2, use_ceil=True), RUN),
    "adaptive_avg_pool2d": (lambda: eqx.nn.AdaptiveAvgPool2d(3), PLANES), "adaptive_max_pool1d": (lambda: eqx.nn.AdaptiveMaxPool1d(4), RUN),
    "layer_norm": (lambda: eqx.nn.LayerNorm(4), ROW), "layer_norm_plain": (lambda: eqx.nn.LayerNorm((4, 9), use_weight=False, use_bias=False), RUN),
    "rms_norm": (lambda: eqx.nn.RMSNorm(4), ROW), "group_norm": (lambda: eqx.nn.GroupNorm(2, 4), PLANES),
    "embedding": (lambda: eqx.nn.Embedding(5, 4, key=KEY), i32("b")), "prelu": (lambda: eqx.nn.PReLU(), ROW),
    "dropout": (lambda: eqx.nn.Dropout(0.5, inference=True), ROW),
    "weight_norm": (lambda: eqx.nn.WeightNorm(eqx.nn.Linear(4, 3, key=KEY)), ROW),
    "rotary": (lambda: eqx.nn.RotaryPositionalEmbedding(4), f32("b", 6, 4)),
    "gru_cell": (lambda: eqx.nn.GRUCell(4, 5, key=KEY), ROW, f32("b", 5)), "lstm_cell": (lambda: (lambda cell: lambda x, h, c: cell(x, (h, c)))(eqx.nn.LSTMCell(4, 5, key=KEY)), ROW, f32("b", 5), f32("b", 5)),
    "attention": (lambda: eqx.nn.MultiheadAttention(2, 4, key=KEY), *[f32("b", "t", 4)] * 3),
}  # fmt: skip
for _name, (_make, *_arguments) in EQUINOX.items():
    add("equinox", _name, lambda _make=_make: jax.vmap(_make()), *_arguments)
