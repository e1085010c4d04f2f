"""Colours of images."""

from __future__ import annotations

from typing import Any

import numpy as np

from entrepot.exporters.building import Builder
from entrepot.exporters.functions.terms import Term, choose
from entrepot.exporters.tensorflow.node import Node
from entrepot.exporters.tensorflow.sizes import rank_of
from entrepot.exporters.tensorflow.table import translates


@translates("RGBToHSV")
def to_hsv(node: Node, build: Builder, x: Any) -> Any:
    """Hue, saturation and value."""
    return _joined(build, _hsv(_channels(build, x)), x)


@translates("HSVToRGB")
def to_rgb(node: Node, build: Builder, x: Any) -> Any:
    """Red, green and blue."""
    return _joined(build, _rgb(*_channels(build, x)), x)


@translates("AdjustSaturation")
def adjust_saturation(node: Node, build: Builder, x: Any, scale: Any) -> Any:
    """Times a factor."""
    hue, saturation, value = _hsv(_channels(build, x))
    scaled = (saturation * Term(build, build.cast(scale, saturation.value.dtype))).at_least(0.0).at_most(1.0)
    return _joined(build, _rgb(hue, scaled, value), x)


@translates("AdjustHue")
def adjust_hue(node: Node, build: Builder, x: Any, delta: Any) -> Any:
    """Around the circle."""
    hue, saturation, value = _hsv(_channels(build, x))
    turned = hue + Term(build, build.cast(delta, hue.value.dtype))
    return _joined(build, _rgb(turned - turned.floor(), saturation, value), x)


@translates("AdjustContrastv2")
def adjust_contrast(node: Node, build: Builder, x: Any, factor: Any) -> Any:
    """About the mean of each channel."""
    rank = rank_of(node)
    wide = build.cast(x, np.float32)
    mean = build.op("ReduceMean", wide, [rank - 3, rank - 2], keepdims=1)
    changed = build.op("Mul", build.op("Sub", wide, mean), build.cast(factor, np.float32))
    return build.cast(build.op("Add", changed, mean), x.dtype)


def _channels(build: Builder, x: Any) -> list[Term]:
    wide = x if x.dtype.name in ("FLOAT", "DOUBLE") else build.cast(x, np.float32)
    return [Term(build, each) for each in build.op("Split", wide, outputs=3, axis=-1, num_outputs=3)]


def _joined(build: Builder, channels: Any, like: Any) -> Any:
    return build.cast(build.op("Concat", *(each.value for each in channels), axis=-1), like.dtype)


def _hsv(channels: list[Term]) -> tuple[Term, Term, Term]:
    red, green, blue = channels
    value = red.at_least(green).at_least(blue)
    spread = value - red.at_most(green).at_most(blue)
    saturation = choose(value > 0, spread / choose(value > 0, value, 1.0), 0.0)
    norm = 1 / (6 * choose(spread > 0, spread, 1.0))
    other = choose(green == value, norm * (blue - red) + 2 / 6, norm * (red - green) + 4 / 6)
    hue = choose(spread > 0, choose(red == value, norm * (green - blue), other), 0.0)
    return choose(hue < 0, hue + 1, hue), saturation, value


def _rgb(hue: Term, saturation: Term, value: Term) -> tuple[Term, Term, Term]:
    six = hue * 6
    distances = (six - 3).abs() - 1, 2 - (six - 2).abs(), 2 - (six - 4).abs()
    red, green, blue = (((1 - saturation) + saturation * each.at_least(0.0).at_most(1.0)) * value for each in distances)
    return red, green, blue
