"""Tokens per CPU second on one thread: packages, on the host and in one graph, beside Hugging Face's own ``generate``.

    python -m benchmarks.generation [--model gpt2] [--rounds 5] [--provider onnxruntime] [--keep FOLDER]

Models have the sizes of real ones and random weights. All ways generate in turn, in one process, from a prompt of 32
tokens 32 more, greedily; the best round of each counts. Ratios are to ``generate``: above 1 is faster. Bytes are those
on disk, to those of the parameters. ``products alone`` only multiplies one row by every matrix that a step reads, which
is about what the machine's memory allows to a way that keeps the weights as they are.
"""

from __future__ import annotations

import benchmarks.runtime as one_thread  # keeps numeric libraries to one thread, so before they are imported

# isort: split
import argparse
import math
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

TARGETS = {"gpt2": 1.25, "llama": 1.30, "t5": 1.45}
"""How many times as fast as ``generate`` the best provider should be."""

PROVIDERS = ("onnxruntime", "cpu", "torch")
PROMPT, NEW = 32, 32
ALONE = "products alone"
Ways: TypeAlias = Mapping[str, Callable[[], Any]]


def model_of(name: str) -> Any:
    """A model with random weights, which are small enough for scores that rounding does not reorder."""
    import torch
    import transformers

    torch.manual_seed(0)
    if name == "gpt2":
        model: Any = transformers.GPT2LMHeadModel(transformers.GPT2Config())
    elif name == "llama":
        sizes = {"vocab_size": 32000, "hidden_size": 768, "intermediate_size": 2048, "num_hidden_layers": 10}
        heads = {"num_attention_heads": 12, "num_key_value_heads": 12, "max_position_embeddings": 1024}
        model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**sizes, **heads))
    else:
        sizes = {"vocab_size": 32128, "d_model": 512, "d_kv": 64, "d_ff": 2048, "num_layers": 6, "num_heads": 8}
        model = transformers.T5ForConditionalGeneration(
            transformers.T5Config(**sizes, decoder_start_token_id=0, pad_token_id=0, eos_token_id=1)
        )
        with torch.no_grad():  # at full size T5's attention, which scales nothing, is chaotic
            for layer, weight in model.named_parameters():
                weight.mul_(1.0 if "layer_norm" in layer or "shared" in layer else 0.25)
    return model.eval()


def exported(model: Any, name: str, folder: Path) -> tuple[Path, Path]:
    """The folders of the package and of the one graph that generates, made where they are missing."""
    from entrepot.exporters.transformers.api import export_transformer
    from entrepot.exporters.transformers.in_graph.loop import looped

    host, whole = folder / name, folder / f"{name}_in_graph"
    if not whole.exists():
        folder.mkdir(parents=True, exist_ok=True)
        package = export_transformer(model, verify=False)
        package.save(host)
        looped(package, num_beams=1, opset=None).save(whole)
    return host, whole


def ways(model: Any, folders: tuple[Path, Path], providers: list[str]) -> dict[str, Callable[[], Any]]:
    """A call per way, each of which returns the tokens."""
    import torch

    import entrepot as ep

    prompt = np.random.default_rng(0).integers(5, 30000, (1, PROMPT))
    given = {"input_ids": prompt, "attention_mask": np.ones_like(prompt)}
    asked: dict[str, Any] = {"max_new_tokens": NEW, "min_new_tokens": NEW}
    tensors = {name: torch.from_numpy(value) for name, value in given.items()}

    def eager() -> Any:
        with torch.no_grad():
            return model.generate(**tensors, **asked, do_sample=False).numpy()

    found: dict[str, Callable[[], Any]] = {"eager": eager}
    for label, folder in zip(("host", "graph"), folders, strict=True):
        package = ep.load(folder)
        for provider in providers:
            found[f"{label} {provider}"] = partial(package.using(provider, threads=1).generate, **given, **asked)
    return found


def products_alone(model: Any) -> Callable[[], Any]:
    """A call that multiplies one row by each matrix that a step of ``generate`` reads, and does nothing else."""
    import torch

    read: dict[str, Any] = {}

    def note(name: str, module: Any, given: tuple[Any, ...]) -> None:
        if given[0].shape[-2] == 1:  # weights that longer inputs meet are read once, and not for each token
            read[name] = module.weight.detach()

    matrices = {name: module for name, module in model.named_modules() if getattr(module, "weight", None) is not None}
    layers = {name: module for name, module in matrices.items() if not isinstance(module, torch.nn.Embedding)}
    hooks = [
        module.register_forward_pre_hook(partial(note, name))
        for name, module in layers.items()
        if module.weight.ndim == 2
    ]
    with torch.no_grad():
        model.generate(input_ids=torch.arange(5, 5 + PROMPT)[None], max_new_tokens=2, min_new_tokens=2, do_sample=False)
    for hook in hooks:
        hook.remove()

    def multiply() -> None:
        with torch.no_grad():
            for _ in range(NEW):
                for weight in read.values():
                    torch.nn.functional.linear(weight.new_ones(1, weight.shape[1]), weight)

    return multiply


def best_rates(calls: Ways, rounds: int) -> dict[str, float]:
    """Tokens per CPU second of the best round; rounds take turns."""
    best = dict.fromkeys(calls, math.inf)
    for _ in range(rounds):
        for name, call in calls.items():
            start = time.process_time()
            call()
            best[name] = min(best[name], time.process_time() - start)
    return {name: NEW / seconds for name, seconds in best.items()}


def size_on_disk(folder: Path) -> int:
    """Bytes of all files in a folder."""
    return sum(path.stat().st_size for path in folder.iterdir())


def report(name: str, calls: Ways, rates: Mapping[str, float]) -> None:
    """Print a line per way."""
    wanted = calls["eager"]()
    for way, rate in rates.items():
        same = "" if way == ALONE or np.array_equal(calls[way](), wanted) else "  OTHER TOKENS"
        print(f"{name:6} {way:18} {rate:8.1f} tokens/s {rate / rates['eager']:6.2f}{same}", flush=True)
    best = max(rate for way, rate in rates.items() if way not in ("eager", ALONE)) / rates["eager"]
    most = rates[ALONE] / rates["eager"]
    print(f"{name:6} best {best:.2f}, target {TARGETS[name]}, memory allows about {most:.2f}", flush=True)


def main() -> int:
    """Print a line per model and way."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", action="append", choices=list(TARGETS))
    parser.add_argument("--provider", action="append", choices=PROVIDERS)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--keep", type=Path, help="folder where packages are kept for the next run")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    import torch

    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as temporary:
        for name in arguments.model or TARGETS:
            model = model_of(name)
            folders = exported(model, name, arguments.keep or Path(temporary))
            parameters = sum(parameter.nbytes for parameter in model.parameters())
            sizes = [size_on_disk(folder) / parameters for folder in folders]
            print(f"{name:6} bytes / parameters: host {sizes[0]:.3f}, in one graph {sizes[1]:.3f}", flush=True)
            calls = {**ways(model, folders, arguments.provider or list(PROVIDERS)), ALONE: products_alone(model)}
            report(name, calls, best_rates(calls, arguments.rounds))
    return 0


if __name__ == "__main__":
    del one_thread
    sys.exit(main())
