"""Find out which architectures can be made small, how, and what they take; writes ``catalogue.json``.

    python -m tests.export_cases.architectures.discover [--kind causal-lm ...] [--only llama ...]

Run it when transformers moves. Each architecture is tried for at most a minute.
"""

from __future__ import annotations

import argparse
import copy
import json
import resource
import signal
import warnings
from collections.abc import Iterator
from typing import Any

from tests.export_cases.architectures.building import Recipe, TooLargeError, call_of, module_of
from tests.export_cases.architectures.catalogue import FILE, recipes
from tests.export_cases.architectures.kinds import KINDS

SCALES = ((16, 2), (8, 2), (4, 2), (32, 2), (16, 4), (8, 4), (4, 4), (2, 2), (1, 2), (8, 99), (1, 99))
ATTEMPTS = 6
SECONDS = 60
ONCE = ("encoder", "image-encoder", "audio-encoder", "backbone")
"""Kinds that are tried for architectures that no other kind has."""


def candidates(kinds: list[str]) -> Iterator[tuple[str, str, str]]:
    """Kind, type and class of whatever is worth a try."""
    from transformers.models.auto import modeling_auto

    tables = {kind: _table(modeling_auto, kind) for kind in KINDS}
    named = {model_type for kind in KINDS if kind not in ONCE for model_type in tables[kind]}
    for kind in kinds:
        for model_type, architecture in tables[kind].items():
            if kind not in ONCE or model_type not in named:
                yield kind, model_type, architecture


def _table(modeling_auto: Any, kind: str) -> dict[str, str]:
    rows = [row for table in KINDS[kind].tables for row in getattr(modeling_auto, table).items()]
    return {model_type: names if isinstance(names, str) else names[0] for model_type, names in rows}


def recipe_for(kind: str, model_type: str, architecture: str) -> Recipe | str:
    """How to build it, or why it cannot be built."""
    why = ""
    for divisor, layers in SCALES:
        recipe = Recipe(kind, model_type, architecture, divisor, layers)
        try:
            module = module_of(recipe)
        except TooLargeError as error:
            why = why or str(error)
            continue
        except TimeoutError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever a class raises about its configuration
            why = why or f"{type(error).__name__}: {error}"
            continue
        found = _calls(recipe, module)
        if isinstance(found, Recipe):
            return found
        why = why or found
    return why


def _calls(recipe: Recipe, module: object) -> Recipe | str:
    sizes, why = KINDS[recipe.kind].sizes, ""
    for attempt in range(ATTEMPTS):
        trial = recipe._replace(attempt=attempt)
        taken = []
        for at, size in enumerate(sizes):
            problem = _refusal(trial, module, size)
            if not problem:
                taken.append(at)
            elif at == 0:
                why = why or problem
                break
        if taken[:1] == [0]:
            return trial._replace(sizes=tuple(taken))
    return why


def _refusal(recipe: Recipe, module: object, size: object) -> str:
    import torch

    try:
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            given = call_of(recipe, module, size)
            module(**copy.deepcopy(given))
    except TimeoutError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever a model raises
        return f"{type(error).__name__}: {' '.join(str(error).split())[:160]}"
    return ""


def main() -> None:
    """Try them all, and write what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kind", nargs="*", default=list(KINDS), choices=KINDS)
    parser.add_argument("--only", nargs="*", default=[""])
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
    signal.signal(signal.SIGALRM, _too_late)
    known = {(recipe.kind, recipe.model_type): recipe for recipe in recipes()}
    for kind, model_type, architecture in candidates(options.kind):
        if (kind, model_type) in known or not any(text in model_type for text in options.only):
            continue
        found = _in_time(kind, model_type, architecture)
        print(f"{kind}/{model_type}: {found}", flush=True)
        if isinstance(found, Recipe):
            known[kind, model_type] = found
            _write(list(known.values()))


def _in_time(*names: str) -> Recipe | str:
    signal.alarm(SECONDS)
    try:
        return recipe_for(*names)
    except TimeoutError as error:
        return str(error)
    finally:
        signal.alarm(0)


def _too_late(*_: object) -> None:
    raise TimeoutError(f"more than {SECONDS} s")


def _write(found: list[Recipe]) -> None:
    order = list(KINDS)
    rows = sorted(found, key=lambda recipe: (order.index(recipe.kind), recipe.model_type))
    FILE.write_text("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")


if __name__ == "__main__":
    main()
