"""NonMaxSuppression looks at boxes that lie near alone, and keeps what a look at every pair would."""

from __future__ import annotations

import numpy as np
import pytest

from entrepot.runtime.providers.cpu.native.region import non_max_suppression


def by_pairs(boxes, scores, most, overlap):
    """Box by box, the best first, against every box that was kept."""
    kept = []
    low, high = np.minimum(boxes[:, :2], boxes[:, 2:]), np.maximum(boxes[:, :2], boxes[:, 2:])
    areas = (high - low).prod(1)
    for index in np.argsort(-scores, kind="stable"):
        sides = np.minimum(high[index], high[kept]) - np.maximum(low[index], low[kept])
        shared = sides.clip(0).prod(1)
        union = areas[index] + areas[kept] - shared
        ratios = np.divide(shared, union, out=np.zeros_like(shared), where=union > 0)
        if len(kept) < most and all(ratios <= overlap):
            kept.append(int(index))
    return kept


def made(count, case):
    random = np.random.default_rng(count)
    boxes = random.uniform(0, 12, (count, 4)).astype(np.float32)
    scores = random.standard_normal(count).astype(np.float32)
    if case == "on a grid":  # many touch, are equal, or are empty
        return np.round(boxes / 3), np.round(scores)
    if case == "far apart":
        boxes[:, [0, 2]] += np.float32(100) * random.integers(0, 5, (count, 1))
    if case == "endless" and count:
        boxes[random.integers(count), 0], boxes[random.integers(count), 2] = -np.inf, np.inf
    if case == "no numbers" and count:
        boxes[random.integers(count), random.integers(4)] = np.nan
    return boxes, scores


@pytest.mark.parametrize("case", ["anywhere", "on a grid", "far apart", "endless", "no numbers"])
@pytest.mark.parametrize("overlap", [0.0, 0.3, 1.0, -1.0])
@pytest.mark.parametrize("count", [0, 1, 7, 60])
@pytest.mark.filterwarnings("ignore:invalid value")
def test_the_boxes_are_those_of_a_look_at_every_pair(case, overlap, count):
    boxes, scores = made(count, case)
    for most in (0, 3, 1000):
        found = non_max_suppression(boxes[None], scores[None, None], np.array(most), np.array(overlap))
        assert found[:, 2].tolist() == by_pairs(boxes, scores, most, overlap)
