"""The Airy function Ai.

The coefficients are of Chebyshev series, computed from values of fifty digits: of Ai between -5 and 3, of what is
left of it without its exponential beyond 3, and of modulus and phase of its waves below -5.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from entrepot.exporters.torch.translations.precision import clenshaw

aten = torch.ops.aten

_NEAR = (
    0.12867299259029474,
    -0.047503959265219833,
    -0.038777886647332449,
    -0.20337060929975293,
    0.21911545571917186,
    0.028945154570816586,
    -0.14827032754997922,
    0.073229209451574949,
    0.011326328543215936,
    -0.025265942479711982,
    0.0085116898236218211,
    0.0014610147129876995,
    -0.0020150540831383841,
    0.00050979517874216518,
    9.6989353551102643e-5,
    -9.3934103152842658e-5,
    1.8649105525759856e-5,
    3.9372764244548012e-6,
    -2.8776745465022034e-6,
    4.592792744838932e-7,
    1.0787256413527393e-7,
    -6.2379424037182072e-8,
    8.1123237342664857e-9,
    2.1289040155256435e-9,
    -1.0071685389286283e-9,
    1.0741286805805443e-10,
    3.1704285740543844e-11,
    -1.2579294137237558e-11,
    1.1008786658217962e-12,
    3.6893849615124892e-13,
    -1.2512608945366986e-13,
    8.9415952324880155e-15,
    3.447228926538655e-15,
    -1.0144190497971682e-15,
    5.8526702099210467e-17,
    2.6431619888126699e-17,
)

_RIGHT = (
    0.99092532786291212,
    -0.008787979198916314,
    0.00027086400616052073,
    -1.4631724735339699e-5,
    1.0852260208359393e-6,
    -9.9725520563127855e-8,
    1.0739090386447277e-8,
    -1.309259653125608e-9,
    1.765607635969083e-10,
    -2.5904351203535136e-11,
    4.084102938847913e-12,
    -6.8538502595331477e-13,
    1.2151224622938064e-13,
    -2.2621141137901327e-14,
    4.3999574125725117e-15,
    -8.9045296941723079e-16,
    1.8684040394222779e-16,
    -4.052458927104195e-17,
)

_P = (
    0.99967234154610054,
    -0.00032554835610553222,
    2.0697451559691191e-6,
    -3.8909617364744243e-8,
    1.3645959446950336e-9,
    -7.2655634388666817e-11,
    5.2346756290629069e-12,
    -4.749669415821452e-13,
    5.1721561396041887e-14,
    -6.5337252955452845e-15,
    9.339274072777209e-16,
    -1.4823330512580455e-16,
    2.5745988399644003e-17,
)

_Q = (
    0.009272787915716868,
    -4.36175518450266e-5,
    5.2940846837918106e-7,
    -1.4341188657102551e-8,
    6.4403248477968975e-10,
    -4.1176387496476087e-11,
    3.4235445378828597e-12,
    -3.4904217017517017e-13,
    4.1908388562656923e-14,
    -5.7560752371416023e-15,
    8.8504159922992173e-16,
    -1.4983889943593537e-16,
    2.7572529590754258e-17,
)


def airy_ai(input: torch.Tensor) -> torch.Tensor:
    """Ai(x), in double precision; NaN at the infinities, as torch says."""
    kind = input.dtype if input.is_floating_point() else torch.get_default_dtype()
    x = input.to(torch.float64)
    near = clenshaw(_NEAR, (x.clamp(-5, 3) + 1) / 4, kind)
    value = torch.where(x > 3, _right(x, kind), torch.where(x < -5, _left(x, kind), near))
    return torch.where(x.isinf(), torch.nan, value).to(kind)


def _right(x: torch.Tensor, kind: torch.dtype) -> torch.Tensor:
    """exp(-p) times a slowly varying amplitude."""
    beyond = x.clamp(min=3)
    phase = _phase(beyond)
    amplitude = clenshaw(_RIGHT, 2 * _phase(3.0) / phase - 1, kind) / (2 * math.sqrt(math.pi) * beyond**0.25)
    return torch.where(x > 103.892, 0.0, amplitude * (-phase).exp())  # from there on torch says 0


def _left(x: torch.Tensor, kind: torch.dtype) -> torch.Tensor:
    """A wave of growing frequency."""
    beyond = (-x).clamp(min=5)
    phase = _phase(beyond)
    ratio = _phase(5.0) / phase
    place, turn = 2 * ratio * ratio - 1, phase - math.pi / 4
    wave = clenshaw(_P, place, kind) * turn.cos() + clenshaw(_Q, place, kind) * ratio * turn.sin()
    return wave / (math.sqrt(math.pi) * beyond**0.25)


def _phase(x: Any) -> Any:
    return 2 / 3 * x**1.5


DECOMPOSITIONS = {aten.special_airy_ai.default: airy_ai}
