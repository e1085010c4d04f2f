"""Recurrence and attention."""

from __future__ import annotations

from functools import partial

import keras
from keras import layers as k

from tests.export_cases.keras.case import Given, layer, model, sequences

add = partial(layer, "recurrence")
STEPS = (None, 3)
for name in ("LSTM", "GRU", "SimpleRNN"):
    kind = getattr(k, name)
    add(f"{name} plain", partial(kind, 4), STEPS)
    add(f"{name} sequences", partial(kind, 4, return_sequences=True), STEPS)
    add(f"{name} states", partial(kind, 4, return_sequences=True, return_state=True), STEPS)
    add(f"{name} backwards", partial(kind, 4, return_sequences=True, go_backwards=True), STEPS)
    add(f"{name} backwards last", partial(kind, 4, go_backwards=True), STEPS)
    add(f"{name} another activation", partial(kind, 4, activation="elu"), STEPS)
    add(f"{name} without bias", partial(kind, 4, use_bias=False, activation="relu"), STEPS)
    add(f"{name} unrolled", partial(kind, 4, unroll=True), (5, 3))
    add(f"{name} dropout", partial(kind, 4, dropout=0.3, recurrent_dropout=0.3), STEPS)
    add(f"{name} mixed", partial(kind, 4, dtype="mixed_float16"), STEPS)
    for zero in (False, True):
        for back in (False, True):
            title = f"{name} masked{' to zeros' * zero}{' backwards' * back}"
            options = {
                "return_sequences": True,
                "return_state": True,
                "go_backwards": back,
                "zero_output_for_mask": zero,
            }
            add(title, lambda kind=kind, options=options: Masked(kind(4, **options)), sequences(None, 3))
    add(f"{name} masked last", lambda kind=kind: Masked(kind(4)), sequences(None, 3))
    add(
        f"{name} masked another activation",
        lambda kind=kind: Masked(kind(4, activation="elu", return_sequences=True)),
        sequences(None, 3),
    )
    for mode in ("concat", "sum", "ave", "mul", None):
        add(
            f"Bidirectional {name} {mode}",
            lambda kind=kind, mode=mode: k.Bidirectional(kind(4, return_sequences=True), mode),
            STEPS,
        )
    add(f"Bidirectional {name} last", lambda kind=kind: k.Bidirectional(kind(4)), STEPS)
    add(f"Bidirectional {name} states", lambda kind=kind: k.Bidirectional(kind(4, return_state=True)), STEPS)
    add(
        f"Bidirectional {name} masked",
        lambda kind=kind: Masked(k.Bidirectional(kind(4, return_sequences=True))),
        sequences(None, 3),
    )
    cell = getattr(k, f"{name}Cell")
    add(f"RNN of {name}Cell", lambda cell=cell: k.RNN(cell(4), return_sequences=True), STEPS)
    add(f"{name}Cell in a layer", lambda cell=cell: k.RNN(cell(4), return_state=True, go_backwards=True), STEPS)
    add(f"{name}Cell unusual", lambda cell=cell: k.RNN(cell(4, activation="softsign")), STEPS)
add("GRU before", partial(k.GRU, 4, reset_after=False, return_sequences=True), STEPS)
add("GRU before without bias", partial(k.GRU, 4, reset_after=False, use_bias=False), STEPS)
add("LSTM hard", partial(k.LSTM, 4, recurrent_activation="hard_sigmoid"), STEPS)
add(
    "RNN of several cells",
    lambda: k.RNN([k.LSTMCell(3), k.GRUCell(4)], return_sequences=True, return_state=True),
    STEPS,
)
add("StackedRNNCells plain", lambda: k.RNN(k.StackedRNNCells([k.LSTMCell(3), k.LSTMCell(4)])), STEPS)
add(
    "StackedRNNCells masked",
    lambda: Masked(k.RNN(k.StackedRNNCells([k.GRUCell(3), k.SimpleRNNCell(4)]), return_sequences=True)),
    sequences(None, 3),
)
add("TimeDistributed dense", lambda: k.TimeDistributed(k.Dense(4, activation="gelu")), STEPS)
add("TimeDistributed convolution", lambda: k.TimeDistributed(k.Conv2D(4, 3)), (None, 6, 6, 2))
add("TimeDistributed of a fixed length", lambda: k.TimeDistributed(k.LayerNormalization()), (5, 3))
add("TimeDistributed recurrent", lambda: k.TimeDistributed(k.LSTM(4)), (None, 5, 3))
for size, given in (("1D", (None, 8, 2)), ("2D", (None, 6, 6, 2)), ("3D", (3, 4, 4, 4, 2))):
    kind = getattr(k, f"ConvLSTM{size}")
    add(f"ConvLSTM{size} plain", partial(kind, 3, 3), given)
    add(f"ConvLSTM{size} same", partial(kind, 3, 3, padding="same", return_sequences=True, return_state=True), given)
    add(f"ConvLSTM{size} strides", partial(kind, 3, 2, strides=2, go_backwards=True), given)


class Masked(k.Layer):
    """A layer behind a mask."""

    def __init__(self, inner, **kwargs):
        super().__init__(**kwargs)
        self.mask, self.inner = k.Masking(), inner

    def build(self, shape):
        self.inner.build(shape)

    def call(self, x):
        return self.inner(self.mask(x))


@model("recurrence", "LSTM initial state", STEPS, (4,), (4,))
def initial_state():
    x, h, c = keras.Input(STEPS), keras.Input((4,)), keras.Input((4,))
    return keras.Model([x, h, c], k.LSTM(4, return_sequences=True)(x, initial_state=[h, c]))


@model("recurrence", "GRU encoder and decoder", STEPS, STEPS)
def encoder_decoder():
    x, y = keras.Input(STEPS), keras.Input(STEPS)
    _, state = k.GRU(4, return_state=True)(x)
    return keras.Model([x, y], k.GRU(4, return_sequences=True)(y, initial_state=state))


@model("recurrence", "Bidirectional initial state", STEPS, *[(4,)] * 4)
def bidirectional_state():
    x, *states = keras.Input(STEPS), *(keras.Input((4,)) for _ in range(4))
    return keras.Model([x, *states], k.Bidirectional(k.LSTM(4, return_sequences=True))(x, initial_state=states))


heads = partial(model, "attention")
QUERY, VALUE = (None, 6), Given((None, 6), open=(7, 4, 10))


def attended(title, make, *given, several=True, **call):
    """An attention layer on a query and a value."""

    @heads(title, *given)
    def build():
        tensors = [keras.Input(each.shape if isinstance(each, Given) else each) for each in given]
        result = make()(tensors, **call) if several else make()(*tensors, **call)
        return keras.Model(tensors, result)


for name in ("Attention", "AdditiveAttention"):
    kind = getattr(k, name)
    attended(f"{name} plain", kind, QUERY, VALUE)
    attended(f"{name} key", kind, QUERY, VALUE, VALUE)
    attended(f"{name} causal", kind, QUERY, VALUE, use_causal_mask=True)
    attended(f"{name} scores", kind, QUERY, VALUE, return_attention_scores=True)
attended("Attention scaled", partial(k.Attention, use_scale=True, score_mode="concat"), QUERY, VALUE)
for name, kind in (
    ("MultiHeadAttention", partial(k.MultiHeadAttention, 2, 3)),
    ("GroupQueryAttention", partial(k.GroupQueryAttention, 3, 4, 2)),
):
    attended(f"{name} plain", kind, QUERY, VALUE, several=False)
    attended(f"{name} key", kind, QUERY, VALUE, VALUE, several=False)
    attended(f"{name} causal", kind, QUERY, QUERY, several=False, use_causal_mask=True)
    attended(f"{name} scores", kind, QUERY, VALUE, several=False, return_attention_scores=True)
attended(
    "MultiHeadAttention of images",
    partial(k.MultiHeadAttention, 2, 3, attention_axes=(1, 2)),
    (4, 5, 6),
    (4, 5, 6),
    several=False,
)
attended(
    "MultiHeadAttention bare",
    partial(k.MultiHeadAttention, 2, 3, use_bias=False, output_shape=5, value_dim=4),
    QUERY,
    VALUE,
    several=False,
)


@heads("MultiHeadAttention masked", Given((None,), "int32", padded=True))
def masked_heads():
    x = keras.Input((None,), dtype="int32")
    e = k.Embedding(8, 6, mask_zero=True)(x)
    return keras.Model(x, k.MultiHeadAttention(2, 3)(e, e))


@heads("Attention masked", Given((None,), "int32", padded=True))
def masked_attention():
    x = keras.Input((None,), dtype="int32")
    e = k.Embedding(8, 6, mask_zero=True)(x)
    return keras.Model(x, k.Attention()([e, e], use_causal_mask=True))


@heads("MultiHeadAttention given a mask", QUERY, Given((None, None), "bool"))
def given_mask():
    x, m = keras.Input(QUERY), keras.Input((None, None), dtype="bool")
    return keras.Model([x, m], k.MultiHeadAttention(2, 3)(x, x, attention_mask=m))
