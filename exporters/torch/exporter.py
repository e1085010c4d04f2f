"""torch: modules, exported programs, TorchScript, and the files that hold them."""

from __future__ import annotations

import os
from typing import Any

import torch

from entrepot.exporters.exporter import Exporter
from entrepot.exporters.recognition import Found, is_torch
from entrepot.exporters.torch.sources.calling import TorchSource
from entrepot.exporters.torch.sources.files import read
from entrepot.exporters.torch.sources.function import FunctionModule
from entrepot.exporters.torch.sources.module import ModuleSource
from entrepot.exporters.torch.sources.program import ProgramSource
from entrepot.exporters.torch.sources.script import ScriptSource
from entrepot.ir.errors import InputError


class TorchExporter(Exporter):
    """Opens whatever torch makes."""

    name = "torch"

    def recognises(self, found: Found) -> bool:
        """By the classes of an object, or by what a file contains."""
        return is_torch(found)

    def open(self, obj: Any, sample: Any) -> TorchSource:
        """The source for a module, a program or a script, or for a file of one of the last two."""
        if isinstance(obj, str | os.PathLike):
            obj = read(obj)
        if isinstance(obj, torch.export.ExportedProgram):
            return ProgramSource(obj, sample)
        if callable(obj) and not isinstance(obj, torch.nn.Module):
            obj = FunctionModule(obj)
        if not isinstance(obj, torch.nn.Module):
            raise InputError(f"cannot export a {type(obj).__qualname__}", hint="wrap it in a torch.nn.Module")
        if sample is None:
            raise InputError(
                "a torch module needs a sample to be exported", hint="ep.export(module, x): as it is called"
            )
        if isinstance(obj, torch.jit.ScriptModule):
            return ScriptSource(obj, sample)
        return ModuleSource(obj, sample)


EXPORTER = TorchExporter()
