"""``entrepot doctor``: what is installed here, and what it means."""

from __future__ import annotations

import os
import platform
from importlib import metadata
from typing import TYPE_CHECKING, Any

import entrepot
from entrepot.cli.exit_codes import Exit
from entrepot.cli.group import verb
from entrepot.cli.output import Output, rows, stack
from entrepot.cli.tested import TESTED
from entrepot.ir.errors import MissingDependencyError, PluginError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from entrepot.ir.plugins import Plugin

CORE = ("numpy", "ml_dtypes", "onnx", "onnx-ir", "click", "rich", "safetensors")
OPTIONAL = ("torch", "onnxscript", "onnxruntime", "tensorflow", "keras", "jax", "scikit-learn", "transformers")
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@verb("doctor")
def command(output: Output) -> int:
    """Show versions, providers, threads and memory, and what is wrong with them."""
    facts = examine()
    output.result(facts, lambda: _text(facts))
    return Exit.MISSING_DEPENDENCY if facts["problems"] else Exit.OK


def examine() -> dict[str, Any]:
    """Everything ``doctor`` shows; no framework is imported for it."""
    from entrepot.ir.plugins import GROUPS, plugins
    from entrepot.runtime.providers import provider_names

    packages = {name: _version(name) for name in (*CORE, *OPTIONAL)}
    registered = {group: [_described(plugin) for plugin in plugins(group)] for group in GROUPS}
    return {
        "entrepot": entrepot.__version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": packages,
        "tested": TESTED,
        "registered": registered,
        "providers": {name: _provider(name) for name in provider_names()},
        "processors": _processors(),
        "blas": _blas(),
        "thread_variables": {name: os.environ[name] for name in THREAD_VARIABLES if name in os.environ},
        "memory_bytes": _memory(),
        "problems": [f"{name} is not installed" for name in CORE if packages[name] is None] + _conflicts(),
    }


def _version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def _described(plugin: Plugin) -> str:
    return f"{plugin.name} ({plugin.value} of {plugin.distribution})"


def _compared(name: str, version: str | None) -> str:
    """An installed version, beside the one that this release is tested with if that is another."""
    if version is None:
        return "not installed"
    tested = TESTED.get(name, "")
    return version if not tested or version.partition("+")[0] == tested else f"{version} (tested with {tested})"


def _provider(name: str) -> str:
    from entrepot.runtime.providers import availability

    try:
        missing = availability(name)
    except (MissingDependencyError, PluginError) as error:
        missing = str(error)
    owners = f" ({', '.join(_owners_of_onnxruntime())})" if name == "onnxruntime" else ""
    return missing or f"ready{owners}"


def _owners_of_onnxruntime() -> list[str]:
    """Distributions that provide a module ``onnxruntime``: its GPU, OpenVINO and other builds all do."""
    return sorted(set(metadata.packages_distributions().get("onnxruntime", [])))


def _conflicts() -> list[str]:
    owners = _owners_of_onnxruntime()
    if len(owners) < 2:
        return []
    return [f"{' and '.join(owners)} overwrite each other's files; uninstall all of them, then install one"]


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _blas() -> str:
    from entrepot.runtime.blas import choice

    return str(choice())


def _memory() -> int | None:
    names = getattr(os, "sysconf_names", {})
    if "SC_PHYS_PAGES" not in names or "SC_PAGE_SIZE" not in names:
        return None
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _text(facts: dict[str, Any]) -> RenderableType:
    memory = facts["memory_bytes"]
    variables = ", ".join(f"{name}={value}" for name, value in facts["thread_variables"].items())
    general = [
        ("entrepot", facts["entrepot"]),
        ("python", f"{facts['python']} on {facts['platform']}"),
        ("processors", f"{facts['processors']}{f' ({variables})' if variables else ''}"),
        ("matrix products", facts["blas"]),
        ("memory", "unknown" if memory is None else f"{memory / 2**30:.1f} GiB"),
        *((f"provider {name}", state) for name, state in facts["providers"].items()),
        *((name, _compared(name, version)) for name, version in facts["packages"].items()),
        *((group, text) for group, found in facts["registered"].items() for text in found),
    ]
    problems = [("problem:", problem) for problem in facts["problems"]] or [("no problems found", "")]
    return stack(rows("", "", cells=general), rows("", "", cells=problems))
