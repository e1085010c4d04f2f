"""entrepot: a framework-agnostic conversion and export hub for neural networks.

The public names below load the module behind them at first use, so importing the package costs next to nothing
and loads no framework.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from entrepot.exporters.api import export, verify
    from entrepot.exporters.conversion import convert_opset
    from entrepot.exporters.operators import op
    from entrepot.exporters.sample import Sample
    from entrepot.exporters.simplification import optimize, simplify
    from entrepot.exporters.sklearn.registration import register_converter
    from entrepot.exporters.transformers.api import export_transformer
    from entrepot.exporters.transformers.roles import Roles
    from entrepot.exporters.translation import register_translation
    from entrepot.importers.dispatch import to
    from entrepot.importers.numpy.convert import to_numpy
    from entrepot.importers.torch.convert import to_torch
    from entrepot.ir.errors import (
        ConversionError,
        EntrepotError,
        ExecutionError,
        InputError,
        MissingDependencyError,
        MissingFileError,
        ModelFormatError,
        PluginError,
        ResourceLimitError,
        StorageError,
        UnsupportedOpError,
        VerificationError,
    )
    from entrepot.ir.extract import extract
    from entrepot.ir.limits import Limits
    from entrepot.ir.model import Model
    from entrepot.ir.opset.convert import can_convert
    from entrepot.parity.compare import compare
    from entrepot.parity.tolerance import Tolerance
    from entrepot.runtime.generation.package import Package
    from entrepot.runtime.loading import load
    from entrepot.runtime.session import Session

__version__ = "0.1.0"

_HOMES = {
    "export": "entrepot.exporters.api",
    "verify": "entrepot.exporters.api",
    "Sample": "entrepot.exporters.sample",
    "op": "entrepot.exporters.operators",
    "register_translation": "entrepot.exporters.translation",
    "register_converter": "entrepot.exporters.sklearn.registration",
    "to": "entrepot.importers.dispatch",
    "to_numpy": "entrepot.importers.numpy.convert",
    "to_torch": "entrepot.importers.torch.convert",
    "load": "entrepot.runtime.loading",
    "export_transformer": "entrepot.exporters.transformers.api",
    "Roles": "entrepot.exporters.transformers.roles",
    "Package": "entrepot.runtime.generation.package",
    "extract": "entrepot.ir.extract",
    "simplify": "entrepot.exporters.simplification",
    "optimize": "entrepot.exporters.simplification",
    "Limits": "entrepot.ir.limits",
    "Model": "entrepot.ir.model",
    "convert_opset": "entrepot.exporters.conversion",
    "can_convert": "entrepot.ir.opset.convert",
    "Session": "entrepot.runtime.session",
    "compare": "entrepot.parity.compare",
    "Tolerance": "entrepot.parity.tolerance",
    "EntrepotError": "entrepot.ir.errors",
    "ModelFormatError": "entrepot.ir.errors",
    "UnsupportedOpError": "entrepot.ir.errors",
    "ConversionError": "entrepot.ir.errors",
    "VerificationError": "entrepot.ir.errors",
    "ExecutionError": "entrepot.ir.errors",
    "ResourceLimitError": "entrepot.ir.errors",
    "InputError": "entrepot.ir.errors",
    "StorageError": "entrepot.ir.errors",
    "MissingFileError": "entrepot.ir.errors",
    "MissingDependencyError": "entrepot.ir.errors",
    "PluginError": "entrepot.ir.errors",
}

__all__ = [  # noqa: RUF022 - grouped by what a reader looks for
    "export", "load", "Model", "Sample", "Limits",
    "convert_opset", "can_convert", "simplify", "optimize", "extract",
    "export_transformer", "Package", "Roles",
    "to", "to_numpy", "to_torch",
    "Session", "compare", "Tolerance", "verify",
    "register_translation", "register_converter", "op",
    "EntrepotError", "ModelFormatError", "UnsupportedOpError", "ConversionError", "VerificationError",
    "ExecutionError", "ResourceLimitError", "InputError", "StorageError", "MissingFileError",
    "MissingDependencyError", "PluginError",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'entrepot' has no attribute '{name}'")
    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
