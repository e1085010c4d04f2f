"""Architectures through ``export_transformer``: does a package generate what transformers generates?

A case has *passed* when its package was verified, and when on prompts that the verification has not seen, with padding
and without, it generates the same tokens greedily and with four beams; where the model itself generates others in
doubles, tokens are no evidence. What does not generate has to give the results of the model on every other call.
"""

from __future__ import annotations

import copy
import time
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
import transformers

import entrepot as ep
from entrepot.exporters.structure import flatten
from entrepot.exporters.torch.arrays import TORCH
from entrepot.parity.compare import compare
from entrepot.runtime.generation.package import Package
from tests.export_cases.case import Built, Case
from tests.sweeps.outcome import Outcome, line

MADE = ("causal-lm", "seq2seq-lm", "speech-seq2seq")
"""Kinds whose samples ``export_transformer`` makes itself."""
NEW = 7


def judge(case: Case) -> Outcome:
    """Build, export and run a case."""
    try:
        built = case.build()
        built.module.eval()
    except Exception as error:  # noqa: BLE001 - whatever a model raises, the case is at fault
        return Outcome(case.name, case.corpus, "invalid", line(error))
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        verdict, why, package = _exported(case, built)
        seconds = time.process_time() - began
        if package is not None:
            verdict, why = _judged(package, built)
    nodes = (
        0 if package is None else sum(sum(1 for _ in graph.ir.graph.all_nodes()) for graph in package.graphs.values())
    )
    return Outcome(case.name, case.corpus, verdict, why, seconds=seconds, nodes=nodes)


def _exported(case: Case, built: Built) -> tuple[str, str, Package | None]:
    samples = None if case.family in MADE else built.calls[0]
    try:
        return "passed", "", ep.export_transformer(built.module, samples, progress=False)
    except ep.EntrepotError as error:
        return "refused", line(error)[:400], None
    except Exception as error:  # noqa: BLE001 - this is what the sweep is looking for
        return "crashed", line(error)[:400], None


def _judged(package: Package, built: Built) -> tuple[str, str]:
    try:
        problems = list(_generated(package, built) if package.generates else _results(package, built))
    except ep.EntrepotError as error:
        return "wrong", f"does not run: {line(error)}"[:400]
    return ("wrong", "; ".join(problems)[:400]) if problems else ("passed", _manner(package))


def _manner(package: Package) -> str:
    """What kind of package it is, and what its steps cost beyond a token and a look at a cache."""
    manifest = package.manifest
    if not package.generates:
        return manifest.kind
    at_once = f"{manifest.step} tokens" if manifest.step > 1 else "one token"
    slow = f"{at_once} of a prompt at a time" if manifest.step and "prefill" not in package.graphs else ""
    return ", ".join(filter(None, (manifest.kind, slow if manifest.states else "without a cache")))


def _results(package: Package, built: Built) -> Iterator[str]:
    """How the results differ on the calls of a case, as far as their sizes vary.

    A graph is right if one runtime shows it: onnxruntime's Sigmoid is 0 below 1e-8, which is all of some boxes.
    """
    for call in built.calls:
        given = {name: value for name, value in call.items() if isinstance(value, torch.Tensor)}
        wanted = _called(built.module, call)
        problems = _differing(package, built.module, call, given, wanted)
        if problems and _differing(package.using(["cpu"]), built.module, call, given, wanted):
            yield from problems


def _differing(
    package: Package,
    module: Any,
    call: Mapping[str, Any],
    given: Mapping[str, torch.Tensor],
    wanted: Mapping[str, np.ndarray],
) -> tuple[str, ...]:
    try:
        got = package.forward(**{name: value.numpy() for name, value in given.items()})
    except ep.InputError:
        return ()  # a size that stays fixed
    if wanted.keys().isdisjoint(got):  # a bare tensor has no name
        wanted = dict(zip(got, wanted.values(), strict=False))
    expected = {name: wanted[name] for name in got if name in wanted and np.size(got[name])}
    comparison = compare(expected, {name: got[name] for name in expected})
    rounding = bool(comparison.problems) and _is_rounding(module, call, expected, got)
    return () if rounding else tuple(comparison.problems)


def _called(module: Any, call: Mapping[str, Any]) -> dict[str, np.ndarray]:
    with torch.no_grad():
        flat = flatten(module(**call), arrays=TORCH)
    return {name: tensor.numpy() for name, tensor in zip(flat.names, flat.tensors, strict=True)}


def _is_rounding(
    module: Any, call: Mapping[str, Any], wanted: Mapping[str, np.ndarray], got: Mapping[str, Any]
) -> bool:
    """Whether the results are as close to those in double precision as the module's own are, or it has none to compare.

    Where two scores are almost equal, rounding decides which comes first, and all that belongs to them changes places.
    The module's own results in double precision are then others than in single precision, and no evidence.
    """
    doubled = {name: value.double() if torch.is_floating_point(value) else value for name, value in call.items()}
    try:
        exact = _called(copy.deepcopy(module).double(), doubled)
    except RuntimeError:  # an operator without double precision
        return False
    return all(_is_as_close(got[name], wanted[name], exact[name]) for name in wanted)


def _is_as_close(got: Any, wanted: np.ndarray, exact: np.ndarray) -> bool:
    if wanted.shape != np.shape(got):
        return False
    if wanted.dtype.kind != "f":
        return np.array_equal(got, wanted) or not np.array_equal(wanted, exact)
    if compare({"": exact.astype(wanted.dtype)}, {"": wanted}).problems:
        return True
    return bool(np.abs(got - exact).max() <= 2 * np.abs(wanted - exact).max())


def _generated(package: Package, built: Built) -> Iterator[str]:
    """How tokens differ."""
    for inputs in _prompts(package, built):
        for beams in (1, 4):
            asked = {"max_new_tokens": NEW, "num_beams": beams, "do_sample": False, **_beginning(built.module)}
            given = {name: value.numpy() for name, value in inputs.items() if name in package.inputs}
            try:
                wanted = _tokens(built.module, inputs, asked)
            except (ValueError, NotImplementedError, ImportError):
                continue  # transformers has no such generation for it
            got = package.generate(**given, **asked)
            if np.array_equal(got, wanted) or np.array_equal(got, _uncached(built.module, inputs, asked)):
                continue  # transformers (5.23) leaves the linear caches of MiniMax with the wrong beams
            if _is_certain(built.module, inputs, asked, wanted):
                yield f"{beams} beams: {got[:, -NEW:].tolist()}, expected {wanted[:, -NEW:].tolist()}"


def _beginning(module: Any) -> dict[str, int]:
    """What decoding begins with where the configuration of an encoder-decoder does not say so, as T5's."""
    told = getattr(module, "generation_config", None)
    unknown = told is not None and told.decoder_start_token_id is None and told.bos_token_id is None
    return {"decoder_start_token_id": 0} if unknown and module.config.is_encoder_decoder else {}


def _prompts(package: Package, built: Built) -> Iterator[dict[str, torch.Tensor]]:
    """Texts of two lengths, the second with padding; what is given with samples as it is."""
    call, manifest = built.calls[0], package.manifest
    if manifest.source not in ("", "input_ids") or call.keys() - {"input_ids", "attention_mask", "decoder_input_ids"}:
        yield {name: value for name, value in call.items() if name != "decoder_input_ids"}
        return
    texts = "input_ids"
    generator = torch.Generator().manual_seed(77)
    most = int(call["input_ids"].max())
    for rows, length, padding in ((1, 6, 0), (3, 8, 3)):
        ids = torch.randint(8, most, (rows, length), generator=generator)
        mask = torch.ones_like(ids)
        where = slice(length - padding, None) if manifest.kind == "encoder-decoder" else slice(0, padding)
        mask[0, where] = 0
        takes = "attention_mask" in package.inputs
        yield {texts: ids} | ({"attention_mask": mask} if takes else {})


def _tokens(module: Any, inputs: Mapping[str, torch.Tensor], asked: Mapping[str, Any]) -> np.ndarray:
    with torch.no_grad():
        made = transformers.GenerationMixin.generate(module, **inputs, **asked)
    if not isinstance(made, torch.Tensor):
        raise NotImplementedError("what it generates is not tokens alone")
    return made.numpy()


def _uncached(module: Any, inputs: Mapping[str, torch.Tensor], asked: Mapping[str, Any]) -> np.ndarray:
    return _tokens(module, inputs, {**asked, "use_cache": False})


def _is_certain(module: Any, inputs: Mapping[str, torch.Tensor], asked: Mapping[str, Any], wanted: Any) -> bool:
    doubled = {name: value.double() if value.is_floating_point() else value for name, value in inputs.items()}
    exact = copy.deepcopy(module).double()
    exact.config._experts_implementation = "eager"  # the others have no double precision
    return np.array_equal(_tokens(exact, doubled, asked), wanted)
