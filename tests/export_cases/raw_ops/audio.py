"""Spectra of sound."""

from __future__ import annotations

import itertools

import numpy as np

from tests.export_cases.raw_ops.case import add, normal

for (size, stride), squared in itertools.product(((16, 8), (20, 7), (12, 12)), (True, False)):
    add(
        "AudioSpectrogram", {"window_size": size, "stride": stride, "magnitude_squared": squared}, tolerance=1e-4,
        input=normal(70, 2),
    )  # fmt: skip
for bands, count, low in ((10, 5, 20.0), (40, 13, 60.0)):
    add(
        "Mfcc",
        {
            "filterbank_channel_count": bands, "dct_coefficient_count": count, "lower_frequency_limit": low,
            "upper_frequency_limit": 4000.0,
        }, "sample_rate", tolerance=1e-4, closed="spectrogram",
        spectrogram=normal(2, 3, 129) ** 2 + 0.1, sample_rate=np.int32(16000),
    )  # fmt: skip
