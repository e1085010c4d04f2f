"""Spectra of sound, and the coefficients that speech is recognised by."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import tensorflow as tf

from entrepot.exporters.tensorflow.composed import composed
from entrepot.exporters.tensorflow.node import Node


@composed("AudioSpectrogram")
def spectrogram(node: Node, x: Any) -> tf.Tensor:
    """[channels, windows, frequencies] of [samples, channels], each window weighted by Hann's."""
    size, step = node["window_size"], node["stride"]
    length = 1 << max(size - 1, 0).bit_length()
    weights = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(size) / size)
    count = tf.maximum(1 + (tf.shape(x)[0] - size) // step, 0)
    places = tf.range(count)[:, None] * step + tf.range(size)
    frames = tf.gather(tf.transpose(x), places, axis=1) * tf.constant(weights, x.dtype)
    found = tf.signal.rfft(frames, [length])
    squares = tf.math.real(found) ** 2 + tf.math.imag(found) ** 2
    return squares if node["magnitude_squared"] else tf.sqrt(squares)


@composed("Mfcc")
def coefficients(node: Node, x: Any, rate: Any) -> tf.Tensor:
    """Of [channels, windows, squared magnitudes]: bands as the ear has them, their logarithms, a cosine transform."""
    known, size = tf.get_static_value(rate), x.shape[2]
    if known is None or size is None:
        node.refuse("takes a sample rate, or a number of frequencies, that varies")
    bands, count = node["filterbank_channel_count"], node["dct_coefficient_count"]
    shares = _bands(int(size), float(known), bands, node["lower_frequency_limit"], node["upper_frequency_limit"])
    energies = tf.einsum("cwf,fb->cwb", tf.sqrt(x), tf.constant(shares, x.dtype))
    angles = np.outer(np.arange(bands) + 0.5, np.arange(count)) * math.pi / bands
    cosines = math.sqrt(2.0 / bands) * np.cos(angles)
    return tf.einsum("cwb,bk->cwk", tf.math.log(tf.maximum(energies, 1e-12)), tf.constant(cosines, x.dtype))


def _bands(size: int, rate: float, count: int, low: float, high: float) -> np.ndarray[Any, Any]:
    """[frequencies, bands]: triangles that are equally wide in mel, each from the middle of the one before it."""
    first, last = _mel(low), _mel(high)
    middles = first + (last - first) / (count + 1) * np.arange(1, count + 2)
    width = 0.5 * rate / (size - 1)
    start, end = int(1.5 + low / width), int(high / width)
    shares = np.zeros((size, count))
    for at in range(max(start, 0), min(end + 1, size)):
        mel = _mel(at * width)
        band = int(np.searchsorted(middles, mel, side="left")) - 1
        before = middles[band] if band >= 0 else first
        weight = (middles[band + 1] - mel) / (middles[band + 1] - before)
        if band >= 0:
            shares[at, band] += weight
        if band + 1 < count:
            shares[at, band + 1] += 1 - weight
    return shares


def _mel(frequency: float) -> float:
    return 1127.0 * math.log1p(frequency / 700.0)
