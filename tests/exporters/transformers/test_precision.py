"""Packages of a narrower type: how large they are, what they generate, and that they are compared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
import transformers

import entrepot as ep
from entrepot.exporters.transformers.in_graph.loop import looped
from entrepot.exporters.transformers.precision import Precision, check_close, narrowed
from entrepot.runtime.generation.package import Package

PROMPTS = np.array([[5, 6, 7, 8], [9, 8, 7, 6]])


@pytest.fixture(scope="module")
def wide() -> Package:
    config: Any = transformers.GPT2Config(
        vocab_size=99, n_embd=32, n_layer=1, n_head=2, n_positions=32, bos_token_id=1, eos_token_id=2
    )
    return ep.export_transformer(transformers.GPT2LMHeadModel(config).eval(), verify=False)


@pytest.mark.parametrize(("precision", "eps"), [("float16", 2**-10), ("bfloat16", 2**-7)])
def test_a_narrow_package_is_half_as_large_and_generates(
    wide: Package, precision: Precision, eps: float, tmp_path: Path
) -> None:
    wide.save(tmp_path / "wide")
    narrowed(wide, precision).save(tmp_path / "narrow")
    narrow = ep.load(tmp_path / "narrow")
    sizes = [(tmp_path / name / "model.data").stat().st_size for name in ("narrow", "wide")]
    assert sizes[0] < 0.6 * sizes[1]
    wanted, got = (each.forward(input_ids=PROMPTS)["logits"] for each in (wide, narrow))
    assert got.dtype == np.float32
    assert np.abs(got - wanted).max() < 10 * eps * np.abs(wanted).max()
    assert narrow.start(input_ids=PROMPTS).step([1, 2]).shape == (2, 99)
    check_close(narrow, wide, {"input_ids": PROMPTS}, precision)


def test_one_narrow_graph_generates_what_the_host_does(wide: Package) -> None:
    narrow = narrowed(wide, "float16")
    whole = looped(narrow, num_beams=1, opset=None)
    asked: dict[str, Any] = {"input_ids": PROMPTS, "max_new_tokens": 5}
    assert np.array_equal(whole.generate(**asked), narrow.generate(**asked))


def test_a_package_that_is_further_off_than_its_type_is_refused(wide: Package) -> None:
    graph = wide.graphs["decoder"].ir.clone()
    scale = next(value for name, value in graph.graph.initializers.items() if name.endswith("ln_f.weight"))
    scale.const_value = ir.tensor(scale.const_value.numpy() * np.float32(1.1))
    other = narrowed(Package({"decoder": ep.Model(graph)}, wide.manifest), "float16")
    with pytest.raises(ep.VerificationError, match="in float16"):
        check_close(other, wide, {"input_ids": PROMPTS}, "float16")
