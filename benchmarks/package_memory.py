"""The memory that exporting a transformer of a gigabyte takes, the model itself included, in multiples of its bytes.

    python -m benchmarks.package_memory [--model t5] [--gigabytes 1] [--in-memory]

Memory is what the process alone holds at most (``RssAnon``), from before the model is built on; frameworks are imported
before that, and pages of mapped files are the system's to drop. With ``--in-memory`` the package is not saved, so that
it has its weights in memory.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.larger_than_memory import Peak

_MOST = 2.0
"""Times its bytes."""
_WIDTH, _WORDS = 1024, 32_000


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; the exit code is 1 where a saved package takes more than it may."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=sorted(_MODELS), help="only this one")
    parser.add_argument("--gigabytes", type=float, default=1.0, help="of weights")
    parser.add_argument("--in-memory", action="store_true", help="do not save the package")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.here:
        return _measured(options)
    command = [sys.executable, "-m", "benchmarks.package_memory", "--here", f"--gigabytes={options.gigabytes}"]
    command += ["--in-memory"] if options.in_memory else []
    chosen = [options.model] if options.model else sorted(_MODELS)
    return max(subprocess.run([*command, "--model", name], check=False).returncode for name in chosen)


def _measured(options: argparse.Namespace) -> int:
    """In a process of its own: one model."""
    import onnx_ir  # noqa: F401 - imported before memory is looked at
    import onnxruntime  # noqa: F401
    import torch

    import entrepot as ep

    torch.manual_seed(0)
    make = _MODELS[options.model]
    one, two = (_bytes(make(layers)) for layers in (1, 2))
    layers = max(1, round((options.gigabytes * 1e9 - one) / (two - one)) + 1)
    with tempfile.TemporaryDirectory() as folder, Peak() as peak:
        start = peak.now()
        model = make(layers)
        size, began = _bytes(model), time.process_time()
        ep.export_transformer(model, path=None if options.in_memory else Path(folder) / "package")
        seconds = time.process_time() - began
    taken = (peak.bytes - start) / size
    print(f"{options.model}: {size / 1e9:.2f} GB in {seconds:.0f} CPU s, {taken:.2f} times its bytes", flush=True)
    return int(taken > _MOST and not options.in_memory)


def _bytes(model: Any) -> int:
    return sum(weight.numel() * weight.element_size() for weight in model.parameters())


def _gpt2(layers: int) -> Any:
    from transformers import GPT2Config, GPT2LMHeadModel

    return GPT2LMHeadModel(GPT2Config(n_layer=layers, n_embd=_WIDTH, n_head=16, vocab_size=_WORDS)).eval()


def _llama(layers: int) -> Any:
    from transformers import LlamaConfig, LlamaForCausalLM

    sizes = {"hidden_size": _WIDTH, "intermediate_size": 2816, "num_attention_heads": 16, "num_key_value_heads": 16}
    return LlamaForCausalLM(LlamaConfig(num_hidden_layers=layers, vocab_size=_WORDS, **sizes)).eval()


def _t5(layers: int) -> Any:
    from transformers import T5Config, T5ForConditionalGeneration

    sizes = {"d_model": _WIDTH, "d_ff": 2816, "d_kv": 64, "num_heads": 16, "decoder_start_token_id": 0}
    return T5ForConditionalGeneration(T5Config(num_layers=layers, vocab_size=_WORDS, **sizes)).eval()


_MODELS: dict[str, Callable[[int], Any]] = {"gpt2": _gpt2, "llama": _llama, "t5": _t5}


if __name__ == "__main__":
    sys.exit(main())
